#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/buffer.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/superblock_keeper.h"
#include "device/faults.h"
#include "scrub/walk.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::scrub {

namespace {

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetween{10};

Result<AlignedBuffer> read_block(store::Store& store, BlockAddr address) {
  AlignedBuffer block(kBlockSize);
  TRY(store.device().read(address.v << kBlockShift, block.span()));
  return block;
}

// Where a superblock belongs: a copy, or an anchor, which says nothing of the newest checkpoint.
struct Place {
  BlockAddr address;
  bool anchor = false;
};

// The copies come first. Those of an area move on with each checkpoint.
std::vector<Place> places_of(const format::Superblock& written) {
  const BlockAddr last{written.device_blocks - 1};
  if (!written.area) return {{BlockAddr{0}}, {last}};
  return {{written.area.place_of(written.sequence)}, {written.area.place_of(written.sequence + written.area.slots - 1)},
          {BlockAddr{0}, true}, {last, true}};
}

Result<format::Superblock> read_copy(store::Store& store, const Place& place) {
  const Serial settled = store.checkpoints().settled();  // before reading: then both copies have it
  const AlignedBuffer block = TRY(read_block(store, place.address));
  const format::Superblock super = TRY(format::decode_superblock(block.span()));
  if (super.identity != store.trees().cache().identity()) return Error(Errc::corrupt, "of another filesystem");
  if (super.serial < settled && !place.anchor)
    return Error(Errc::corrupt,
                 fmt::format("of checkpoint {}, older than {}: the last write was lost", super.serial, settled));
  return super;
}

Status verify_image(store::Store& store, BlockAddr& address) {
  const format::Superblock super = TRY(read_copy(store, places_of(store.superblocks().written()).front()));
  address = super.image.address;
  const AlignedBuffer block = TRY(read_block(store, address));
  if (format::block_crc(block.span()) != super.image.crc)
    return Error(Errc::corrupt, "the image does not match its checksum");
  TRY(format::decode_super_image(block.span()));
  return {};
}

template <class Try>
Status repeated(Try&& attempt) {
  Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kBetween);
    if (status = attempt(); status.ok()) break;
  }
  return status;
}

void report(store::Store& store, const Walk::Report& report, BlockAddr address, const Error& error) {
  store.faults().note(error.is(Errc::io) ? Errc::io : Errc::corrupt, address, {});
  Finding finding;
  finding.kind = Finding::Kind::superblock;
  finding.address = address;
  finding.error = error.message();
  report(finding);
}

}  // namespace

void verify_superblocks(store::Store& store, const Walk::Report& tell) {
  bool first_is_good = false;
  const std::size_t places = places_of(store.superblocks().written()).size();
  for (std::size_t i = 0; i < places; ++i) {
    Place place;
    const Status status = repeated([&]() -> Status {
      place = places_of(store.superblocks().written())[i];
      TRY(read_copy(store, place));
      return {};
    });
    if (!status.ok())
      report(store, tell, place.address, status.error());
    else if (i == 0)
      first_is_good = true;
  }
  if (!first_is_good) return;
  BlockAddr image;
  const Status status = repeated([&] { return verify_image(store, image); });
  if (!status.ok()) report(store, tell, image, status.error());
}

}  // namespace varve::scrub

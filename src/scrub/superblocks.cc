#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/buffer.h"
#include "scrub/walk.h"

namespace varve::scrub {

namespace {

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetween{10};

Result<AlignedBuffer> read_block(store::Store& store, BlockAddr address) {
  AlignedBuffer block(kBlockSize);
  TRY(store.device().read(address.v << kBlockShift, block.span()));
  return block;
}

Result<format::Superblock> read_copy(store::Store& store, BlockAddr address) {
  const Serial settled = store.checkpoints().settled();  // before reading: then both copies have it
  const AlignedBuffer block = TRY(read_block(store, address));
  const format::Superblock super = TRY(format::decode_superblock(block.span()));
  if (super.identity != store.trees().cache().identity()) return Error(Errc::corrupt, "of another filesystem");
  if (super.serial < settled)
    return Error(Errc::corrupt,
                 fmt::format("of checkpoint {}, older than {}: the last write was lost", super.serial, settled));
  return super;
}

Status verify_image(store::Store& store, BlockAddr& address) {
  const format::Superblock super = TRY(read_copy(store, BlockAddr{0}));
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
  store.faults().note(Errc::corrupt, address, {});
  Finding finding;
  finding.kind = Finding::Kind::superblock;
  finding.address = address;
  finding.error = error.message();
  report(finding);
}

}  // namespace

void verify_superblocks(store::Store& store, BlockAddr second, const Walk::Report& tell) {
  bool first_is_good = false;
  for (const BlockAddr address : {BlockAddr{0}, second}) {
    const Status status = repeated([&]() -> Status {
      TRY(read_copy(store, address));
      return {};
    });
    if (!status.ok())
      report(store, tell, address, status.error());
    else if (!address)
      first_is_good = true;
  }
  if (!first_is_good) return;
  BlockAddr image;
  const Status status = repeated([&] { return verify_image(store, image); });
  if (!status.ok()) report(store, tell, image, status.error());
}

}  // namespace varve::scrub

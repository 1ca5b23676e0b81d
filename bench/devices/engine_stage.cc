#include "engine_stage.h"

#include <sys/stat.h>

#include <algorithm>
#include <stdexcept>

#include "base/buffer.h"
#include "checkpoint/seals.h"
#include "device/io_context.h"
#include "format/make.h"
#include "log/log.h"
#include "segments/counters.h"
#include "store/store.h"

namespace varve::bench {

// A disk is as small as the image: the filesystem has all of it, and seeks are as long as on a large one that is used to the same share.
Stage::Stage(const EngineSetup& setup)
    : setup_(setup), random_(setup.seed), memory_(setup.size), model_(make_model(setup.model, setup.size)) {
  if (!model_) throw std::runtime_error("no such device: " + setup.model);
  device_ = std::make_unique<ModelDevice>(memory_, *model_, clock_, setup.discard);
  clock_.run_at(setup.speed);
}

void Stage::make() {
  format::MakeParameters parameters;
  parameters.device_blocks = device_->geometry().blocks();
  parameters.segment_blocks = setup_.segment_blocks;
  parameters.now = clock_.now();
  const auto made = checked(format::make_filesystem(parameters, random_));
  if (device_->geometry().supports_discard) check(device_->discard(0, setup_.size));
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  auto put = [&](BlockAddr at, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), block.data());
    check(device_->write(at.v << kBlockShift, block.span()));
  };
  for (const format::MadeNode& node : made.nodes) put(node.address, node.bytes);
  for (const format::MadeNode& super : format::superblocks_of(made)) put(super.address, super.bytes);
}

void Stage::mount() {
  fs::Options options;
  options.background = false;
  options.atime = fs::Atime::never;
  options.discard = setup_.discard;
  options.streams = setup_.streams;
  options.clock = &clock_;
  options.random = &random_;
  options.strategy = setup_.strategy;
  options.victims = setup_.victims;
  options.placement = setup_.placement;
  fs_ = checked(fs::Filesystem::mount(*device_, options));
}

EnginePart Stage::counted() const {
  EnginePart out = before_;
  if (!fs_) return out;
  store::Store& store = fs_->engine().store();
  const segments::Counters& now = store.counters();
  out.moved += now.cleaned_blocks;
  out.in_holes += now.refilled_blocks;
  out.nodes += now.node_blocks;
  out.checkpoints += now.checkpoints;
  out.segments += now.segments_cleaned;
  out.chunks += store.log().chunks();
  out.headers += store.log().header_blocks();
  out.payload += store.log().payload_blocks();
  return out;
}

void Stage::unmount() {
  before_ = counted();
  check(fs_->unmount());
  fs_.reset();
}

Ino Stage::make_file(Ino parent, const std::string& name) {
  fs::NewNode node;
  node.mode = S_IFREG | 0644;
  return checked(call([&](fs::Operation& op) { return fs_->make(op, parent, name, node); })).ino;
}

void Stage::write(Ino file, std::uint64_t offset, std::span<const std::byte> bytes) {
  checked(call([&](fs::Operation& op) { return fs_->write(op, file, offset, bytes, {}); }));
  fs_->engine().store().io().pump();  // discards, too, come to an end while nobody waits for anything
}

void Stage::sync() {
  check(call([&](fs::Operation& op) { return fs_->sync(op); }));
}

void Stage::seal_when_due() {
  store::Store& store = fs_->engine().store();
  const std::uint64_t since = store.seals().unawaited_since_ns();
  if (!since || clock_.monotonic_ns() < since + fs_->engine().options().seal_delay_ms * 1'000'000) return;
  const Lsn lsn = checked(store.seals().seal(checkpoint::Seals::Purpose::commit));
  store.log().durability().when_durable(lsn, [](Status) {}, nullptr);
  store.io().pump();
}

}  // namespace varve::bench

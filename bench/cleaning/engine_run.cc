#include "engine_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/buffer.h"
#include "cleaner/file_layout.h"
#include "format/make.h"
#include "fs/engine.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"

namespace varve::bench {

namespace {

constexpr std::uint64_t kWriteBytes = 1u << 20;  // of the sequential fill

void checked(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message());
}
template <class T>
T checked(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

void write_at(io::BlockDevice& device, BlockAddr address, std::span<const std::byte> bytes) {
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  std::copy(bytes.begin(), bytes.end(), block.data());
  checked(device.write(address.v << kBlockShift, block.span()));
}

void make_image(io::BlockDevice& device, const RunSetup& setup, Random& random) {
  format::MakeParameters make;
  make.device_blocks = device.geometry().blocks();
  make.segment_blocks = setup.segment_blocks;
  const auto made = checked(format::make_filesystem(make, random));
  for (const format::MadeNode& node : made.nodes) write_at(device, node.address, node.bytes);
  AlignedBuffer super(kBlockSize);
  format::encode_superblock(made.super, super.span());
  write_at(device, BlockAddr{0}, super.span());
  write_at(device, BlockAddr{made.super.device_blocks - 1}, super.span());
}

// What was written, in blocks, up to now.
struct Counts {
  std::uint64_t user = 0, data = 0, moved = 0, nodes = 0, headers = 0, refilled = 0, segments = 0;
};

class EngineRun {
  template <class F>
  auto call(F&& function) {
    fs::Operation operation(fs_->engine(), fs::Caller{});
    return checked(fs::block_on(operation, [&] { return function(operation); }));
  }
  void put(std::uint64_t offset, std::uint64_t length) {
    // Different contents, so that no copy could pass for another.
    for (std::uint64_t at = 0; at < length; at += kBlockSize) {
      const std::uint64_t stamp[2] = {offset + at, ++writes_};
      std::memcpy(bytes_.data() + at, stamp, sizeof stamp);
    }
    call([&](fs::Operation& op) { return fs_->write(op, file_, offset, bytes_.span().first(length), {}); });
  }

 public:
  explicit EngineRun(const RunSetup& setup)
      : setup_(setup),
        random_(setup.seed),
        device_((setup.segments * setup.segment_blocks + 2048) << kBlockShift),
        bytes_(AlignedBuffer::zeroed(kWriteBytes)) {
    make_image(device_, setup, random_);
    fs::Options options;
    options.background = false;  // one thread, so that a run can be repeated
    options.atime = fs::Atime::never;
    options.random = &random_;
    options.strategy = setup.strategy;
    options.victims = setup.victims;
    options.placement = setup.placement;
    fs_ = checked(fs::Filesystem::mount(device_, options));
    fs::NewNode file;
    file.mode = S_IFREG | 0644;
    file_ = call([&](fs::Operation& op) { return fs_->make(op, kRootIno, "file", file); }).ino;
    // What the filesystem keeps for itself: clean segments, half of what a round of cleaning gains on top, open segments
    // that are half full, nodes in segments that are half dead.
    auto& engine = fs_->engine();
    const double kept = static_cast<double>(engine.store().low_water()) +
                        0.5 * static_cast<double>(engine.cleaner().ahead()) + 0.5 * 8 + 0.03 * static_cast<double>(setup.segments);
    blocks_ = static_cast<std::uint64_t>(setup.utilisation * (static_cast<double>(setup.segments) - kept) * setup.segment_blocks);
  }

  std::uint64_t blocks() const { return blocks_; }

  void fill() {
    for (std::uint64_t at = 0; at < blocks_ << kBlockShift; at += kWriteBytes)
      put(at, std::min(kWriteBytes, (blocks_ << kBlockShift) - at));
  }
  void write(std::uint64_t block) { put(block << kBlockShift, kBlockSize); }

  Counts counts() {
    meta::Store& store = fs_->engine().store();
    return {store.counters().user_blocks, store.log().payload_blocks(), store.counters().cleaned_blocks,
            store.counters().node_blocks, store.log().header_blocks(), store.counters().refilled_blocks,
            store.counters().segments_cleaned};
  }

  std::uint64_t fragments() {
    call([&](fs::Operation& op) { return fs_->checkpoint(op); });
    std::uint64_t count = 0;
    for (std::uint64_t at = 0;;) {
      const auto part = checked(cleaner::read_layout(fs_->engine().store(), file_, at, 1u << 16));
      count += cleaner::count_fragments(part.blocks);
      if (part.last) return count;
      at = part.next;
    }
  }

  // Live file blocks over the written part of all segments that hold them.
  double utilisation() {
    meta::Store& store = fs_->engine().store();
    std::uint64_t held = 0;
    store.segments().for_each([&](SegmentId, const log::SegmentInfo& s) {
      const bool in_use = s.state == log::SegmentState::used || log::is_open(s.state);
      if (in_use && s.group < format::kMaxGroups) held += setup_.segment_blocks;
    });
    for (const format::Run& rest : store.log().heads()) held -= rest.blocks;
    return static_cast<double>(blocks_) / static_cast<double>(held);
  }

 private:
  const RunSetup setup_;
  SeededRandom random_;
  io::MemDevice device_;
  AlignedBuffer bytes_;
  std::unique_ptr<fs::Filesystem> fs_;
  Ino file_;
  std::uint64_t blocks_ = 0, writes_ = 0;
};

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

RunResult run_on_engine(const RunSetup& setup) {
  EngineRun run(setup);
  RunResult result;
  result.blocks = run.blocks();
  const auto writes = static_cast<std::uint64_t>(setup.writes * static_cast<double>(result.blocks));
  const auto workload = make_workload(setup.workload, result.blocks, writes, setup.seed);
  if (!workload) throw std::invalid_argument("no workload " + setup.workload);
  run.fill();
  const auto measured = static_cast<std::uint64_t>(setup.measured * static_cast<double>(writes));
  const std::uint64_t tenth = std::max<std::uint64_t>(1, result.blocks / 10);
  Counts start, before = run.counts();
  double utilisation = 0;
  std::uint64_t samples = 0;
  for (std::uint64_t i = 0; i < writes; ++i) {
    if (i == writes - measured) start = run.counts();
    run.write(workload->next());
    if ((i + 1) % tenth == 0) {
      const Counts now = run.counts();
      result.course.push_back(1 + ratio(now.moved - before.moved, now.user - before.user));
      before = now;
    }
    if (i >= writes - measured && i % 997 == 0) utilisation += run.utilisation(), ++samples;
  }
  const Counts end = run.counts();
  const std::uint64_t user = end.user - start.user;
  result.write_amplification = 1 + ratio(end.moved - start.moved, user);
  result.metadata = ratio(end.nodes - start.nodes, user);
  result.headers = ratio(end.headers - start.headers, user);
  result.refilled = ratio(end.refilled - start.refilled, user);
  result.moved_per_segment = ratio(end.moved - start.moved, end.segments - start.segments);
  result.fragments = run.fragments();
  result.utilisation = utilisation / static_cast<double>(samples);
  result.bound = bound_of(*workload, result.utilisation, setup.segment_blocks);
  return result;
}

}  // namespace varve::bench

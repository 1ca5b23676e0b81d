#include "rig.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

#include "checked.h"
#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "cleaner/file_layout.h"
#include "cleaner/strategy.h"
#include "format/make.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/segment_table.h"
#include "space/admission.h"
#include "space/space.h"
#include "store/store.h"

namespace varve::bench {

namespace {

constexpr std::uint64_t kMostBytes = 1u << 20;  // of one call

void write_at(io::BlockDevice& device, BlockAddr address, std::span<const std::byte> bytes) {
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  std::copy(bytes.begin(), bytes.end(), block.data());
  check(device.write(address.v << kBlockShift, block.span()));
}

void make_image(io::BlockDevice& device, const RigSetup& setup, Random& random) {
  format::MakeParameters make;
  make.device_blocks = device.geometry().blocks();
  make.segment_blocks = setup.segment_blocks;
  const auto made = checked(format::make_filesystem(make, random));
  for (const format::MadeNode& node : made.nodes) write_at(device, node.address, node.bytes);
  for (const format::MadeNode& super : format::superblocks_of(made)) write_at(device, super.address, super.bytes);
}

}  // namespace

Counts operator-(const Counts& a, const Counts& b) {
  return {a.user - b.user,   a.data - b.data,       a.moved - b.moved,       a.read - b.read,
          a.nodes - b.nodes, a.headers - b.headers, a.refilled - b.refilled, a.segments - b.segments};
}

template <class F>
auto Rig::call(F&& function) {
  fs::Operation operation(fs_->operations(), fs::Caller{});
  return checked(fs::block_on(operation, [&] { return function(operation); }));
}

Rig::Rig(const RigSetup& setup)
    : setup_(setup),
      random_(setup.seed),
      memory_((setup.segments * setup.segment_blocks + 2048) << kBlockShift),
      device_(memory_, [this](const io::TraceEvent& event) { if (listener_) listener_(event); }),
      bytes_(AlignedBuffer::zeroed(kMostBytes)) {
  make_image(device_, setup, random_);
  mount();
}

Rig::~Rig() = default;

std::uint64_t Rig::clean_segments() { return engine().store().segments().clean(); }

void Rig::mount() {
  fs::Options options;
  options.background = false;  // one thread, so that a run can be repeated
  options.atime = fs::Atime::never;
  options.random = &random_;
  options.cleaner = setup_.cleaner;
  options.strategy = setup_.strategy;
  options.victims = setup_.victims;
  options.placement = setup_.placement;
  fs_ = checked(fs::Filesystem::mount(device_, options));
}

void Rig::remount() {
  check(fs_->unmount());
  fs_.reset();
  mount();
}

Ino Rig::make(Ino parent, const std::string& name, bool directory) {
  fs::NewNode node;
  node.mode = directory ? S_IFDIR | 0755 : S_IFREG | 0644;
  return call([&](fs::Operation& op) { return fs_->make(op, parent, name, node); }).ino;
}

void Rig::remove(Ino parent, const std::string& name) {
  call([&](fs::Operation& op) { return fs_->unlink(op, parent, name); });
}

void Rig::write(Ino file, std::uint64_t offset, std::uint64_t length) {
  while (length > 0) {
    const std::uint64_t part = std::min(length, kMostBytes - offset % kMostBytes);
    for (std::uint64_t at = 0; at < part; at += kBlockSize) {
      const std::uint64_t stamp[2] = {offset + at, ++writes_};
      std::memcpy(bytes_.data() + at, stamp, sizeof stamp);
    }
    call([&](fs::Operation& op) { return fs_->write(op, file, offset, bytes_.span().first(part), {}); });
    offset += part;
    length -= part;
  }
}

void Rig::read(Ino file, std::uint64_t length) {
  for (std::uint64_t at = 0; at < length; at += kMostBytes)
    call([&](fs::Operation& op) { return fs_->read(op, file, at, bytes_.span().first(std::min(kMostBytes, length - at))); });
}

void Rig::checkpoint() { check(engine().store().checkpoints().make({})); }

bool Rig::clean(std::uint64_t wanted, std::vector<double>& victims) {
  checkpoint();  // the maps know only what is merged
  std::unordered_map<std::uint64_t, double> before;
  for (const Utilisation& segment : utilisations()) before[segment.id.v] = segment.live;
  cleaner::Task task;
  task.wanted = wanted;
  task.for_room = false;
  auto rules = checked(engine().cleaner().rules({}));
  const cleaner::Round round = engine().cleaner().run_round(task, rules);
  if (!round.moved && round.emptied.empty()) return false;
  check(engine().store().checkpoints().make({.evacuate = round.emptied}));
  victims.clear();
  for (SegmentId id : round.emptied)
    if (const auto at = before.find(id.v); at != before.end()) victims.push_back(at->second);
  return true;
}

Counts Rig::counts() {
  store::Store& store = engine().store();
  return {store.counters().user_blocks, store.log().payload_blocks(), store.counters().cleaned_blocks,
          store.counters().cleaned_blocks_read, store.counters().node_blocks, store.log().header_blocks(),
          store.counters().refilled_blocks, store.counters().segments_cleaned};
}

std::vector<Utilisation> Rig::utilisations() {
  std::vector<Utilisation> all;
  engine().store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (s.state == segments::SegmentState::used && s.group < format::kMaxGroups && s.live() > 0)
      all.push_back({id, static_cast<double>(s.live()) / setup_.segment_blocks});
  });
  return all;
}

std::uint64_t Rig::fragments(Ino file) {
  checkpoint();
  std::uint64_t count = 0;
  for (std::uint64_t at = 0;;) {
    const auto part = checked(cleaner::read_layout(engine().store(), file, at, 1u << 16));
    count += cleaner::count_fragments(part.blocks);
    if (part.last) return count;
    at = part.next;
  }
}

std::uint64_t Rig::blocks_for(double utilisation) {
  const double kept = static_cast<double>(engine().store().space().low_water()) +
                      0.5 * static_cast<double>(engine().cleaner().ahead()) + 0.5 * 8 +
                      0.03 * static_cast<double>(setup_.segments);
  return static_cast<std::uint64_t>(utilisation * (static_cast<double>(setup_.segments) - kept) * setup_.segment_blocks);
}

double Rig::written_space() {
  store::Store& store = engine().store();
  std::uint64_t held = 0;
  store.segments().for_each([&](SegmentId, const segments::SegmentInfo& s) {
    const bool in_use = s.state == segments::SegmentState::used || segments::is_open(s.state);
    if (in_use && s.group < format::kMaxGroups) held += setup_.segment_blocks;
  });
  const Gate::Pass pass(store.gate());
  for (const format::Run& rest : store.log().heads().rests()) held -= rest.blocks;
  return static_cast<double>(held);
}

}  // namespace varve::bench

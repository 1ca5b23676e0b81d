#include "fragmentation_study.h"

#include <fstream>
#include <memory>
#include <stdexcept>

#include "checked.h"
#include "cleaner/file_layout.h"
#include "cleaner/mover.h"
#include "cleaner/registry.h"
#include "disk_model.h"
#include "fragmenter.h"
#include "jobs/clean_job.h"
#include "jobs/file_walk.h"
#include "rig.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "table.h"

namespace varve::bench {

namespace {

using Files = std::map<std::uint64_t, ReplayedFile>;

std::vector<FileOperation> operations_of(const FragmentationSetup& setup, const std::string& sample) {
  if (!setup.replay_from.empty()) return recorded(setup.replay_from + sample);
  auto operations = make_fragmentation(sample, setup.scale, setup.seed);
  if (operations.empty()) throw std::invalid_argument("no sample " + sample);
  if (!setup.record_to.empty()) record(operations, setup.record_to + sample);
  return operations;
}

// A filesystem with a sample on it, mounted anew.
class Sample {
 public:
  Sample(const FragmentationSetup& setup, const std::vector<FileOperation>& operations)
      : rig_(rig_of(setup)), traces_to_(setup.traces_to) {
    files_ = replay(rig_, operations);
    rig_.remount();
  }

  Rig& rig() { return rig_; }
  const Files& files() const { return files_; }

  // `name`: of its trace.
  template <class F>
  DiskModel observe(const std::string& name, F&& function) {
    DiskModel disk;
    std::ofstream file;
    if (!traces_to_.empty()) file.open(traces_to_ + name + ".trace");
    io::TraceWriter writer(file);
    rig_.listen([&](const io::TraceEvent& event) {
      disk.add(event);
      if (file.is_open()) writer(event);
    });
    function();
    rig_.listen({});
    if (!traces_to_.empty() && !file.flush()) throw std::runtime_error("cannot write " + traces_to_ + name + ".trace");
    return disk;
  }
  // All files in the order they were made in, after a new mount, so that nothing is in memory.
  DiskModel read_all(const std::string& name) {
    rig_.remount();
    return observe(name, [&] {
      for (const auto& [number, file] : files_) rig_.read(file.ino, file.bytes);
    });
  }
  std::uint64_t live() {
    std::uint64_t sum = 0;
    for (const auto& [number, file] : files_) sum += (file.bytes + kBlockSize - 1) / kBlockSize;
    return sum;
  }
  // In full segments: blocks of files and of the trees.
  std::uint64_t dead() {
    std::uint64_t sum = 0;
    const auto& segments = rig_.engine().store().segments();
    segments.for_each([&](SegmentId, const segments::SegmentInfo& s) {
      if (s.state != segments::SegmentState::used) return;
      sum += segments.geometry().blocks - std::min(segments.geometry().blocks, s.live());
    });
    return sum;
  }

 private:
  static RigSetup rig_of(const FragmentationSetup& setup) {
    RigSetup rig;
    rig.segment_blocks = setup.segment_blocks;
    rig.segments = setup.segments;
    rig.placement = "none";
    rig.victims = "greedy";
    rig.seed = setup.seed;
    rig.cleaner = false;
    return rig;
  }

  Rig rig_;
  Files files_;
  const std::string traces_to_;
};

// --- cleaning -------------------------------------------------------------------------------------------------------------

void clean(const FragmentationSetup& setup, const std::string& name, const std::vector<FileOperation>& operations,
           const std::string& strategy, std::uint64_t buffer, bool all, Table& table) {
  Sample sample(setup, operations);
  jobs::CleanRequest request;
  request.strategy = strategy;
  request.buffer_blocks = buffer;
  if (!all) request.free_blocks = std::max<std::uint64_t>(1, sample.dead() / 10);
  const std::string tag = fmt::format("{}-{}-{}-{}", name, strategy, buffer, all ? "all" : "tenth");
  const DiskModel cleaning = sample.observe(tag + "-cleaning", [&] {
    const Status status = sample.rig().fs().start_clean(request);
    if (!status.ok()) throw std::runtime_error(status.error().message());
  });
  const jobs::CleanState state = sample.rig().fs().clean_state();
  const DiskModel reading = sample.read_all(tag + "-reading");
  const auto gained = static_cast<std::int64_t>(state.now.clean) - static_cast<std::int64_t>(state.before.clean);
  table.add({name, strategy, buffer, all ? "all" : "10 %", state.read, state.written, state.nodes, gained, state.now.end,
             cleaning.seeks(), cleaning.seconds(), cleaning.joules(), reading.seeks(), reading.seconds()});
}

void leave_alone(const FragmentationSetup& setup, const std::string& name,
                 const std::vector<FileOperation>& operations, Table& table) {
  Sample sample(setup, operations);
  const DiskModel reading = sample.read_all(name + "-none-reading");
  table.add({name, "(none)", nullptr, "-", 0, 0, 0, 0, nullptr, 0, 0.0, 0.0, reading.seeks(), reading.seconds()});
}

Json run_cleaning(const FragmentationSetup& setup) {
  Table table("Cleaning, and reading all files afterwards (seconds and joules: a model of a Microdrive)",
              {"sample", "strategy", "buffer", "amount", "read", "written", "nodes", "segments", "log end", "seeks", "s (modelled)", "J",
               "read seeks", "read s (modelled)"});
  for (const std::string& name : setup.samples) {
    const auto operations = operations_of(setup, name);
    leave_alone(setup, name, operations, table);
    for (const std::string& strategy : setup.strategies) {
      if (!cleaner::registry().strategies.contains(strategy)) continue;
      for (std::uint64_t buffer : setup.buffers)
        for (bool all : {true, false}) clean(setup, name, operations, strategy, buffer, all, table);
    }
  }
  return table.json();
}

// --- the map --------------------------------------------------------------------------------------------------------------

// Which block belongs to which inode, out of the reverse map: of all segments.
std::uint64_t by_map(Rig& rig) {
  cleaner::Mover mover(rig.engine().store());
  std::vector<SegmentId> ids;
  rig.engine().store().segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (s.live() > 0) ids.push_back(id);
  });
  std::uint64_t blocks = 0;
  for (SegmentId id : ids) blocks += checked(mover.live_blocks(id)).size();
  return blocks;
}

// The same by looking at each file.
std::uint64_t by_scan(Rig& rig) {
  constexpr std::size_t kMost = 4096;
  jobs::FileWalk walk(rig.engine().operations(), {kRootIno});
  std::uint64_t blocks = 0;
  while (const auto file = checked(walk.next())) {
    cleaner::FilePart part;
    do {
      part = checked(cleaner::read_layout(rig.engine().store(), *file, part.next, kMost));
      blocks += part.blocks.size();
    } while (!part.last);
  }
  return blocks;
}

Json run_maps(const FragmentationSetup& setup) {
  Table table("The map from blocks to inodes: kept, or made by scanning (nothing in memory)",
              {"sample", "how", "blocks found", "nodes read", "seeks", "s (modelled)"});
  for (const std::string& name : setup.samples) {
    Sample sample(setup, operations_of(setup, name));
    for (bool scan : {false, true}) {
      sample.rig().remount();
      std::uint64_t found = 0;
      const std::string tag = fmt::format("{}-map-{}", name, scan ? "scanning" : "mfile");
      const DiskModel disk = sample.observe(tag, [&] { found = scan ? by_scan(sample.rig()) : by_map(sample.rig()); });
      table.add({name, scan ? "scanning" : ".mfile", found, disk.read(), disk.seeks(), disk.seconds()});
    }
  }
  return table.json();
}

Json run_samples(const FragmentationSetup& setup) {
  Table table("Samples (blocks of 4 KiB)", {"sample", "operations", "files", "live", "dead"});
  for (const std::string& name : setup.samples) {
    const auto operations = operations_of(setup, name);
    Sample sample(setup, operations);
    table.add({name, std::to_string(operations.size()), sample.files().size(), sample.live(), sample.dead()});
  }
  return table.json();
}

}  // namespace

Json run_fragmentation_study(const FragmentationSetup& setup) {
  Json result = {{"study", "fragmentation"}, {"seed", setup.seed}};
  result["samples"] = run_samples(setup);
  result["cleaning"] = run_cleaning(setup);
  result["maps"] = run_maps(setup);
  return result;
}

}  // namespace varve::bench

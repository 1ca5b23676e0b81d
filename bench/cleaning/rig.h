// A filesystem on a device in memory, driven by one thread: what the benches of this folder have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "fs/engine.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"
#include "io/trace_device.h"

namespace varve::bench {

struct RigSetup {
  std::uint32_t segment_blocks = 512;
  std::uint64_t segments = 512;
  std::string strategy = "copying", victims = "decline", placement = "learned";
  std::uint64_t seed = 1;
  bool cleaner = true;  // cleans by itself where room runs short; else only what clean() does
};

// What was written since the mount, in blocks.
struct Counts {
  std::uint64_t user = 0, data = 0, moved = 0, read = 0, nodes = 0, headers = 0;
  std::uint64_t refilled = 0;  // of data: into holes
  std::uint64_t segments = 0;  // emptied
};
Counts operator-(const Counts& a, const Counts& b);

// A segment that holds blocks of files and is full.
struct Utilisation {
  SegmentId id;
  double live = 0;  // share of its blocks
};

// All functions throw std::runtime_error with what the filesystem said.
class Rig {
 public:
  explicit Rig(const RigSetup& setup);
  ~Rig();

  fs::Filesystem& fs() { return *fs_; }
  fs::Engine& engine() { return fs_->engine(); }
  // As after a restart: nothing is in memory.
  void remount();
  // All requests from now on are told; empty: none are.
  void listen(io::TraceDevice::Listener listener) { listener_ = std::move(listener); }

  Ino make(Ino parent, const std::string& name, bool directory = false);
  void remove(Ino parent, const std::string& name);
  // Of any length. Contents differ from block to block and write to write, so that no copy could pass for another.
  void write(Ino file, std::uint64_t offset, std::uint64_t length);
  void read(Ino file, std::uint64_t length);
  void checkpoint();

  // One round by the mount's rules, with no other limit than `wanted` (blocks), and the checkpoint that frees what it
  // emptied. False: nothing was worth it. Returns the victims' live shares before.
  bool clean(std::uint64_t wanted, std::vector<double>& victims);

  Counts counts();
  std::uint64_t clean_segments();
  std::vector<Utilisation> utilisations();
  std::uint64_t fragments(Ino file);  // after a checkpoint

  // Blocks that files may fill if they are to take this share of the space. Left out is what the filesystem keeps for
  // itself: clean segments, half of what a round of cleaning gains on top, open segments that are half full, nodes in
  // segments that are half dead.
  std::uint64_t blocks_for(double utilisation);
  double written_space();  // blocks of segments that hold blocks of files, without what is not written yet

 private:
  template <class F>
  auto call(F&& function);
  void mount();

  const RigSetup setup_;
  SeededRandom random_;
  io::MemDevice memory_;
  io::TraceDevice::Listener listener_;
  io::TraceDevice device_;
  AlignedBuffer bytes_;
  std::unique_ptr<fs::Filesystem> fs_;
  std::uint64_t writes_ = 0;
};

}  // namespace varve::bench

// A device in memory that remembers every write and flush, and makes the images that a power cut could have left.
//
// Time is the position in the journal: the number of writes, discards and flushes completed so far. A write is durable
// at a position when a flush that was *submitted* after the write's completion has completed by then, or when it is a
// durable write and has completed itself. All others,
// those in flight included, may be there in any order, in part (512-byte sectors), or not at all.
// Images share their blocks with the journal: thousands of cuts are cheap. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/block_device.h"
#include "io/mem_device.h"
#include "io/mem_store.h"

namespace varve::test {

enum class CutPolicy : std::uint8_t {
  prefix,    // exactly the writes completed before the cut
  lost,      // only what is durable
  subset,    // of what is not durable, random writes
  torn,      // like prefix, but the write at the cut has only some of its sectors
  scramble,  // each write that is not durable is lost, whole or torn, in random order
  halved,    // like prefix, but a superblock's write at the cut has only its first sector (even seeds), or all but that one
};

// Names one image of one journal; print it with a failure, parse it to see the failure again.
struct Cut {
  std::size_t position = 0;
  CutPolicy policy = CutPolicy::prefix;
  std::uint64_t seed = 0;

  auto operator<=>(const Cut&) const = default;
};

std::string to_string(const Cut& cut);  // "position:policy:seed"
std::optional<Cut> parse_cut(const std::string& text);

// Which cuts to try: every policy at each position from first to last (halved only where there is a superblock to halve, both
// ways); random positions when those are too many.
struct CutPlan {
  std::size_t first = 0;
  std::size_t last = SIZE_MAX;
  std::size_t max_positions = SIZE_MAX;
  unsigned seeds = 2;  // variants of each random policy per position
  std::uint64_t seed = 1;
};

class CrashDevice : public io::BlockDevice {
 public:
  struct Options {
    // 0: requests complete in the order of their submission. Otherwise the seed of a random order.
    std::uint64_t completion_seed = 0;
  };

  explicit CrashDevice(std::uint64_t size_bytes) : CrashDevice(io::MemDevice(size_bytes)) {}
  explicit CrashDevice(const io::MemDevice& start) : CrashDevice(start, Options()) {}
  CrashDevice(const io::MemDevice& start, Options options);

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  int execute(io::IoRequest& request) override;

  // Now. What is acknowledged at this moment must be in every image cut here or later.
  std::size_t position() const;
  std::size_t flushes() const;

  std::unique_ptr<io::MemDevice> image(const Cut& cut) const;
  std::unique_ptr<io::MemDevice> image_now() const { return image(Cut{position()}); }
  std::vector<Cut> cuts(const CutPlan& plan) const;

  // From now on every request fails with EIO and changes nothing.
  void power_off();

 private:
  using BlockPtr = io::MemStore::BlockPtr;

  struct Event {
    io::IoKind kind = io::IoKind::write;
    std::uint64_t first_block = 0;
    std::vector<BlockPtr> blocks;   // write: contents; discard: nulls
    std::size_t submitted_at = 0;   // position when it was submitted
    bool durable = false;           // by itself
    std::size_t durable_until = 0;  // events below are durable when this one has completed
  };

  struct Pending {
    io::Reactor* reactor;
    io::IoRequest* request;
    std::size_t submitted_at;
  };

  void submit_shuffled(io::Reactor& reactor, io::IoRequest& request);
  void complete_any(io::Reactor& reactor);
  int execute_at(io::IoRequest& request, std::size_t submitted_at);
  void append(Event event);
  io::MemStore state_at(std::size_t position) const;
  std::size_t durable_at(std::size_t position) const;
  io::MemStore durable_state_at(std::size_t position) const;
  std::vector<std::size_t> loose_at(std::size_t position) const;
  std::optional<std::size_t> write_at_cut(std::size_t position) const;
  std::optional<std::size_t> superblock_at_cut(std::size_t position) const;

  static void apply(const Event& event, io::MemStore& store);
  static void apply_half(const Event& event, io::MemStore& store, bool first);
  static void apply_torn(const Event& event, io::MemStore& store, SeededRandom& random);

  io::Geometry geometry_;
  std::string name_ = "crash";
  Options options_;
  mutable std::mutex mutex_;
  // Under mutex_:
  io::MemStore now_;
  std::vector<Event> journal_;
  std::vector<io::MemStore> milestones_;  // the state at every kMilestone-th position
  std::size_t flushes_ = 0;
  std::size_t deepest_ = 0;  // most events that completed between submission and completion of one
  bool powered_off_ = false;
  SeededRandom random_;
  std::vector<Pending> pending_;  // of those that complete in a random order
};

}  // namespace varve::test

// Records what a script does to a device, cuts the power at chosen moments, and proves in which state the filesystem comes back: the
// one after some prefix of the script. That prefix holds everything up to the last completed fsync, sync or checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/holding_device.h"
#include "io/mem_device.h"
#include "support/crash_device.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/lockstep.h"
#include "support/manual_clock.h"
#include "support/script.h"
#include "support/snapshot.h"

namespace varve::test {

// Everything that decides what a recording looks like; prints and parses back.
struct CrashSetup {
  std::uint64_t bytes = 8u << 20;
  std::uint32_t segment_blocks = 0;
  std::uint64_t seed = 1;
  std::uint64_t completion_seed = 0;   // 0: requests complete in order
  std::uint64_t checkpoint_records = 0;  // 0: as by default
  std::uint32_t chunk_gap = 0;         // blocks behind each chunk that somebody waits for; 0: as test_options() has it
  unsigned streams = 0;                // as the mount option; 0: as test_options() has it
  std::uint32_t tails = 0;             // bytes of the longest that stand in the tree; 0: as VARVE_TEST_TAILS says
  bool discard = false;
  bool superblocks_in_place = false;
  bool protect = false;  // automatic snapshots of 80 s, one each 30 s; not when the filesystem comes back after a crash
  bool holds = false;    // what fails for want of room is held and tried again (io/holding_device.h), by a thread
  bool background = false;  // the engine's threads run beside the script: what they do when is not repeatable
  std::string strategy = fs::Options{}.strategy, victims = fs::Options{}.victims, placement = fs::Options{}.placement;

  bool operator==(const CrashSetup&) const = default;
};
std::string to_string(const CrashSetup& setup);
CrashSetup parse_setup(const std::string& text);
fs::Options options_for(const CrashSetup& setup, ManualClock& clock, Random& random);

// An image, and the model that says what is on it.
struct DurableState {
  std::shared_ptr<io::MemDevice> image;
  ModelFs model;
  std::int64_t clock_ns = 0;
};
// mkfs, the script, a clean unmount. Throws std::runtime_error with the reason if that fails.
DurableState prepare(const CrashSetup& setup, const Script& script);

class Recording {
 public:
  // Runs the script from `start`. failed() tells what went wrong without any crash.
  Recording(const CrashSetup& setup, const DurableState& start, const Script& script)
      : Recording(setup, start, script, {}) {}
  // With faults of the device below: the first answer that the model does not give ends the script, and what had been
  // acknowledged by then is what a crash may not take.
  Recording(const CrashSetup& setup, const DurableState& start, const Script& script, const std::vector<Fault>& faults);
  const std::string& failed() const { return failed_; }
  bool stopped_by_fault() const { return stopped_by_fault_; }
  std::uint64_t times_held() const { return holding_->room().times; }
  bool synced_after_fault() const { return synced_after_fault_; }  // a sync claimed success afterwards

  const CrashSetup& setup() const { return setup_; }
  const Script& script() const { return script_; }
  CrashDevice& device() { return *device_; }
  // Cuts from the first write of the script on.
  std::vector<Cut> cuts(CutPlan plan) const;

  struct State {
    std::size_t step = 0;     // number of the step that led here; 0: the start
    std::size_t begun = 0;    // device position when that step began
    ModelFs model;
    Snapshot snapshot;
  };
  const std::vector<State>& states() const { return states_; }
  // States that a crash at this cut may leave: first and last index.
  std::pair<std::size_t, std::size_t> allowed(const Cut& cut) const;
  // The state within the range that the snapshot shows; on failure a text with the nearest one.
  std::string find(const Snapshot& found, std::pair<std::size_t, std::size_t> range, std::size_t& index) const;
  std::int64_t clock_after() const { return clock_after_; }

 private:
  void run();
  void go_on_after_fault(FsFixture& fixture, const Lockstep& steps, std::size_t step, std::size_t begun);
  void add_state(std::size_t step, std::size_t begun, const ModelFs& model);
  std::string describe_mismatch(const Snapshot& found, std::pair<std::size_t, std::size_t> range) const;

  CrashSetup setup_;
  Script script_;
  std::unique_ptr<CrashDevice> device_;
  std::unique_ptr<FaultDevice> faulty_;  // on top of it
  std::unique_ptr<io::HoldingDevice> holding_;  // on top of that
  bool faults_wanted_ = false, stopped_by_fault_ = false, synced_after_fault_ = false;
  DurableState start_;
  std::vector<State> states_;
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash_;
  struct Barrier {
    std::size_t position;  // acknowledged when the device was here
    std::size_t state;
  };
  std::vector<Barrier> barriers_;
  std::int64_t clock_after_ = 0;
  std::string failed_;
};

struct VerifyOptions {
  bool check = false;         // run the independent checker before and after recovery; before it whenever a superblock is halved
  bool go_on = false;         // use the recovered filesystem: write, remount, compare
  unsigned second_cuts = 0;   // crashes during recovery, each verified in turn
};

// One crash. Empty, or what is wrong; `recovered`, if given, receives what came back.
std::string verify(Recording& recording, const Cut& cut, const VerifyOptions& options = {},
                   DurableState* recovered = nullptr);

// The whole failure: what, where, and the command that shows it again.
std::string explain(const Recording& recording, const Script& preparation, const Cut& cut, const std::string& text);

}  // namespace varve::test

#include <algorithm>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "support/crash_scenario.h"

namespace varve::test {

namespace {

constexpr io::HoldingTimes kQuickly{std::chrono::microseconds(100), std::chrono::microseconds(400), std::chrono::milliseconds(1)};

fs::Options with_protection(fs::Options options, const CrashSetup& setup) {
  if (setup.protect) options.protection = {snapshots::ProtectionSettings::Mode::on, 80, 30};
  return options;
}

void must(const Status& status, const char* what) {
  if (!status.ok()) throw std::runtime_error(fmt::format("{}: {}", what, status.error().message()));
}

}  // namespace

std::string to_string(const CrashSetup& setup) {
  return fmt::format("bytes={} segment={} seed={} completion={} records={} gap={} streams={} discard={} background={} in_place={} "
                     "protect={} holds={} tails={} strategy={} victims={} placement={}",
                     setup.bytes, setup.segment_blocks, setup.seed, setup.completion_seed, setup.checkpoint_records, setup.chunk_gap,
                     setup.streams, setup.discard ? 1 : 0, setup.background ? 1 : 0, setup.superblocks_in_place ? 1 : 0,
                     setup.protect ? 1 : 0, setup.holds ? 1 : 0, setup.tails, setup.strategy, setup.victims, setup.placement);
}

CrashSetup parse_setup(const std::string& text) {
  CrashSetup setup;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string text_value = word.substr(equals + 1);
    if (name == "strategy") setup.strategy = text_value;
    if (name == "victims") setup.victims = text_value;
    if (name == "placement") setup.placement = text_value;
    if (name == "strategy" || name == "victims" || name == "placement") continue;
    const std::uint64_t value = std::stoull(text_value);
    if (name == "bytes") setup.bytes = value;
    if (name == "segment") setup.segment_blocks = static_cast<std::uint32_t>(value);
    if (name == "seed") setup.seed = value;
    if (name == "completion") setup.completion_seed = value;
    if (name == "records") setup.checkpoint_records = value;
    if (name == "gap") setup.chunk_gap = static_cast<std::uint32_t>(value);
    if (name == "streams") setup.streams = static_cast<unsigned>(value);
    if (name == "tails") setup.tails = static_cast<std::uint32_t>(value);
    if (name == "discard") setup.discard = value != 0;
    if (name == "in_place") setup.superblocks_in_place = value != 0;
    if (name == "protect") setup.protect = value != 0;
    if (name == "holds") setup.holds = value != 0;
    if (name == "background") setup.background = value != 0;
  }
  return setup;
}

fs::Options options_for(const CrashSetup& setup, ManualClock& clock, Random& random) {
  fs::Options options = test_options(clock, random);
  options.memory_bytes = 16u << 20;
  options.discard = setup.discard;
  options.strategy = setup.strategy;
  options.victims = setup.victims;
  options.placement = setup.placement;
  if (setup.chunk_gap != 0) options.chunk_gap = setup.chunk_gap;
  if (setup.streams != 0) options.streams = setup.streams;
  if (setup.checkpoint_records != 0) options.checkpoint_records = setup.checkpoint_records;
  return options;
}

DurableState prepare(const CrashSetup& setup, const Script& script) {
  DurableState state;
  state.image = std::make_shared<io::MemDevice>(setup.bytes);
  ManualClock clock;
  SeededRandom random(setup.seed);
  FsFixture fixture(*state.image, with_protection(options_for(setup, clock, random), setup));
  Lockstep steps(fixture, clock);
  must(make_image(*state.image, {setup.segment_blocks, setup.seed, setup.superblocks_in_place, setup.tails}), "mkfs");
  must(fixture.mount(), "mount");
  must(steps.adopt_root(), "root");
  const std::string failure = run_script(steps, script);
  if (!failure.empty()) throw std::runtime_error("preparation: " + failure);
  must(fixture.unmount(), "unmount");
  if (setup.protect) {  // the unmount may have made one
    must(fixture.mount(), "mount");
    if (const std::string text = steps.follow_automatic(steps.model); !text.empty()) throw std::runtime_error(text);
    must(fixture.unmount(), "unmount");
  }
  state.model = steps.model;
  state.model.drop_all_references();
  state.clock_ns = clock.elapsed();
  return state;
}

Recording::Recording(const CrashSetup& setup, const DurableState& start, const Script& script,
                     const std::vector<Fault>& faults)
    : setup_(setup),
      script_(script),
      device_(std::make_unique<CrashDevice>(*start.image, CrashDevice::Options{setup.completion_seed})),
      faulty_(std::make_unique<FaultDevice>(*device_)),
      holding_(std::make_unique<io::HoldingDevice>(*faulty_, kQuickly)),
      faults_wanted_(!faults.empty()),
      start_(start) {
  for (const Fault& fault : faults) faulty_->add(fault);
  run();
}

// A crash takes every reference with it, so states are kept without them.
void Recording::add_state(std::size_t step, std::size_t begun, const ModelFs& model) {
  State state{step, begun, model, {}};
  state.model.drop_all_references();
  state.snapshot = snapshot_of(state.model);
  by_hash_.emplace(hash_of(state.snapshot), states_.size());
  states_.push_back(std::move(state));
}

void Recording::run() {
  ManualClock clock;
  clock.set_elapsed(start_.clock_ns);
  SeededRandom random(setup_.seed + 77);
  fs::Options options = with_protection(options_for(setup_, clock, random), setup_);
  options.background = setup_.background;
  FsFixture fixture(*holding_, options);
  Lockstep steps(fixture, clock);
  steps.model = start_.model;
  add_state(0, 0, steps.model);
  barriers_.push_back({0, 0});
  const Status mounted = fixture.mount();
  if (!mounted.ok() && faulty_->hits() > 0) {
    stopped_by_fault_ = true;
    return;
  }
  if (!mounted.ok()) failed_ = "mount: " + mounted.error().message();
  else if (setup_.holds) must(holding_->begin({}), "holding");
  for (std::size_t i = 0; i < script_.size() && failed_.empty(); ++i) {
    const std::size_t begun = device_->position();
    failed_ = steps.run(script_[i]);
    if (!failed_.empty() && faults_wanted_ && faulty_->hits() > 0) {
      failed_.clear();
      go_on_after_fault(fixture, steps, i + 1, begun);
      break;
    }
    for (const ModelFs& state : steps.between()) add_state(i + 1, begun, state);
    if (steps.changed()) add_state(i + 1, begun, steps.model);
    if (is_barrier(script_[i].verb) && steps.succeeded()) barriers_.push_back({device_->position(), states_.size() - 1});
  }
  clock_after_ = clock.elapsed();
  if (failed_.empty()) fixture.crash();
}

// The step that failed may be there after a crash or not. Nothing may claim to be durable any more unless it is.
void Recording::go_on_after_fault(FsFixture& fixture, const Lockstep& steps, std::size_t step, std::size_t begun) {
  stopped_by_fault_ = true;
  const std::size_t acknowledged = states_.size() - 1;
  add_state(step, begun, steps.model);
  if (!fixture.mounted()) return;
  for (int i = 0; i < 3; ++i) {
    auto synced = fixture.call([&](fs::Operation& op) { return fixture.fs().sync(op); });
    if (!synced.ok()) continue;
    synced_after_fault_ = true;
    barriers_.push_back({device_->position(), acknowledged});
  }
}

std::vector<Cut> Recording::cuts(CutPlan plan) const { return device_->cuts(plan); }

std::pair<std::size_t, std::size_t> Recording::allowed(const Cut& cut) const {
  std::size_t low = 0;
  for (const Barrier& barrier : barriers_) {
    if (barrier.position <= cut.position) low = std::max(low, barrier.state);
  }
  std::size_t high = low;
  while (high + 1 < states_.size() && states_[high + 1].begun <= cut.position) ++high;
  return {low, high};
}

std::string Recording::find(const Snapshot& found, std::pair<std::size_t, std::size_t> range,
                            std::size_t& index) const {
  const auto [first, end] = by_hash_.equal_range(hash_of(found));
  std::string identity;
  for (auto it = first; it != end; ++it) {
    if (it->second < range.first || it->second > range.second) continue;
    identity = difference(states_[it->second].snapshot, found);
    if (!identity.empty()) continue;
    index = it->second;
    return "";
  }
  return identity.empty() ? describe_mismatch(found, range) : "right names and bytes, wrong identity:\n" + identity;
}

std::string Recording::describe_mismatch(const Snapshot& found, std::pair<std::size_t, std::size_t> range) const {
  std::size_t nearest = range.first;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const std::size_t count = count_differences(states_[i].snapshot, found);
    const bool inside = i >= range.first && i <= range.second;
    if (count > fewest || (count == fewest && !inside)) continue;
    fewest = count;
    nearest = i;
  }
  const auto step_of = [this](std::size_t state) { return states_[state].step; };
  std::string text = fmt::format("allowed are the states after steps {} to {}; ", step_of(range.first),
                                 step_of(range.second));
  if (fewest == 0) return text + fmt::format("found is the state after step {}\n", step_of(nearest));
  return text + fmt::format("nearest is the state after step {}, but:\n{}", step_of(nearest),
                            difference(states_[nearest].snapshot, found));
}

}  // namespace varve::test

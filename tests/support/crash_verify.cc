#include <fmt/format.h>

#include "support/crash_scenario.h"
#include "support/script_generator.h"
#include "support/world.h"

namespace varve::test {

namespace {

constexpr std::int64_t kDowntimeNs = 3'600'000'000'000;

// A mount of a crash image, with time and randomness that depend on the cut alone.
struct Revival {
  Revival(const Recording& recording, io::BlockDevice& device, std::uint64_t salt)
      : random(recording.setup().seed * 1'000'003 + salt),
        fixture(device, options_for(recording.setup(), clock, random)) {
    clock.set_elapsed(recording.clock_after() + kDowntimeNs);
  }

  ManualClock clock;
  SeededRandom random;
  FsFixture fixture;
};

std::uint64_t salt_of(const Cut& cut) {
  return cut.position * 31 + cut.seed * 7 + static_cast<std::uint64_t>(cut.policy);
}

Cut random_cut(Dice& dice, std::size_t end) {
  return {dice.below(end + 1), static_cast<CutPolicy>(dice.below(6)), dice.below(1000)};
}

std::string mount(FsFixture& fixture) {
  const Status status = fixture.mount();
  return status.ok() ? "" : "does not mount: " + status.error().message();
}

// Mounts and compares; leaves the filesystem mounted.
std::string revive(Recording& recording, FsFixture& fixture, std::pair<std::size_t, std::size_t> range,
                   std::size_t& state) {
  std::string text = mount(fixture);
  if (text.empty()) text = recording.find(snapshot_of(fixture), range, state);
  return text;
}

// Nothing that is written after a recovery may be hurt by what the crash left behind.
std::string go_on(const Recording& recording, Revival& revival, std::size_t state, std::uint64_t seed) {
  Lockstep steps(revival.fixture, revival.clock);
  steps.model = recording.states()[state].model;
  ScriptProfile profile;
  profile.steps = 25;
  profile.fsync_weight = 10;
  ScriptGenerator generator(seed, profile);
  for (std::size_t i = 0; i < profile.steps; ++i) {
    std::string text = steps.run(generator.next(steps.model));
    if (!text.empty()) return "after recovery: " + text;
  }
  std::string text = steps.run(*parse_step("remount"));
  if (text.empty()) text = compare(revival.fixture, steps.model);
  return text.empty() ? "" : "after recovery, more operations and a remount:\n" + text;
}

// Cuts the power while a mount recovers, and once more after it has returned.
std::string crash_again(Recording& recording, const io::MemDevice& image, const Cut& cut,
                        std::pair<std::size_t, std::size_t> range, unsigned count) {
  CrashDevice device(image, CrashDevice::Options{recording.setup().completion_seed});
  std::size_t first_state = 0;
  {
    Revival revival(recording, device, salt_of(cut));
    std::string text = revive(recording, revival.fixture, range, first_state);
    if (!text.empty()) return text;
    revival.fixture.crash();
  }
  Dice dice(salt_of(cut));
  for (unsigned i = 0; i <= count; ++i) {
    Cut second{device.position(), CutPolicy::lost, 0};  // the mount has returned: exactly its state
    if (i < count) second = random_cut(dice, device.position());
    const bool served = second.position == device.position();
    const auto second_range = served ? std::pair(first_state, first_state) : range;
    const auto second_image = device.image(second);
    Revival revival(recording, *second_image, salt_of(second));
    std::size_t state = 0;
    const std::string text = revive(recording, revival.fixture, second_range, state);
    if (!text.empty()) return fmt::format("second crash, during recovery, at {}:\n{}", to_string(second), text);
  }
  return "";
}

// What a crash has left, before anybody mounts it: whatever was torn, the checkpoint that counts is without an error.
std::string check_as_left(const io::MemDevice& image) {
  const auto copy = image.snapshot();
  const auto report = check::check(*copy, {});
  if (!report.ok()) return "the checker, before the mount, gives up: " + report.error().message();
  std::string text;
  for (const check::Problem& problem : report->problems.kept())
    if (check::severity_of(problem.code) == check::Severity::error) text += check::to_line(problem) + "\n";
  return text.empty() ? "" : "checker before the mount:\n" + text;
}

std::string check_recovered(const Recording& recording, const io::MemDevice& image, const Cut& cut) {
  const auto copy = image.snapshot();
  Revival revival(recording, *copy, salt_of(cut));
  std::string text = mount(revival.fixture);
  if (!text.empty()) return text;
  const Status status = revival.fixture.unmount();
  if (!status.ok()) return "unmount after recovery: " + status.error().message();
  text = check_image(*copy);
  return text.empty() ? "" : "checker after recovery:\n" + text;
}

}  // namespace

std::string verify(Recording& recording, const Cut& cut, const VerifyOptions& options, DurableState* recovered) {
  const auto range = recording.allowed(cut);
  const auto image = recording.device().image(cut);
  std::string text;
  if (options.check || cut.policy == CutPolicy::halved) text = check_as_left(*image);
  if (!text.empty()) return text;
  if (options.second_cuts > 0) text = crash_again(recording, *image, cut, range, options.second_cuts);
  if (!text.empty()) return text;
  if (options.check) text = check_recovered(recording, *image, cut);
  if (!text.empty()) return text;

  const std::shared_ptr<io::MemDevice> device = image->snapshot();
  Revival revival(recording, *device, salt_of(cut));
  std::size_t state = 0;
  text = revive(recording, revival.fixture, range, state);
  if (!text.empty()) return text;
  if (recovered) *recovered = {device, recording.states()[state].model, revival.clock.elapsed()};
  if (options.go_on) text = go_on(recording, revival, state, salt_of(cut));
  return text;
}

std::string explain(const Recording& recording, const Script& preparation, const Cut& cut, const std::string& text) {
  const CrashSetup& setup = recording.setup();
  std::string steps;
  for (std::size_t i = 0; i < recording.script().size(); ++i) {
    steps += fmt::format("  {:4} {}\n", i + 1, to_string(recording.script()[i]));
  }
  return fmt::format(
      "crash at {} of {} ({}):\n{}\nscript:\n{}\nrepeat with:\n"
      "VARVE_CRASH_SETUP='{}' VARVE_CRASH_CUT='{}' VARVE_CRASH_START='{}' VARVE_CRASH_SCRIPT='{}' "
      "crash_test --gtest_filter=Repeat.crash\n",
      to_string(cut), "the device's journal", to_string(setup), text, steps, to_string(setup), to_string(cut),
      to_string(preparation, "; "), to_string(recording.script(), "; "));
}

}  // namespace varve::test

#include "fuzz/structure/trial.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string>

#include "check/check.h"
#include "fs/engine.h"
#include "fsck/recovery.h"
#include "fuzz/structure/use.h"
#include "fuzz/target.h"
#include "repair/repair.h"

namespace varve::fuzz {

namespace {

using check::Code;

// fsck says things on its way that nobody would read. Memory that a mount gives back serves the next one: pages of zeros from the kernel
// would take a quarter of the time.
void prepare_process() {
  static const bool once = [] {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("nowhere"));
    constexpr int kKept = 64 << 20;
    ::mallopt(M_MMAP_THRESHOLD, kKept);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
    return true;
  }();
  (void)once;
}

std::string lines(const check::Report& report) {
  std::string text;
  for (const check::Problem& problem : report.problems.kept()) text += to_line(problem) + "\n";
  return text;
}

// fsck lets a sum of rates count what only snapshots have, which it need not. One that counts more of it than their lists say is too high
// when they have gone: that is advice for cleaning and no more.
std::uint64_t too_high_rates(const check::Report& report) {
  return static_cast<std::uint64_t>(std::ranges::count_if(report.problems.kept(), [](const check::Problem& problem) {
    return problem.code == Code::free_map_counter_wrong && problem.detail.find("sum of rates") != std::string::npos;
  }));
}

bool are_equal(const io::MemDevice& one, const io::MemDevice& other) {
  const io::MemStore a = one.store(), b = other.store();
  for (std::uint64_t i = 0; i < a.blocks(); ++i) {
    const auto left = a.block(i), right = b.block(i);
    if (left != right && (!left || !right || left->bytes != right->bytes)) return false;
  }
  return true;
}

// As `fsck -n` says it: with a log, of what its replay makes.
bool is_whole(io::MemDevice& device, TrialCounts& counts) {
  ++counts.checks;
  const auto report = check::check(device, {.verify_data = true});
  if (!report.ok() || report->errors() > 0 || report->problems.count(Code::not_compared) > 0) return false;
  if (report->super.clean && !report->needs_recovery) return true;
  const auto replayed = device.snapshot();
  if (!fsck::recover(*replayed, repair::Tolerance::nothing).ok()) return false;
  ++counts.checks;
  const auto after = check::check(*replayed, {.verify_data = true});
  return after.ok() && after->errors() == 0;
}

class Trial {
 public:
  Trial(const io::MemDevice& device, std::uint8_t plan, TrialCounts& counts) : device_(device), plan_(plan), counts_(counts) {}

  void run() {
    ++counts_.images;
    if (is_whole(*device_.snapshot(), counts_)) {
      ++counts_.whole;
      if (with_repair()) leave_alone(*device_.snapshot(), "fsck calls it whole, but a repair");
      return use_whole(*device_.snapshot(), "fsck calls it whole, but", false);
    }
    suffer_damage(*device_.snapshot());
    if (with_repair()) repair(*device_.snapshot());
  }

  void run(Stage stage) {
    if (stage == Stage::all) return run();
    ++counts_.images;
    if (stage == Stage::check) counts_.checks += check::check(*device_.snapshot(), {.verify_data = true}).ok();
    if (stage == Stage::use) suffer_damage(*device_.snapshot());
    if (stage == Stage::repair) counts_.repairs += repair::repair(*device_.snapshot(), fsck::recover, {.search = true}).ok();
  }

 private:
  bool with_repair() const { return (plan_ & kNoRepair) == 0; }

  // Nothing is wrong with it, or only what no repair can help: so nothing is done, but for a log.
  static void leave_alone(io::MemDevice& device, const std::string& why) {
    const auto done = repair::repair(device, fsck::recover, {});
    require(done.ok(), why + " refuses it: " + (done.ok() ? "" : done.error().message()));
    require(done->ended.ok(), why + " fails: " + (done->ended.ok() ? "" : done->ended.error().message()));
    if (done->before.warnings() > 0) return;  // as after a crash
    for (const repair::Action& action : done->actions.kept())
      require(action.code == repair::ActionCode::log_replayed, why + " does this: " + to_line(action));
  }

  fs::Options options(bool read_only) {
    fs::Options options = test::test_options(clock_, random_);
    options.memory_bytes = 8U << 20;
    options.read_only = read_only;
    clock_.set_elapsed(9'000'000'000'000);
    return options;
  }

  void suffer_damage(io::MemDevice& device) {
    test::FsFixture fixture(device, options(plan_ & kReadOnly));
    ++counts_.mounts;
    if (!fixture.mount().ok()) return;
    ++counts_.mounted;
    Use(fixture, false, false).all(plan_ & kSnapshots);
    if (!fixture.unmount().ok()) fixture.crash();
  }

  void use_whole(io::MemDevice& device, const std::string& why, bool damage) {
    test::FsFixture fixture(device, options(false));
    ++counts_.mounts;
    const Status mounted = fixture.mount();
    // It can be read, and says why no more.
    if (mounted.fails_with(Errc::out_of_range) || mounted.fails_with(Errc::no_space) || mounted.fails_with(Errc::unknown_feature)) return;
    require(mounted.ok(), why + " it does not mount: " + (mounted.ok() ? "" : mounted.error().message()));
    Use use(fixture, true, damage);
    use.all(plan_ & kSnapshots);
    require(use.broken().empty(), why + " " + use.broken());
    const Status unmounted = fixture.unmount();
    require(unmounted.ok() || damage, why + " it does not unmount: " + (unmounted.ok() ? "" : unmounted.error().message()));
    if (damage) return;
    ++counts_.checks;
    const auto after = check::check(device, {.verify_data = true});
    require(after.ok(), why + " cannot be checked after use");
    require(after->errors() == too_high_rates(*after), why + " has errors after use:\n" + lines(*after));
  }

  void repair(io::MemDevice& device) {
    ++counts_.repairs;
    const auto before = device.snapshot();
    const auto done = repair::repair(device, fsck::recover, {.search = true});
    if (!done.ok() || !done->ended.ok()) return;
    // The rest of the device may be brought back: the one error that is left as it is, with all others.
    if (done->before.problems.count(Code::device_too_small) > 0)
      return require(are_equal(device, *before), "a part of a larger filesystem was changed");
    ++counts_.checks;
    const auto report = check::check(device, {.verify_data = true});
    require(report.ok(), "repaired, and cannot be checked");
    const auto of = [&](Code code) { return report->problems.count(code); };
    const std::uint64_t data = of(Code::data_damaged) + of(Code::data_unreadable);
    require(report->errors() - data == done->errors_left(), "the repair does not know what it has left");
    // What is damaged of a snapshot's tree stays, and goes with the snapshot.
    const std::uint64_t left = data + of(Code::snapshot_damaged);
    require(report->errors() <= left, "the repair left errors:\n" + lines(*report));
    ++counts_.repaired;
    leave_alone(*device.snapshot(), "it is repaired, but the next repair");
    use_whole(device, "it is repaired, but", left > 0);
  }

  const io::MemDevice& device_;
  const std::uint8_t plan_;
  TrialCounts& counts_;
  test::ManualClock clock_;
  SeededRandom random_{4711};
};

}  // namespace

void suffer(const io::MemDevice& device, std::uint8_t plan, TrialCounts& counts) { suffer_stage(Stage::all, device, plan, counts); }

void suffer_stage(Stage stage, const io::MemDevice& device, std::uint8_t plan, TrialCounts& counts) {
  prepare_process();
  Trial(device, plan, counts).run(stage);
}

}  // namespace varve::fuzz

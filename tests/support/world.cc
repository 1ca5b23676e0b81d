#include "support/world.h"

#include <cctype>

#include <fmt/format.h>

#include "fs/engine.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/shrink.h"

namespace varve::test {

namespace {

fs::Options options_for(const WorldParameters& parameters, ManualClock& clock, Random& random) {
  fs::Options options = test_options(clock, random);
  if (parameters.options) parameters.options(options);
  return options;
}

std::string describe(const char* what, const Status& status) {
  return status.ok() ? "" : fmt::format("{}: {}", what, status.error().message());
}

}  // namespace

std::string foresight(FsFixture& fixture) {
  const std::uint64_t nodes = fixture.store().counters().unforeseen_nodes;
  return nodes ? fmt::format("checkpoints wrote {} nodes more than was reckoned with", nodes) : "";
}

std::string check_image(io::BlockDevice& device, bool verify_data) {
  check::CheckOptions options;
  options.verify_data = verify_data;
  auto report = check::check(device, options);
  if (!report.ok()) return "the checker gives up: " + report.error().message();
  std::string text;
  if (report->needs_recovery) text = "the checker finds the image unclean\n";
  if (report->errors() + report->warnings() == 0) return text;
  for (const check::Problem& problem : report->problems.kept()) text += check::to_line(problem) + "\n";
  return text;
}

World::World(const WorldParameters& p)
    : parameters(p),
      device(p.bytes),
      random(p.image.seed + 1),
      fixture(device, options_for(p, clock, random)),
      steps(fixture, clock, p.lockstep) {}

std::string World::start() {
  Status status = make_image(device, parameters.image);
  if (status.ok()) status = fixture.mount();
  if (status.ok()) status = steps.adopt_root();
  return describe("cannot start", status);
}

std::string World::compare_now() {
  std::string text = steps.follow_automatic(steps.model);
  return text.empty() ? compare(fixture, steps.model) : text;
}

std::string World::run(const Script& script, std::size_t interval) {
  for (std::size_t i = 0; i < script.size(); ++i) {
    std::string text = steps.run(script[i]);
    const bool look = (i + 1) % interval == 0 || i + 1 == script.size();
    if (text.empty() && look) text = compare_now();
    if (!text.empty()) return fmt::format("after step {} ({}):\n{}", i + 1, to_string(script[i]), text);
  }
  return "";
}

std::string World::finish() {
  steps.model.drop_all_references();
  if (auto text = foresight(fixture); !text.empty()) return text;
  if (auto text = describe("unmount", fixture.unmount()); !text.empty()) return text;
  if (auto text = check_image(device); !text.empty()) return "checker after unmount:\n" + text;
  if (auto text = describe("mount", fixture.mount()); !text.empty()) return text;
  const std::string text = compare_now();
  return text.empty() ? "" : "after the last remount:\n" + text;
}

std::string run_in_world(const WorldParameters& parameters, const Script& script, std::size_t interval) {
  World world(parameters);
  std::string text = world.start();
  if (text.empty()) text = world.run(script, interval);
  if (text.empty()) text = world.finish();
  return text;
}

namespace {

// What kind of failure a text is about: shrinking must not wander off to another one.
std::string kind_of(const std::string& failure) {
  std::string kind;
  for (const char c : failure.substr(failure.find('\n') == std::string::npos ? 0 : failure.find('\n'))) {
    if (!std::isdigit(static_cast<unsigned char>(c))) kind += c;
    if (kind.size() == 40) break;
  }
  return kind;
}

}  // namespace

std::string report(const WorldParameters& parameters, const Script& script, const std::string& failure,
                   std::uint64_t seed) {
  // A single step can only be blamed when every step is followed by a look.
  const std::string at_once = run_in_world(parameters, script, 1);
  const std::string kind = kind_of(at_once);
  const auto fails = [&](const Script& candidate) {
    const std::string text = run_in_world(parameters, candidate, 1);
    return !text.empty() && kind_of(text) == kind;
  };
  if (at_once.empty()) return fmt::format("seed {}, {} steps: {}\n", seed, script.size(), failure);
  const Script small = shrink(script, fails);
  return fmt::format("seed {}: {}\nsmallest script that fails ({} bytes, image seed {}):\n{}\n\n{}", seed, failure,
                     parameters.bytes, parameters.image.seed, to_string(small), run_in_world(parameters, small, 1));
}

}  // namespace varve::test

#include "sweep.h"

#include <stdexcept>

#include <fmt/format.h>

namespace varve::test {

namespace {

std::uint64_t states = 0;

bool turn(unsigned every) { return every != 0 && states % every == 0; }

}  // namespace

std::uint64_t states_tried() { return states; }

SweepOptions exhaustive() {
  SweepOptions options;
  options.plan.seeds = 4;
  options.check_every = 5;
  options.go_on_every = 5;
  options.second_every = 5;
  return options;
}

std::string sweep(const CrashSetup& setup, const DurableState& start, const Script& preparation, const Script& script,
                  const SweepOptions& options) {
  Recording recording(setup, start, script);
  if (!recording.failed().empty()) {
    return fmt::format("fails without a crash ({}): {}\nstart: {}\nscript: {}", to_string(setup), recording.failed(),
                       to_string(preparation, "; "), to_string(script, "; "));
  }
  for (const Cut& cut : recording.cuts(options.plan)) {
    VerifyOptions verify_options;
    verify_options.check = turn(options.check_every);
    verify_options.go_on = turn(options.go_on_every);
    verify_options.second_cuts = turn(options.second_every) ? options.second_cuts : 0;
    ++states;
    const std::string text = verify(recording, cut, verify_options);
    if (!text.empty()) return explain(recording, preparation, cut, text);
  }
  return "";
}

std::string sweep_all(const CrashSetup& setup, const std::string& preparation, const std::string& script_text,
                      const SweepOptions& options) {
  const Script before = script(preparation);
  return sweep(setup, prepare(setup, before), before, script(script_text), options);
}

}  // namespace varve::test

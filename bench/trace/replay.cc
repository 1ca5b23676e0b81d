#include "trace/replay.h"

#include <algorithm>

namespace varve::bench {

Work operator-(const Work& after, const Work& before) {
  Work out = after;
  for (std::size_t op = 0; op < kOps; ++op) {
    out.kinds[op].requests -= before.kinds[op].requests;
    out.kinds[op].bytes -= before.kinds[op].bytes;
    out.kinds[op].ns -= before.kinds[op].ns;  // longest_ns stays that of all
  }
  out.programmed -= before.programmed;
  out.copied -= before.copied;
  out.erases -= before.erases;
  out.seeks -= before.seeks;
  out.background_ns -= before.background_ns;
  for (std::size_t state = 0; state < kPowerStates; ++state) {
    out.energy.states[state].seconds -= before.energy.states[state].seconds;
    out.energy.states[state].joules -= before.energy.states[state].joules;
  }
  out.energy.spin_ups -= before.energy.spin_ups;
  return out;
}

Replay::Replay(DeviceModel& model, ReplayMode mode, double think) : model_(model), mode_(mode), think_(think) {}

std::uint64_t Replay::arrival_of(const TracedRequest& event) {
  if (mode_ == ReplayMode::open) return std::max(event.at_ns, last_issue_ns_);
  if (!event.timed || event.at_ns <= last_answer_ns_) return model_.free_at_ns();
  const double rest = static_cast<double>(event.at_ns - last_answer_ns_) * think_;
  return model_.free_at_ns() + (last_answer_ns_ > 0 ? static_cast<std::uint64_t>(rest) : 0);
}

void Replay::add(const TracedRequest& event) {
  const std::uint64_t arrival = arrival_of(event);
  if (event.flush_first) model_.serve({Op::flush}, arrival);
  model_.serve(event.request, std::max(arrival, event.flush_first ? model_.free_at_ns() : 0));
  last_issue_ns_ = std::max(last_issue_ns_, event.at_ns);
  last_answer_ns_ = std::max(last_answer_ns_, event.at_ns + event.took_ns);
}

void Replay::mark(const std::string& name) {
  end_phase();
  name_ = name;
}

void Replay::end_phase() {
  Phase phase{name_, model_.work() - before_, static_cast<double>(model_.free_at_ns() - begin_ns_) * 1e-9, 0};
  before_ = model_.work();
  begin_ns_ = model_.free_at_ns();
  phase.joules = phase.work.joules() + phase.seconds * model_.facts().idle_watts;
  const auto unused = [](const Work::Kind& kind) { return kind.requests == 0; };
  const bool empty = std::all_of(phase.work.kinds.begin(), phase.work.kinds.end(), unused);
  if (!empty) phases_.push_back(std::move(phase));
}

std::vector<Phase> Replay::finish() {
  end_phase();
  return std::move(phases_);
}

}  // namespace varve::bench

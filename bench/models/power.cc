#include "models/power.h"

#include <algorithm>

namespace varve::bench {

const char* name_of(PowerState state) {
  static constexpr const char* kNames[] = {"seek",        "turn",           "read",    "write",  "performance_idle",
                                           "active_idle", "low_power_idle", "standby", "spin_up"};
  return kNames[static_cast<std::size_t>(state)];
}

void Energy::spend(PowerState state, double seconds, double watts) {
  Spent& spent = states[static_cast<std::size_t>(state)];
  spent.seconds += seconds;
  spent.joules += seconds * watts;
}

double Energy::joules_of_all() const {
  double sum = 0;
  for (const Spent& spent : states) sum += spent.joules;
  return sum;
}

void PowerLadder::stretch(double factor) {
  for (Step& step : steps_) step.after *= factor;
}

void PowerLadder::set_standby(double seconds) { standby_after_ = has_standby() ? seconds : 0; }

double PowerLadder::break_even() const {
  if (steps_.empty() || !has_standby()) return 0;
  return (standby_.wake_joules - standby_.watts * standby_.recovery) / (steps_.front().watts - standby_.watts);
}

double PowerLadder::rest(double seconds, double idle_watts, Energy& energy, bool woken) const {
  const double awake = standby_after_ > 0 ? std::min(seconds, standby_after_) : seconds;
  double recovery = 0;
  for (std::size_t i = 0; i < steps_.size() && steps_[i].after < awake; ++i) {
    const double end = i + 1 < steps_.size() ? std::min(steps_[i + 1].after, awake) : awake;
    energy.spend(steps_[i].state, end - steps_[i].after, steps_[i].watts - idle_watts);
    recovery = steps_[i].recovery;
  }
  if (awake == seconds) return recovery;
  energy.spend(PowerState::standby, seconds - awake, standby_.watts - idle_watts);
  if (!woken) return 0;
  energy.spend(PowerState::spin_up, standby_.recovery, standby_.wake_joules / standby_.recovery - idle_watts);
  ++energy.spin_ups;
  return standby_.recovery;
}

}  // namespace varve::bench

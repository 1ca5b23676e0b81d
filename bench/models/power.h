// What a device draws, by what it is doing, and how it goes to sleep while nothing is asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace varve::bench {

// The first ones are work; those from performance_idle on pass between requests.
enum class PowerState : std::uint8_t { seek, turn, read, write, performance_idle, active_idle, low_power_idle, standby, spin_up };
inline constexpr std::size_t kPowerStates = 9;
const char* name_of(PowerState state);

struct Energy {
  struct Spent {
    double seconds = 0, joules = 0;
  };
  std::array<Spent, kPowerStates> states;
  std::uint64_t spin_ups = 0;

  // `watts` beyond what the device draws when it idles: may be less than none.
  void spend(PowerState state, double seconds, double watts);
  double joules_of_all() const;
  const Spent& operator[](PowerState state) const { return states[static_cast<std::size_t>(state)]; }
};

// States that a device falls into, one after the other, the longer it has nothing to do. Data sheets call the times of their drives
// adaptive: those here are chosen, and what is concluded from them has to hold for others as well.
class PowerLadder {
 public:
  struct Step {
    PowerState state = PowerState::low_power_idle;
    double after = 0;      // seconds of rest
    double watts = 0;      // all of it
    double recovery = 0;   // seconds until it works again
    double wake_joules = 0;
  };

  PowerLadder() = default;
  // The first step begins at once; `standby` is not used before set_standby() says after how long.
  PowerLadder(std::vector<Step> steps, Step standby) : steps_(std::move(steps)), standby_(standby) {}

  // Without power management: the first step for ever.
  void stay_awake() { steps_.resize(steps_.empty() ? 0 : 1); }
  void stretch(double factor);           // of all times but standby's
  void set_standby(double seconds);      // 0: never
  bool has_standby() const { return standby_.state == PowerState::standby; }
  // Rest from which standby saves energy: (E_up - P_standby·t_up)/(P_idle - P_standby), with the power of the first step.
  double break_even() const;

  // Accounts for so long a rest; if a request has ended it, returns the seconds until the device serves that.
  double rest(double seconds, double idle_watts, Energy& energy, bool woken = true) const;

 private:
  std::vector<Step> steps_;
  Step standby_;
  double standby_after_ = 0;
};

}  // namespace varve::bench

// A storage device as a model: how long each request keeps it, and what it does inside.
//
// Nothing here was measured on a device by us: docs/devices.md names the source of each parameter. Time is device time: it depends on
// the requests and on when they come, never on the machine that computes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/power.h"

namespace varve::bench {

enum class Op : std::uint8_t { read, write, flush, discard };
inline constexpr std::size_t kOps = 4;

struct Request {
  Op op = Op::read;
  std::uint64_t offset = 0, length = 0;  // bytes
  bool durable = false;                  // a write that a cache may not keep

  std::uint64_t end() const { return offset + length; }
};

// What a device has done so far.
struct Work {
  struct Kind {
    std::uint64_t requests = 0, bytes = 0, ns = 0, longest_ns = 0;
  };
  std::array<Kind, kOps> kinds;
  std::uint64_t programmed = 0;  // bytes: what was written to the medium, copies included
  std::uint64_t copied = 0;      // bytes of these that the device itself has moved
  std::uint64_t erases = 0;      // of whole erase units
  std::uint64_t seeks = 0;
  std::uint64_t background_ns = 0;  // busy with what it began while no request was waiting
  Energy energy;                 // above idling, by what the device was doing

  double joules() const { return energy.joules_of_all(); }  // above idling

  Kind& operator[](Op op) { return kinds[static_cast<std::size_t>(op)]; }
  const Kind& operator[](Op op) const { return kinds[static_cast<std::size_t>(op)]; }
  std::uint64_t busy_ns() const;  // with requests
};

struct Facts {
  std::string name = {};
  std::string kind = {};         // in words
  std::uint64_t size = 0;        // bytes
  std::uint64_t erase_unit = 0;  // bytes; 0: has none
  bool rotational = false;
  bool discards = false;
  double idle_watts = 0;
  double erase_cycles = 0;  // that a block of it stands; 0: does not wear, or nothing is known
};

// Belongs to one thread.
class DeviceModel {
 public:
  // `at_once`: so many requests are served at a time.
  explicit DeviceModel(Facts facts, unsigned at_once = 1) : facts_(std::move(facts)), lanes_(at_once, 0) {}
  virtual ~DeviceModel() = default;
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;

  const Facts& facts() const { return facts_; }
  const Work& work() const { return work_; }
  void forget_work() { work_ = {}; }
  // What it does while nothing is asked for; by default it draws its idle_watts.
  PowerLadder& power() { return power_; }
  // The most that one erase unit was erased; 0: the model does not tell them apart.
  virtual std::uint64_t most_erases() const { return 0; }

  std::size_t at_once() const { return lanes_.size(); }
  // Carries the request out, which has reached the device at `now_ns`; returns how long it keeps one of its at_once() places, in ns. If
  // none was free then, it waits for the first one. `now_ns` never falls.
  std::uint64_t serve(const Request& request, std::uint64_t now_ns);
  std::uint64_t done_at_ns() const { return done_at_ns_; }  // when the request that it has served last is done
  // When all that it was asked for is done.
  std::uint64_t free_at_ns() const { return free_at_ns_; }
  // Nothing is asked for until then: accounts for that, as serve() does for the time before a request.
  void leave_alone(std::uint64_t until_ns);
  // Which of those that wait a free device takes next, by its place. Never called with none.
  virtual std::size_t choose(std::span<const Request> waiting) const {
    (void)waiting;
    return 0;
  }

 protected:
  // What a request takes: first a time in which others can be served beside it, then one in which the medium is its own.
  struct Duration {
    double beside = 0, alone = 0;  // seconds
  };
  virtual Duration seconds_for(const Request& request) = 0;  // whole pages of 4 KiB
  // Nothing was asked for in this time. Returns how much longer what the device has begun meanwhile takes, in seconds.
  virtual double idle(double seconds) {
    (void)seconds;
    return 0;
  }
  Work& done() { return work_; }

 private:
  double rest(double seconds, bool woken);

  const Facts facts_;
  Work work_;
  PowerLadder power_;
  std::uint64_t free_at_ns_ = 0;
  std::vector<std::uint64_t> lanes_;  // when each of the requests that are served at a time is done
  std::uint64_t medium_free_at_ns_ = 0, done_at_ns_ = 0;
};

}  // namespace varve::bench

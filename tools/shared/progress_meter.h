// How far something long has come: one line on a terminal that is written over, fits its width, and is wiped at the end. A terminal that
// only prints gets a line now and then, and what is no terminal gets nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "base/clock.h"

namespace varve {

class ProgressMeter {
 public:
  static constexpr double kUnknown = -1;
  enum class Kind { none, lines, overwritten };
  using Text = std::function<std::string()>;

  static double share_of(std::uint64_t done, std::uint64_t all) {
    return all ? static_cast<double>(done) / static_cast<double>(all) : kUnknown;
  }

  // On standard error, if `err` is that. `wanted`: what it shows does not stand in anybody's way.
  ProgressMeter(std::ostream& err, bool wanted);
  // `columns`: asked before each line, since a terminal may change.
  ProgressMeter(std::ostream& out, Kind kind, std::function<std::size_t()> columns, Clock& clock);
  ProgressMeter(const ProgressMeter&) = delete;
  ProgressMeter& operator=(const ProgressMeter&) = delete;
  ~ProgressMeter() { wipe(); }

  // Cheap, to be called as often as there is anything new: `text` is asked only when a line is due. `share`: of all there is to do, from
  // 0 to 1; with it the line ends with the time that is left.
  void show(const Text& text, double share = kUnknown);
  // Before something else is printed there.
  void wipe();
  // Another thing begins, with a share of its own.
  void restart();

 private:
  std::string line(const std::string& text, double share, std::uint64_t now) const;

  std::ostream& out_;
  const Kind kind_;
  const std::function<std::size_t()> columns_;
  Clock& clock_;
  std::uint64_t began_ns_, next_ns_;
  bool is_shown_ = false;
};

// "40 s", "3 min", "2 h 5 min".
std::string rough_duration(std::uint64_t seconds);

}  // namespace varve

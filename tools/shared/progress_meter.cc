#include "shared/progress_meter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "shared/terminal.h"

namespace varve {

namespace {

constexpr std::uint64_t kSecondNs = 1000 * kMillisecond;
constexpr std::uint64_t kFirstNs = kSecondNs / 2;  // what ends before that shows nothing
constexpr std::uint64_t kTellsNs = 2 * kSecondNs;  // before that nothing can be told of the time that is left

ProgressMeter::Kind kind_of(const std::ostream& err, bool wanted) {
  if (!wanted || &err != &std::cerr || !::isatty(STDERR_FILENO)) return ProgressMeter::Kind::none;
  return moves_cursor(STDERR_FILENO) ? ProgressMeter::Kind::overwritten : ProgressMeter::Kind::lines;
}

}  // namespace

ProgressMeter::ProgressMeter(std::ostream& err, bool wanted)
    : ProgressMeter(err, kind_of(err, wanted), [] { return size_of_terminal(STDERR_FILENO).columns; }, Clock::system()) {}

ProgressMeter::ProgressMeter(std::ostream& out, Kind kind, std::function<std::size_t()> columns, Clock& clock)
    : out_(out), kind_(kind), columns_(std::move(columns)), clock_(clock), began_ns_(clock.monotonic_ns()),
      next_ns_(began_ns_ + kFirstNs) {}

void ProgressMeter::show(const Text& text, double share) {
  if (kind_ == Kind::none) return;
  const std::uint64_t now = clock_.monotonic_ns();
  if (now < next_ns_) return;
  next_ns_ = now + (kind_ == Kind::lines ? 10 * kSecondNs : kSecondNs / 5);
  const std::string shown = line(text(), share, now);
  if (kind_ == Kind::lines) out_ << shown << std::endl;
  else out_ << "\r\x1b[K" << shown << std::flush;
  is_shown_ = kind_ == Kind::overwritten;
}

void ProgressMeter::wipe() {
  if (std::exchange(is_shown_, false)) out_ << "\r\x1b[K" << std::flush;
}

void ProgressMeter::restart() { began_ns_ = clock_.monotonic_ns(); }

std::string ProgressMeter::line(const std::string& text, double share, std::uint64_t now) const {
  const std::uint64_t elapsed = now - began_ns_;
  std::string left;
  if (share > 0.001 && share < 1 && elapsed >= kTellsNs) {
    const double seconds = static_cast<double>(elapsed) / kSecondNs * (1 / share - 1);
    left = fmt::format(", about {} left", rough_duration(static_cast<std::uint64_t>(seconds + 0.5)));
  }
  const std::size_t room = std::max<std::size_t>(columns_(), 2) - 1;  // a line that ends at the edge makes some terminals begin another one
  if (kind_ == Kind::lines || left.size() >= room) return kind_ == Kind::lines ? text + left : fitted(text, room);
  return fitted(text, room - left.size()) + left;
}

std::string rough_duration(std::uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", std::max<std::uint64_t>(seconds, 1));
  if (seconds < 3600) return fmt::format("{} min", (seconds + 30) / 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace varve

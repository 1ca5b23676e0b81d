#include "models/disk.h"

#include <algorithm>
#include <iterator>

namespace varve::bench {

std::size_t Disk::choose(std::span<const Request> waiting) const {
  std::size_t best = 0;
  double least = -1;
  for (std::size_t i = 0; i < waiting.size() && waiting[i].op == Op::read; ++i) {
    const double seconds = spindle_.look(waiting[i].offset, waiting[i].length, false, now_).seconds();
    if (least >= 0 && seconds >= least) continue;
    least = seconds;
    best = i;
  }
  return best;
}

DeviceModel::Duration Disk::seconds_for(const Request& request) {
  double seconds = parameters_.request;
  if (request.op == Op::read) seconds += read(request);
  if (request.op == Op::write) seconds += write(request);
  if (request.op == Op::flush) seconds += drain_all();
  if (request.op == Op::flush || request.durable) spindle_.let_go();
  now_ += parameters_.request;
  return {0, seconds};
}

double Disk::idle(double seconds) {
  const double end = now_ + seconds;
  while (!dirty_.empty() && now_ < end) done().background_ns += static_cast<std::uint64_t>(drain_one() * 1e9);
  const double overrun = std::max(now_ - end, 0.0);
  done().background_ns -= static_cast<std::uint64_t>(overrun * 1e9);
  now_ = std::max(now_, end);
  return overrun;
}

double Disk::move_to(std::uint64_t offset, std::uint64_t length, bool write) {
  if (spindle_.at() != offset) ++done().seeks;
  const double seconds = spindle_.go(offset, length, write, now_, done().energy).seconds();
  now_ += seconds;
  if (write) done().programmed += length;
  return seconds;
}

double Disk::read(const Request& request) {
  const double interface = static_cast<double>(request.length) / parameters_.interface_rate;
  if (is_dirty(request)) {
    now_ += interface;
    return interface;
  }
  return move_to(request.offset, request.length, false);
}

double Disk::write(const Request& request) {
  if (request.durable || parameters_.cache_bytes == 0) return move_to(request.offset, request.length, true);
  double seconds = static_cast<double>(request.length) / parameters_.interface_rate;
  now_ += seconds;
  add_dirty(request.offset, request.end());
  while (dirty_bytes_ > parameters_.cache_bytes) seconds += drain_one();
  return seconds;
}

double Disk::drain_one() {
  auto next = dirty_.lower_bound(spindle_.at());
  if (next == dirty_.end()) next = dirty_.begin();
  const auto [from, to] = *next;
  dirty_.erase(next);
  dirty_bytes_ -= to - from;
  return move_to(from, to - from, true);
}

double Disk::drain_all() {
  double seconds = 0;
  while (!dirty_.empty()) seconds += drain_one();
  return seconds;
}

void Disk::add_dirty(std::uint64_t from, std::uint64_t to) {
  auto next = dirty_.upper_bound(from);
  if (next != dirty_.begin() && std::prev(next)->second >= from) --next;
  while (next != dirty_.end() && next->first <= to) {
    from = std::min(from, next->first);
    to = std::max(to, next->second);
    dirty_bytes_ -= next->second - next->first;
    next = dirty_.erase(next);
  }
  dirty_.emplace(from, to);
  dirty_bytes_ += to - from;
}

bool Disk::is_dirty(const Request& request) const {
  const auto next = dirty_.upper_bound(request.offset);
  return next != dirty_.begin() && std::prev(next)->second >= request.end();
}

}  // namespace varve::bench

// Connections: how they are lost, when the link gives up, and how it begins anew.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "base/logging.h"
#include "io/reactor.h"
#include "remote/nbd_link.h"

namespace varve::remote {

namespace {

constexpr std::uint64_t kFirstAttempt = 100 * kMillisecond, kNextAttempt = 500 * kMillisecond;
constexpr std::uint64_t kMostForAnAttempt = 4'000 * kMillisecond;  // or the network's own patience grows from try to try
constexpr std::uint64_t kSettle = 500 * kMillisecond;  // what a server still does for a broken connection

}  // namespace

std::uint64_t NbdLink::now_ns() { return Clock::system().monotonic_ns(); }

void NbdLink::look_after_connections(std::uint64_t now) {
  for (const Lane& lane : lanes_) {
    if (lane.connection->state() != NbdConnection::State::dead && !lane.connection->is_cut()) continue;
    lose(lane.connection->why_dead(), now);
    break;
  }
  if (outage_.since_ns && now - outage_.since_ns > settings_.patience_ns && failure().empty())
    fail(fmt::format("no connection for {} s: {}", settings_.patience_ns / 1'000'000'000, outage_.why));
  if (!wire_.empty() && now - wire_.front().time_ns > settings_.patience_ns)
    fail(fmt::format("no answer for {} s", settings_.patience_ns / 1'000'000'000));
  if (held_since_ns_ && now > held_since_ns_ + settings_.patience_ns)
    fail(fmt::format("the lease could not be looked at for {} s", settings_.patience_ns / 1'000'000'000));
}

void NbdLink::lose(const std::string& why, std::uint64_t now) {
  outage_.why = why;
  if (!outage_.since_ns) {
    set_away(now);
    outage_.next_ns = now + kFirstAttempt;
    log_warn("{}: the connection is lost: {}", settings_.uri, why);
  }
  stage_ = Stage::down;
  for (Lane& lane : lanes_) lane.connection->cut();
  lanes_.clear();
  landed_.clear();
  own_flush_ = false;
  held_since_ns_ = 0;  // an outage has a patience of its own
  std::list<Sent> sent = std::exchange(wire_, {});
  for (auto last = sent.rbegin(); last != sent.rend(); ++last) take_back(*last);
  std::erase_if(queues_.by_guard, [&](const Part& part) {
    if (part.kind == NbdKind::read) return false;
    finish_part(part.job, ENOTCONN);
    return true;
  });
}

// The journal has what it needs of a write.
void NbdLink::take_back(Sent& sent) {
  if (sent.entry) sent.entry->on_wire = false;
  if (sent.entry || !sent.part.job) return;
  const bool is_read = sent.part.kind == NbdKind::read, by_guard = sent.part.job->request->by_guard;
  if (by_guard && !is_read) return finish_part(sent.part.job, ENOTCONN);
  (by_guard ? queues_.by_guard : is_read ? queues_.reads : queues_.changes).push_front(sent.part);
}

// Final. Nothing may be under way any more when a request is finished: the connections end first.
void NbdLink::fail(const std::string& why) {
  if (failure().empty()) {
    log_error("{}: {}: nothing is written any more", settings_.uri, why);
    const Lock lock(mutex_);
    failure_ = fmt::format("{}: {}", settings_.uri, why);
  }
  for (Lane& lane : lanes_) lane.connection->cut();
  lanes_.clear();
  landed_.clear();
  wire_.clear();
  queues_ = {};
  journal_.clear();
  own_flush_ = false;
  held_since_ns_ = 0;
  stage_ = Stage::down;
  set_away(now_ns());
  outage_.next_ns = outage_.since_ns + kNextAttempt;
  for (const Job& job : jobs_) finish(job, EIO);
  jobs_.clear();
}

void NbdLink::set_away(std::uint64_t since_ns) {
  outage_.since_ns = since_ns;
  away_since_ns_ = since_ns;
}

io::Connection NbdLink::connection() const {
  const std::uint64_t since = away_since_ns_, now = now_ns();
  return {.is_there = since == 0, .away_ms = since && now > since ? (now - since) / kMillisecond : 0,
          .patience_ms = settings_.patience_ns / kMillisecond, .renewals = renewals_};
}

void NbdLink::connect(std::uint64_t now) {
  outage_.next_ns = now + kNextAttempt;
  const std::size_t wanted = facts_.multi ? std::max(settings_.connections, 1U) : 1;
  while (lanes_.size() < wanted) {
    auto made = NbdConnection::begin(settings_.uri);
    if (!made.ok()) return lose(made.error().message(), now);
    lanes_.push_back({std::move(made).value(), 0});
  }
  stage_ = Stage::connecting;
}

std::string NbdLink::why_different() const {
  const NbdExport found = lanes_.front().connection->facts();
  if (found.size < facts_.size) return "the export has become smaller";
  if (found.read_only != facts_.read_only) return "the export has become read-only";
  if (found.can_flush != facts_.can_flush || found.can_fua != facts_.can_fua || found.can_trim != facts_.can_trim)
    return "the server can no longer do what it could";
  if (facts_.multi && !found.multi) return "the server takes only one connection now";
  return "";
}

void NbdLink::advance(std::uint64_t now) {
  if (stage_ == Stage::down && now >= outage_.next_ns) connect(now);
  if (stage_ == Stage::connecting) {
    if (lanes_.size() == 1 && !outage_.since_ns) connect(now);  // at the beginning: the others
    const auto is_ready = [](const Lane& lane) { return lane.connection->state() == NbdConnection::State::ready; };
    if (lanes_.empty()) return;
    if (!std::ranges::all_of(lanes_, is_ready)) {
      if (now > outage_.next_ns + kMostForAnAttempt) lose("no answer", now);
      return;
    }
    stage_ = outage_.since_ns ? Stage::settling : Stage::serving;
    if (outage_.since_ns) {
      outage_.connected_ns = now;
      outage_.connected_boot_ns = boot_time_ns();
    }
    if (const std::string why = outage_.since_ns ? why_different() : ""; !why.empty() && failure().empty()) return fail(why);
  }
  if (stage_ == Stage::settling && now - outage_.connected_ns >= kSettle) {
    stage_ = Stage::repeating;
    repeated_ = 0;
  }
}

}  // namespace varve::remote

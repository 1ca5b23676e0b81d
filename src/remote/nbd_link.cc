#include "remote/nbd_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/invariant.h"
#include "base/logging.h"
#include "io/reactor.h"

namespace varve::remote {

namespace {

constexpr std::uint64_t kMostOfAPart = 1 << 20;
constexpr std::uint64_t kMostOfATrim = 1 << 30;
constexpr std::uint64_t kWindow = 16 << 20;  // bytes on their way
constexpr std::size_t kMostCommands = 1024;  // on their way

bool is_change(const io::IoRequest& request) { return request.kind != io::IoKind::read; }

bool is_loss(int error) { return error == ENOTCONN || error == ESHUTDOWN || error == ECONNRESET || error == EPIPE; }

// Copies bytes of a request, from `at` on.
void gather(const io::IoRequest& request, std::uint64_t at, std::byte* to, std::uint64_t length) {
  for (const iovec& piece : request.iov) {
    if (at >= piece.iov_len) {
      at -= piece.iov_len;
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(piece.iov_len - at, length);
    std::memcpy(to, static_cast<const std::byte*>(piece.iov_base) + at, bytes);
    to += bytes;
    length -= bytes;
    at = 0;
    if (length == 0) return;
  }
}

}  // namespace

NbdLink::NbdLink(NbdSettings settings, const NbdExport& facts, std::unique_ptr<NbdConnection> first)
    : settings_(std::move(settings)), facts_(facts), journal_(facts.read_only ? 4 * kBlockSize : settings_.journal_bytes) {
  lanes_.push_back({std::move(first), 0});
}

NbdLink::~NbdLink() = default;

void NbdLink::ask(io::WriteGuard* guard) {
  const Lock lock(mutex_);
  guard_ = guard;
}

std::string NbdLink::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

// --- requests ---------------------------------------------------------------------------------------------------------

bool NbdLink::is_refused(const io::IoRequest& request) const {
  const bool is_away = stage_ == Stage::down || (stage_ == Stage::connecting && outage_.since_ns);
  if (request.by_guard && is_change(request) && is_away) return true;
  return !failure().empty() && (is_change(request) || stage_ != Stage::serving);
}

void NbdLink::add(io::IoRequest& request) {
  Job& job = jobs_.emplace_back();
  job.request = &request;
  job.self = std::prev(jobs_.end());
  if (!is_refused(request)) return split(job);
  finish(job, failure().empty() ? ENOTCONN : EIO);
  jobs_.pop_back();
}

std::uint64_t NbdLink::part_limit() const {
  std::uint64_t limit = std::min<std::uint64_t>(kMostOfAPart, journal_.largest());
  if (facts_.most) limit = std::min(limit, facts_.most);
  return std::max<std::uint64_t>(limit / kBlockSize * kBlockSize, kBlockSize);
}

void NbdLink::split(Job& job) {
  const io::IoRequest& request = *job.request;
  if (request.kind == io::IoKind::read) return split_read(job);
  if (request.kind == io::IoKind::flush) {
    job.parts = 1;
    queues_.changes.push_back({&job, NbdKind::flush, 0, 0, nullptr, 0});
    return;
  }
  const bool is_write = request.kind == io::IoKind::write;
  const bool is_plain = is_write && request.by_guard && request.iov.size() == 1 && request.length <= part_limit();
  job.flush_after = is_write && request.durable && !facts_.can_fua;
  auto& queue = is_plain ? queues_.by_guard : queues_.changes;
  const std::uint64_t limit = is_write ? part_limit() : kMostOfATrim;
  for (std::uint64_t at = 0; at < request.length; at += limit) {
    const std::uint64_t length = std::min(limit, request.length - at);
    auto* data = is_plain ? static_cast<std::byte*>(request.iov[0].iov_base) : nullptr;
    queue.push_back({&job, is_write ? NbdKind::write : NbdKind::trim, request.offset + at, length, data, at});
    ++job.parts;
  }
}

// Straight into the buffers: what stands together in memory as one.
void NbdLink::split_read(Job& job) {
  const io::IoRequest& request = *job.request;
  auto& queue = request.by_guard ? queues_.by_guard : queues_.reads;
  std::uint64_t offset = request.offset;
  for (std::size_t at = 0; at < request.iov.size();) {
    auto* data = static_cast<std::byte*>(request.iov[at].iov_base);
    std::uint64_t length = 0;
    for (; at < request.iov.size() && request.iov[at].iov_base == data + length; ++at) length += request.iov[at].iov_len;
    for (std::uint64_t done = 0; done < length; done += part_limit(), ++job.parts)
      queue.push_back({&job, NbdKind::read, offset + done, std::min(part_limit(), length - done), data + done, 0});
    offset += length;
  }
}

void NbdLink::finish(const Job& job, int error) { job.request->reactor()->finish_from_elsewhere(*job.request, error); }

void NbdLink::finish_part(Job* job, int error) {
  MEMORY_INVARIANT(job != nullptr && job->parts > 0);
  if (error && !job->error) job->error = error;
  if (--job->parts > 0) return;
  if (job->flush_after && !job->error) {
    job->flush_after = false;
    job->parts = 1;
    (job->request->by_guard ? queues_.by_guard : queues_.changes).push_back({job, NbdKind::flush, 0, 0, nullptr, 0});
    return;
  }
  finish(*job, job->error);
  jobs_.erase(job->self);
}

// --- answers ----------------------------------------------------------------------------------------------------------

void NbdLink::land() {
  const std::vector<Sent*> landed = std::exchange(landed_, {});
  for (Sent* sent : landed) {
    if (is_loss(sent->error)) {  // it stays in the list of what was sent, for lose()
      lanes_[sent->lane].connection->cut();
      outage_.why = std::strerror(sent->error);
      continue;
    }
    lanes_[sent->lane].bytes -= sent->part.length;
    take_answer(*sent);
    if (lanes_.empty()) return;  // it has failed: nothing is left of what was sent
  }
}

void NbdLink::take_answer(Sent& sent) {
  const Part part = sent.part;
  if (part.kind == NbdKind::flush) {
    if (!part.job) own_flush_ = false;
    if (sent.error) return fail(fmt::format("a flush failed: {}", std::strerror(sent.error)));
    journal_.flushed(sent.mark);
  }
  if (sent.entry) return take_write(sent);
  const int error = sent.error;
  wire_.erase(sent.self);
  if (part.job) finish_part(part.job, error);
}

void NbdLink::take_write(Sent& sent) {
  WriteJournal::Entry& entry = *sent.entry;
  const int error = sent.error;
  wire_.erase(sent.self);
  auto* job = static_cast<Job*>(std::exchange(entry.waiter, nullptr));
  entry.on_wire = false;
  if (error && entry.state == WriteJournal::State::acknowledged)
    return fail(fmt::format("the server refused a write that it had acknowledged on a connection before: {}", std::strerror(error)));
  const bool is_repeating = stage_ == Stage::repeating;
  const std::size_t before = journal_.entries().size();
  if (error) journal_.drop(entry);
  else if (entry.durable) journal_.acknowledge_durable(entry);
  else journal_.acknowledge(entry);
  if (is_repeating) repeated_ -= std::min(repeated_, before - journal_.entries().size());
  if (job) finish_part(job, error);
}

// --- sending ----------------------------------------------------------------------------------------------------------

void NbdLink::send_all(std::uint64_t now) {
  if (stage_ < Stage::settling) return;
  for (; !queues_.by_guard.empty(); queues_.by_guard.pop_front()) send(queues_.by_guard.front(), nullptr, now);
  if (stage_ == Stage::repeating) repeat_writes(now);
  if (stage_ != Stage::serving) return;
  for (; !queues_.reads.empty() && has_window(); queues_.reads.pop_front()) send(queues_.reads.front(), nullptr, now);
  send_changes(now);
}

void NbdLink::send_changes(std::uint64_t now) {
  bool is_full = false;
  if (!queues_.changes.empty() && may_write())
    while (!queues_.changes.empty() && has_window() && !is_full) {
      is_full = !send_change(queues_.changes.front(), now);
      if (!is_full) queues_.changes.pop_front();
    }
  const bool wants_flush = journal_.wants_flush() || (is_full && journal_.acknowledged_bytes() > 0);
  if (wants_flush && !std::exchange(own_flush_, true)) send({nullptr, NbdKind::flush, 0, 0, nullptr, 0}, nullptr, now);
}

bool NbdLink::may_write() {
  auto verdict = io::WriteGuard::Verdict::yes;
  {
    const Lock lock(mutex_);  // it may be about to go
    if (guard_) verdict = guard_->may_send(outage_.connected_boot_ns);
    if (verdict != io::WriteGuard::Verdict::not_now) held_since_ns_ = 0;
    else if (!held_since_ns_) held_since_ns_ = now_ns();
    if (held_since_ns_) guard_->look_soon();
  }
  if (verdict == io::WriteGuard::Verdict::never) fail("it is no longer ours to write");
  return verdict == io::WriteGuard::Verdict::yes;
}

// The oldest first, many at a time, but never two that overlap.
void NbdLink::repeat_writes(std::uint64_t now) {
  auto& entries = journal_.entries();
  if (repeated_ < entries.size() && !may_write()) return;
  while (stage_ == Stage::repeating && repeated_ < entries.size() && has_window()) {
    WriteJournal::Entry& entry = entries[repeated_];
    if (entry.state != WriteJournal::State::safe) {
      if (!can_repeat(entry)) return;
      auto* job = static_cast<Job*>(entry.waiter);
      send({job, NbdKind::write, entry.offset, entry.length, entry.data, 0}, &entry, now);
    }
    ++repeated_;
  }
  if (repeated_ < entries.size() || std::ranges::any_of(entries, &WriteJournal::Entry::on_wire)) return;
  if (failure().empty()) log_warn("{}: connected again after {} ms", settings_.uri, (now - outage_.since_ns) / 1'000'000);
  stage_ = Stage::serving;
  set_away(0);
  ++renewals_;
}

bool NbdLink::can_repeat(const WriteJournal::Entry& entry) const {
  return std::ranges::none_of(wire_, [&](const Sent& sent) { return sent.entry && sent.entry->meets(entry); });
}

// False: no room to keep a copy.
bool NbdLink::send_change(const Part& part, std::uint64_t now) {
  if (part.kind != NbdKind::write) return send(part, nullptr, now), true;
  WriteJournal::Entry* entry = journal_.add(part.offset, static_cast<std::uint32_t>(part.length));
  if (!entry) return false;
  gather(*part.job->request, part.at, entry->data, part.length);
  entry->durable = part.job->request->durable && facts_.can_fua;
  entry->waiter = part.job;
  send(part, entry, now);
  return true;
}

void NbdLink::send(const Part& part, WriteJournal::Entry* entry, std::uint64_t now) {
  const auto lane = std::ranges::min_element(lanes_, {}, &Lane::bytes);
  Sent& sent = wire_.emplace_back();
  const bool covers_all = stage_ == Stage::serving;  // else what is to be repeated may be gone
  const std::uint64_t mark = covers_all ? journal_.mark() : 0;
  sent = {this, part, entry, mark, now, static_cast<std::size_t>(lane - lanes_.begin()), 0, std::prev(wire_.end())};
  lane->bytes += part.length;
  NbdCommand command{part.kind, entry && entry->durable, part.offset, part.length, entry ? entry->data : part.data};
  if (!entry && part.kind == NbdKind::write) {
    journal_.overwrite(part.offset, part.data, part.length);
    command.durable = part.job->request->durable && facts_.can_fua;
  }
  if (entry) entry->on_wire = true;
  const auto answered = [](void* context, int error) {
    auto& landed = *static_cast<Sent*>(context);
    landed.error = error;
    landed.link->landed_.push_back(&landed);
  };
  if (!lane->connection->send(command, answered, &sent)) lane->connection->cut();
}

bool NbdLink::has_window() const {
  std::uint64_t bytes = 0;
  for (const Lane& lane : lanes_) bytes += lane.bytes;
  return bytes < kWindow && wire_.size() < kMostCommands;
}

// --- the thread's turn ------------------------------------------------------------------------------------------------

void NbdLink::turn() {
  do {
    land();
    const std::uint64_t now = NbdLink::now_ns();
    look_after_connections(now);
    advance(now);
    send_all(now);
  } while (!landed_.empty());
}

void NbdLink::list(std::vector<pollfd>& waits) const {
  for (const Lane& lane : lanes_) waits.push_back({lane.connection->fd(), lane.connection->events(), 0});
}

void NbdLink::notify(const std::vector<pollfd>& waits, std::size_t first) {
  for (std::size_t at = 0; at < lanes_.size() && first + at < waits.size(); ++at)
    if (waits[first + at].revents) lanes_[at].connection->notify(waits[first + at].revents);
}

int NbdLink::wait_ms() const {
  if (held_since_ns_) return 20;
  if (stage_ != Stage::serving) return 50;
  return wire_.empty() ? 10'000 : 1000;
}

}  // namespace varve::remote

#include "io/holding_device.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/invariant.h"
#include "base/logging.h"
#include "io/reactor.h"
#include "io/transfer.h"

namespace varve::io {

namespace {

constexpr auto kBetweenLines = std::chrono::minutes(1);  // a host at the brink is full and has room by turns

bool may_be_held(const IoRequest& request) { return request.kind == IoKind::write && !request.by_guard; }

// NFS, CIFS and FUSE take a write into the page cache, and tell a later one that there was no room for it.
bool tells_room_late(const BlockDevice& device) {
  constexpr std::array<decltype(statfs::f_type), 6> kSetRoomAside{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                                  F2FS_SUPER_MAGIC, TMPFS_MAGIC,     RAMFS_MAGIC};
  if (device.geometry().direct || device.geometry().is_block_device) return false;
  struct statfs below {};
  return ::statfs(device.name().c_str(), &below) == 0 && std::ranges::find(kSetRoomAside, below.f_type) == kSetRoomAside.end();
}

std::uint64_t ms_since(std::chrono::steady_clock::time_point begin) {
  const auto passed = std::chrono::steady_clock::now() - begin;
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

}  // namespace

Status HoldingDevice::begin(Listener listener) {
  INVARIANT(!thread_.joinable());
  if (tells_room_late(below_)) return {};
  has_cache_below_ = !geometry().direct || below_.connection();
  {
    const Lock one(listener_mutex_);
    listener_ = std::move(listener);
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error(Errc::no_memory, fmt::format("{}: no thread to wait for room: {}", name(), error.what()));
  }
  holds_ = true;
  return {};
}

HoldingDevice::~HoldingDevice() {
  {
    const Lock lock(mutex_);
    holds_ = false;
    stopping_ = true;
  }
  changed_.notify_all();
  turn_came_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void HoldingDevice::forget_listener() {
  const Lock one(listener_mutex_);
  listener_ = nullptr;
}

HostRoom HoldingDevice::room() const {
  const Lock lock(mutex_);
  return {is_full_, is_full_ ? ms_since(spell_.since) : 0, held_.bytes, spells_};
}

void HoldingDevice::limit_holding(std::uint64_t ns) {
  const Lock lock(mutex_);
  const Limit limit{std::chrono::steady_clock::now(), std::chrono::nanoseconds(ns)};
  if (ns > 0 && limit_ && limit_->since + limit_->length <= limit.since + limit.length) return;
  limit_ = limit;
  if (ns == 0) holds_ = false;
  changed_.notify_all();
}

// --- requests ---------------------------------------------------------------------------------------------------------

bool HoldingDevice::is_split(const IoRequest& request) const { return request.durable && has_cache_below_.load(std::memory_order_relaxed); }

void HoldingDevice::submit(Reactor& reactor, IoRequest& request) {
  if (!may_be_held(request)) return below_.submit(reactor, request);
  if (!request.is_counted) request.was_held = false;
  send(reactor, request, holds_.load(std::memory_order_relaxed) && is_split(request) ? Part::before_flush : Part::whole);
}

void HoldingDevice::send(Reactor& reactor, IoRequest& request, Part part) {
  if (part == Part::before_flush) request.durable = false;
  if (part == Part::flush) request.kind = IoKind::flush;
  request.intercept(completed, this, static_cast<std::uint64_t>(part));
  below_.submit(reactor, request);
}

void HoldingDevice::completed(void* context, IoRequest& request, std::uint64_t part) {
  static_cast<HoldingDevice*>(context)->came(request, static_cast<Part>(part));
}

void HoldingDevice::came(IoRequest& request, Part part) {
  if (part == Part::before_flush && !request.error) {
    request.take_back();
    return send(*request.reactor(), request, Part::flush);
  }
  if (part == Part::flush) request.kind = IoKind::write;
  if (part != Part::whole) request.durable = true;
  const bool is_own_error = part == Part::before_flush || (part == Part::whole && !is_split(request));  // and not that of another write
  if (is_own_error && is_lack_of_room(request.error) && hold(request)) return;
  settle(request);
}

bool HoldingDevice::hold(IoRequest& request) {
  const Lock lock(mutex_);
  if (!holds_) return false;
  count(request);
  request.take_back();
  request.reactor()->begin_elsewhere(request);
  held_.line.push_back(request);
  return true;
}

int HoldingDevice::execute(IoRequest& request) {
  if (!may_be_held(request)) return below_.execute(request);
  request.was_held = false;
  const bool splits = holds_ && is_split(request);
  if (splits) request.durable = false;
  const bool is_own_error = !is_split(request);
  do request.error = below_.execute(request);
  while (is_own_error && is_lack_of_room(request.error) && wait_for_turn(request));
  settle(request);
  if (!splits) return request.error;
  request.durable = true;
  IoRequest flush;
  flush.kind = IoKind::flush;
  return request.error ? request.error : request.error = below_.execute(flush);
}

// False: nothing is held any more.
bool HoldingDevice::wait_for_turn(IoRequest& request) {
  Lock lock(mutex_);
  if (!holds_) return false;
  count(request);
  turn_came_.wait(lock, [this, turn = held_.turn]() REQUIRES(mutex_) { return held_.turn != turn || !holds_; });
  return holds_;
}

void HoldingDevice::count(IoRequest& request) {
  spell_.error = request.error;
  if (std::exchange(request.is_counted, true)) return;
  request.was_held = true;
  ++held_.count;
  held_.bytes += request.length;
  changed_.notify_all();
}

void HoldingDevice::settle(IoRequest& request) {
  if (!std::exchange(request.is_counted, false)) return;
  const Lock lock(mutex_);
  MEMORY_INVARIANT(held_.count > 0 && held_.bytes >= request.length);
  --held_.count;
  held_.bytes -= request.length;
  (request.error ? spell_.has_failed : spell_.progressed) = true;
  if (held_.count == 0) changed_.notify_all();
}

// --- the thread -------------------------------------------------------------------------------------------------------

void HoldingDevice::run() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || held_.count > 0; });
    if (stopping_) return;  // what has not ended by now was given up with its reactor
    wait_for_room(lock);
  }
}

HoldingDevice::Time HoldingDevice::end_of_holding() const {
  return limit_ ? std::max(spell_.since, limit_->since) + limit_->length : Time::max();
}

// From the first write that is held to the last one that is written, or given up.
void HoldingDevice::wait_for_room(Lock& lock) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  spell_.since = now();
  ++spells_;
  is_full_ = true;
  spell_.has_failed = false;
  tell(lock, News::full);
  auto pause = times_.first_pause;
  Time next_try = spell_.since + pause, next_word = spell_.since + times_.patience;
  while (held_.count > 0 && !stopping_) {
    const Time due = std::min({next_try, next_word, end_of_holding()});
    changed_.wait_for(lock, due - now(), [this, limit = limit_]() REQUIRES(mutex_) {
      return stopping_ || !holds_ || held_.count == 0 || limit_ != limit;
    });
    if (now() >= end_of_holding()) holds_ = false;
    if (!holds_) {
      give_up(lock);
    } else if (now() >= next_try) {
      pause = std::exchange(spell_.progressed, false) ? times_.first_pause : std::min(2 * pause, times_.longest_pause);
      try_again(lock);
      next_try = now() + pause;
    }
    if (held_.count > 0 && now() >= next_word) {
      tell(lock, News::still_full);
      next_word = now() + times_.patience;
    }
  }
  is_full_ = false;
  tell(lock, News::over);
}

// All of them: they are no more than what was on its way, and which of them has its place by now is not known.
void HoldingDevice::try_again(Lock& lock) {
  Line line;
  line.swap(held_.line);
  ++held_.turn;
  turn_came_.notify_all();
  lock.unlock();
  while (!line.empty()) {
    auto& request = static_cast<IoRequest&>(line.front());
    line.pop_front();
    request.reactor()->submit_from_elsewhere(*this, request);
  }
  lock.lock();
}

// The writes that are tried just now end by themselves.
void HoldingDevice::give_up(Lock& lock) {
  Line line;
  line.swap(held_.line);
  turn_came_.notify_all();
  lock.unlock();
  while (!line.empty()) {
    auto& request = static_cast<IoRequest&>(line.front());
    line.pop_front();
    settle(request);
    request.reactor()->finish_from_elsewhere(request, request.error);
  }
  lock.lock();
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || held_.count == 0; });
}

void HoldingDevice::tell(Lock& lock, News news) {
  const HostRoom room{true, ms_since(spell_.since), held_.bytes, spells_};
  const bool has_failed = spell_.has_failed;
  const bool is_new = news == News::full || (news == News::still_full && is_quiet_);
  is_quiet_ = news == News::full ? spells_ > 1 && spell_.since - spoke_ < kBetweenLines : is_quiet_ && news == News::over;
  if (!is_quiet_) spoke_ = spell_.since;
  const int error = spell_.error;
  lock.unlock();
  if (!is_quiet_ && is_new) say_full(error);
  if (!is_quiet_ && news == News::over) say_over(room, has_failed);
  {
    const Lock one(listener_mutex_);
    if (listener_) listener_(news);
  }
  lock.lock();
}

void HoldingDevice::say_full(int error) const {
  const std::string why = std::strerror(error);  // NOLINT(concurrency-mt-unsafe): of this thread in glibc
  log_warn("{}: a write has failed: {}. It is held and tried again, and changes are refused until there is room: {}", name(), why,
               way_to_room(*this));
}

void HoldingDevice::say_over(const HostRoom& room, bool has_failed) const {
  const auto seconds = static_cast<double>(room.full_ms) / 1000;
  if (has_failed) log_error("{}: what was held for {:.1f} s for want of room could not be written", name(), seconds);
  else log_warn("{}: there is room again after {:.1f} s: all that was held is written", name(), seconds);
}

}  // namespace varve::io

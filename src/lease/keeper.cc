#include "lease/keeper.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/logging.h"

namespace varve::lease {

namespace {

constexpr unsigned kLateLooks = 3;  // one after the other, and the device has failed

}  // namespace

Status Keeper::start(const Claim& claim, std::uint64_t looked_ns) {
  {
    const Lock one(tenure_mutex_);
    tenure_.emplace(area_, times_, claim.lease(), claim.first_block(), looked_ns, boot_time_ns);
    publish();
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error(Errc::no_memory, fmt::format("{}: no thread to watch the lease: {}", area_.name(), error.what()));
  }
  return {};
}

Status Keeper::release() {
  stop();
  const Lock one(tenure_mutex_);
  if (!tenure_) return {};
  const Status given_up = tenure_->give_up();
  publish();
  return given_up;
}

void Keeper::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Keeper::run() {
  bool was_used = false;
  for (Turn turn; (turn = wait_for_turn()) != Turn::end;) {
    const bool is_used = used_.exchange(false, std::memory_order_relaxed);
    if (turn == Turn::wished || !rests_.load(std::memory_order_relaxed) || (is_used && was_used)) look();
    was_used = is_used;
  }
}

Keeper::Turn Keeper::wait_for_turn() {
  Turn turn = Turn::usual;
  {
    Lock lock(mutex_);
    const auto is_due = [this]() REQUIRES(mutex_) { return stopping_ || wished_ || (!why_lost_.empty() && on_lost_ && !told_); };
    wake_.wait_for(lock, std::chrono::nanoseconds(times_.look_ns), is_due);
    if (stopping_) return Turn::end;
    if (std::exchange(wished_, false)) turn = Turn::wished;
    if (why_lost_.empty()) return turn;
  }
  tell();
  return turn;
}

void Keeper::tell() {
  const Lock one(tell_mutex_);
  std::function<void(const std::string&)> call;
  std::string why;
  {
    const Lock lock(mutex_);
    if (told_ || !on_lost_) return;
    told_ = true;
    call = on_lost_;
    why = why_lost_;
  }
  call(why);
}

// A block that cannot be read says nothing about the holder: where something can be written it could be read. But a device that
// will never be written again is lost, and an idle mount should say so.
bool Keeper::look() {
  const Lock one(tenure_mutex_);
  MEMORY_INVARIANT(tenure_.has_value());
  const bool was_read = tenure_->look();
  if (!was_read) {
    if (!std::exchange(warned_, true)) log_warn("{}: the lease cannot be read", area_.name());
    if (const std::string refusal = area_.refusal(); !refusal.empty()) tenure_->lose(refusal);
  }
  publish();
  return was_read;
}

void Keeper::publish() {
  trusted_until_ns_.store(tenure_->trusted_until_ns(), std::memory_order_relaxed);
  if (tenure_->why_lost().empty() || lost_) return;
  failed_.store(tenure_->has_failed(), std::memory_order_release);
  {
    const Lock lock(mutex_);
    INVARIANT(why_lost_.empty());
    why_lost_ = tenure_->why_lost();
  }
  lost_.store(true, std::memory_order_release);
  wake_.notify_all();
}

bool Keeper::may_write(bool certain) {
  const auto is_trusted = [this] { return boot_time_ns() + times_.delivery_ns < trusted_until_ns_.load(std::memory_order_relaxed); };
  if (lost_.load(std::memory_order_acquire)) return false;
  if (!certain && is_trusted()) return true;
  for (unsigned late = 0; late < kLateLooks;) {
    const bool was_read = look();
    if (lost_.load(std::memory_order_acquire)) return false;
    if (is_trusted()) return true;
    Lock one(tenure_mutex_);
    const std::uint64_t doubt = tenure_->doubt_ns();
    one.unlock();
    if (doubt) std::this_thread::sleep_for(std::chrono::nanoseconds(doubt));
    else if (was_read) ++late;  // what it saw was true when it began, and its promise has ended since
    else break;
  }
  return is_trusted();  // another thread may have looked meanwhile
}

io::WriteGuard::Verdict Keeper::may_send(std::uint64_t looked_after_ns) const {
  using Verdict = io::WriteGuard::Verdict;
  if (lost_.load(std::memory_order_acquire)) return Verdict::never;
  const std::uint64_t until = trusted_until_ns_.load(std::memory_order_relaxed);
  const bool is_trusted = boot_time_ns() + times_.delivery_ns < until;
  return is_trusted && until - times_.promise_ns >= looked_after_ns ? Verdict::yes : Verdict::not_now;
}

void Keeper::look_soon() {
  const Lock lock(mutex_);
  wished_ = true;
  wake_.notify_all();
}

void Keeper::expect_first_block(std::uint32_t crc) {
  const Lock one(tenure_mutex_);
  tenure_->expect_first_block(crc);
}

std::uint64_t Keeper::look_age_ns() const {
  const std::uint64_t until = trusted_until_ns_.load(std::memory_order_relaxed), now = boot_time_ns();
  return until > times_.promise_ns && until - times_.promise_ns < now ? now - (until - times_.promise_ns) : 0;
}

format::Lease Keeper::lease() const {
  const Lock one(tenure_mutex_);
  return tenure_->lease();
}

std::string Keeper::why_lost() const {
  const Lock lock(mutex_);
  return why_lost_;
}

void Keeper::on_lost(std::function<void(const std::string& why)> lost) {
  const Lock one(tell_mutex_);
  const Lock lock(mutex_);
  on_lost_ = std::move(lost);
  wake_.notify_all();
}

}  // namespace varve::lease

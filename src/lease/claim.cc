#include "lease/claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/invariant.h"

namespace varve::lease {

namespace {

constexpr unsigned kAttempts = 8;  // against other newcomers

std::uint64_t random_nonzero(Random& random) {
  for (;;)
    if (const std::uint64_t value = random.next()) return value;
}

}  // namespace

std::uint64_t promise_of(const format::Lease& lease) {
  return std::min(std::uint64_t{lease.promise_ms} * 1'000'000, kLongestPromiseNs);
}

Claim::Claim(Area area, Self self, const Times& times, Clock& clock, Random& random)
    : area_(area), self_(std::move(self)), times_(times), clock_(clock), random_(random) {
  lease_.holder = random_nonzero(random_);
  lease_.promise_ms = static_cast<std::uint32_t>(times_.promise_ns / 1'000'000);
  lease_.process = self_.process;
  lease_.object = self_.object;
}

Claim::Step Claim::advance(NowCall now, void* context) {
  const std::uint64_t began = now(context);
  const Look found = TRY(area_.read());
  first_block_ = found.first_block;
  switch (state_) {
    case State::look:
      return look(found, began, now, context);
    case State::challenged:
      return look_again(found, began, now, context);
    case State::written:
      return confirm(found);
  }
  return Errc::invalid;
}

Claim::Step Claim::look(const Look& found, std::uint64_t began, NowCall now, void* context) {
  INVARIANT(lease_.holder != 0);
  doubtful_.reset();
  seen_ = found.lease;
  if (found.lease && !is_mine(found)) {
    const Life life = life_of(*found.lease, self_);
    if (life == Life::alive && !self_.takes_over) return held_by(*found.lease);
    if (life != Life::dead) doubtful_ = found.lease;
  }
  if (doubtful_ || self_.may_be_shared || others_ask(found)) return challenge(now, context);
  return write_lease(began, now, context, 0);
}

Claim::Step Claim::challenge(NowCall now, void* context) {
  INVARIANT(state_ == State::look);
  nonce_ = random_nonzero(random_);
  TRY(area_.write(format::Challenge{nonce_, clock_.now(), self_.takes_over, self_.process}));
  state_ = State::challenged;
  const std::uint64_t patience = doubtful_ ? promise_of(*doubtful_) + times_.margin_ns : times_.settle_ns;
  patient_until_ns_ = now(context) + patience;
  return std::optional(times_.settle_ns);
}

Claim::Step Claim::look_again(const Look& found, std::uint64_t began, NowCall now, void* context) {
  if (found.lease && found.answer && found.answer->nonce == nonce_) return held_by(*found.lease);
  if (found.lease != seen_) {
    if (found.lease && !is_mine(found)) return held_by(*found.lease);
    return begin_anew(self_.process);  // released meanwhile
  }
  if (!found.challenge || found.challenge->nonce != nonce_)
    return begin_anew(found.challenge ? found.challenge->process : self_.process);
  if (began < patient_until_ns_) return std::optional(std::min(times_.settle_ns, patient_until_ns_ - began));
  return write_lease(began, now, context, times_.settle_ns);
}

Claim::Step Claim::begin_anew(const format::Process& other) {
  if (++attempts_ == kAttempts)
    return Error(Errc::in_use, fmt::format("{}: others try to use it at the same time, at last {}: try again later", area_.name(),
                                           describe(other, clock_.now())));
  state_ = State::look;
  return std::optional(times_.settle_ns + random_.next() % (4 * times_.settle_ns));
}

Claim::Step Claim::write_lease(std::uint64_t began, NowCall now, void* context, std::uint64_t wait) {
  INVARIANT(state_ != State::written);
  lease_.taken = clock_.now();
  TRY(area_.write(lease_));
  state_ = State::written;
  const bool was_slow = now(context) - began > times_.settle_ns / 2;
  return std::optional(was_slow ? times_.promise_ns + times_.margin_ns : wait);
}

Claim::Step Claim::confirm(const Look& found) {
  if (!is_mine(found)) {
    if (found.lease) return held_by(*found.lease);
    return begin_anew(self_.process);
  }
  if (others_ask(found) && found.challenge->nonce != answered_) return answer(*found.challenge);
  if (found.challenge) TRY(area_.clear_challenge());
  return std::optional<std::uint64_t>();
}

// Like a holder. The newcomer may have read the answer's block a moment ago: then it has written its lease before the next look.
Claim::Step Claim::answer(const format::Challenge& challenge) {
  INVARIANT(challenge.nonce != nonce_);  // it would answer itself
  TRY(area_.write(format::Answer{challenge.nonce, lease_.holder}));
  answered_ = challenge.nonce;
  return std::optional(2 * times_.settle_ns);
}

Error Claim::held_by(const format::Lease& holder) {
  const auto found = area_.read();  // no trace of asking is left, which would make the next newcomer wait
  if (nonce_ && found.ok() && found->challenge && found->challenge->nonce == nonce_) (void)area_.clear_challenge().ok();
  const char* way = self_.may_be_shared ? "stop that first, or take it over (varve mount --take-over)" : "stop that first";
  return {Errc::in_use, fmt::format("{} is in use by {}: {}", area_.name(), describe(holder.process, holder.taken), way)};
}

}  // namespace varve::lease

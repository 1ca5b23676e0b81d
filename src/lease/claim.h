// Taking the lease of a device: one newcomer at a time gets it, and only when no holder can write any more.
//
// The steps, each at most one read and one write, with waits between them:
//  1. Look. A living holder ends it. If nothing else can reach the device, and nobody asks, write the lease and go to 4.
//  2. Write a challenge. Wait: for a holder whose fate is unknown longer than it promises to trust its last look, else a moment.
//  3. Look again, now and then while it waits. An answer or a new lease ends it; another challenge means another newcomer: begin
//     anew, at another time. Else write the lease, and wait a moment. If this took long, wait as long as for a holder.
//  4. Look again. The program that finds its own lease, and no challenge but its own, has it. It answers others, and looks again.
//
// Of two newcomers that both wait, the one whose challenge was overwritten begins anew, or the later one meets the lease of the
// earlier. One that does not wait (its lock covers all names that it can see) may meet one that does. Then the one that waits meets the
// other's lease in step 3, or the other meets its challenge in step 4. That holds while a step takes less than the wait after it; a
// step that took longer is followed by a wait that outlasts every promise.
//
// A take-over is a challenge that demands: a holder that finds it writes nothing any more, for good, and does not answer. The newcomer
// waits as long as for one whose fate is unknown, so that one which does not look any more has stopped by its promise.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "lease/area.h"
#include "lease/process.h"

namespace varve::lease {

struct Times {
  std::uint64_t promise_ns = 10'000'000'000;  // how long a holder may write after its last look
  std::uint64_t margin_ns = 2'000'000'000;    // on top of it, for clocks that differ
  std::uint64_t settle_ns = 1'000'000'000;    // between two steps of a newcomer
  std::uint64_t look_ns = 2'000'000'000;      // how often a holder looks
  std::uint64_t delivery_ns = 0;              // io::BlockDevice: a write may arrive so long after it was sent
};

// No Varve has ever promised more. What stands on a device can be anything, and nobody shall wait for weeks.
inline constexpr std::uint64_t kLongestPromiseNs = 60'000'000'000;
// How long the holder may write after its last look, as far as that can be believed.
std::uint64_t promise_of(const format::Lease& lease);

// Not thread-safe. Sleeps nowhere: the caller does.
class Claim {
 public:
  Claim(Area area, Self self, const Times& times, Clock& clock, Random& random);

  // Makes one step. `now_ns` gives the time, also within the step. Returns how long to wait before the next one; nothing when
  // lease() is held. Errc::in_use, with the name of the holder, when another has it.
  template <class Now>
  Result<std::optional<std::uint64_t>> step(Now now_ns) {
    return advance([](void* now) { return (*static_cast<Now*>(now))(); }, &now_ns);
  }

  const format::Lease& lease() const { return lease_; }
  // What the superblock's block held at the last look.
  std::uint32_t first_block() const { return first_block_; }
  // Whether it waits for a holder that may have ended without a word; and which.
  const std::optional<format::Lease>& waits_for() const { return doubtful_; }

 private:
  enum class State : std::uint8_t { look, challenged, written };
  using NowCall = std::uint64_t (*)(void*);
  using Step = Result<std::optional<std::uint64_t>>;

  Step advance(NowCall now, void* context);
  Step look(const Look& found, std::uint64_t began, NowCall now, void* context);
  Step look_again(const Look& found, std::uint64_t began, NowCall now, void* context);
  Step confirm(const Look& found);
  Step challenge(NowCall now, void* context);
  Step answer(const format::Challenge& challenge);
  Step begin_anew(const format::Process& other);
  Step write_lease(std::uint64_t began, NowCall now, void* context, std::uint64_t wait);
  Error held_by(const format::Lease& holder);
  bool is_mine(const Look& found) const { return found.lease && found.lease->holder == lease_.holder; }
  bool others_ask(const Look& found) const { return found.challenge && found.challenge->nonce != nonce_; }

  Area area_;
  const Self self_;
  const Times times_;
  Clock& clock_;
  Random& random_;
  format::Lease lease_;
  State state_ = State::look;
  std::optional<format::Lease> seen_;      // before the challenge
  std::optional<format::Lease> doubtful_;
  std::uint64_t nonce_ = 0;
  std::uint64_t patient_until_ns_ = 0;
  std::uint64_t answered_ = 0;
  std::uint32_t first_block_ = 0;
  unsigned attempts_ = 0;
};

}  // namespace varve::lease

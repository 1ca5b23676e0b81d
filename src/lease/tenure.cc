#include "lease/tenure.h"

#include <fmt/format.h>

#include <utility>

#include "base/logging.h"

namespace varve::lease {

Tenure::Tenure(Area area, const Times& times, const format::Lease& lease, std::uint32_t first_block, std::uint64_t looked_ns, Now now)
    : area_(area), times_(times), lease_(lease), now_(std::move(now)), first_block_(first_block), former_first_block_(first_block),
      looked_ns_(looked_ns) {}

bool Tenure::look() {
  if (!why_lost_.empty()) return true;
  const std::uint64_t began = now_();
  const auto found = area_.read();
  if (!found.ok()) return false;
  why_lost_ = why_not_mine(*found);
  if (!why_lost_.empty()) return true;
  if (found->challenge && found->challenge->demands) {
    why_lost_ = fmt::format("{} is being taken over by {}", area_.name(), describe(found->challenge->process, found->challenge->made));
    return true;
  }
  if (found->challenge && found->challenge->nonce != answered_) {
    answer(*found->challenge);
    // The newcomer has waited less than this since the last look that counts, which did not see the challenge.
    const std::uint64_t now = now_();
    if (now - looked_ns_ >= times_.promise_ns) doubtful_until_ns_ = now + times_.settle_ns;
  }
  if (began >= doubtful_until_ns_) looked_ns_ = began;
  return true;
}

// Without an answer the lease is the newcomer's soon. So little is given up here, and nothing of what else the error may mean is missed.
void Tenure::answer(const format::Challenge& challenge) {
  log_warn("{}: {} asked for it, and is refused", area_.name(), describe(challenge.process, challenge.made));
  const Status written = area_.write(format::Answer{challenge.nonce, lease_.holder});
  if (written.ok()) {
    answered_ = challenge.nonce;
    return;
  }
  log_error("{}", written.error().message());
  if (written.fails_with(Errc::interrupted)) return;  // the next look answers
  has_failed_ = true;
  const std::string refusal = area_.refusal();
  lose(refusal.empty() ? written.error().message() : refusal);
}

std::string Tenure::why_not_mine(const Look& found) const {
  if (found.lease && found.lease->holder != lease_.holder)
    return fmt::format("{} has been taken over by {}", area_.name(), describe(found.lease->process, found.lease->taken));
  if (!found.lease)
    return fmt::format("{} has been written to by another program, which has {} the lease", area_.name(),
                       found.is_blank ? "removed" : "destroyed");
  if (found.has_superblock && found.first_block != first_block_ && found.first_block != former_first_block_)
    return fmt::format("{} has been written to by another program, which takes no notice of leases", area_.name());
  return "";
}

void Tenure::lose(const std::string& why) {
  if (why_lost_.empty()) why_lost_ = why;
}

Status Tenure::give_up() {
  look();
  if (!why_lost_.empty()) return {};
  why_lost_ = fmt::format("the lease of {} has been given up", area_.name());
  if (now_() - looked_ns_ > times_.promise_ns / 2) return {};
  return area_.clear_lease();
}

std::uint64_t Tenure::doubt_ns() const {
  const std::uint64_t now = now_();
  return why_lost_.empty() && now < doubtful_until_ns_ ? doubtful_until_ns_ - now : 0;
}

// The same write may be tried again (io/holding_device.h): what stands there is still what was there before the first try.
void Tenure::expect_first_block(std::uint32_t crc) {
  if (crc != first_block_) former_first_block_ = std::exchange(first_block_, crc);
}

}  // namespace varve::lease

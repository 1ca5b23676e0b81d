#include "lease/leased_device.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/logging.h"
#include "format/superblock.h"
#include "io/exclusive_use.h"
#include "io/reactor.h"
#include "io/stacking.h"
#include "remote/open_device.h"

namespace varve::lease {

namespace {

constexpr std::uint64_t kLeaseBegin = format::kLeaseBlock << kBlockShift;
constexpr std::uint64_t kLeaseEnd = (format::kAnswerBlock + 1) << kBlockShift;

bool covers_lease(const io::IoRequest& request) {
  return request.changes() && request.offset < kLeaseEnd && request.offset + request.length > kLeaseBegin;
}

// Completes only when something is safe.
bool makes_safe(const io::IoRequest& request) { return request.kind == io::IoKind::flush || request.durable; }

bool is_superblock(const io::IoRequest& request) {
  if (request.kind != io::IoKind::write || request.iov.empty()) return false;
  std::uint64_t magic = 0;
  std::memcpy(&magic, request.iov[0].iov_base, sizeof magic);
  return request.offset == 0 || (request.length <= format::kMaxSlotBlocks * kBlockSize && magic == format::kSuperMagic);
}

Times with_delivery(Times times, const io::BlockDevice& device) {
  times.delivery_ns = device.delivery_ns();
  return times;
}

}  // namespace

LeasedDevice::LeasedDevice(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times)
    : below_(std::move(below)), use_(std::move(use)), times_(with_delivery(times, *below_)), area_(*below_), keeper_(area_, times_) {
  below_->ask(this);
}

LeasedDevice::~LeasedDevice() {
  (void)release().ok();
  below_->ask(nullptr);
}

Self LeasedDevice::self() const {
  return {this_process(use_.program, use_.place), object_of(name()), geometry().may_be_shared && !is_alone_, use_.takes_over,
          is_alone_};
}

std::string LeasedDevice::refusal() const {
  std::string why = keeper_.why_lost();
  return why.empty() ? below_->refusal() : why;
}

// Before there is a lease, its user has decided what to do (mkfs).
io::WriteGuard::Verdict LeasedDevice::may_send(std::uint64_t looked_after_ns) {
  return claimed_ ? keeper_.may_send(looked_after_ns) : Verdict::yes;
}

// A loop device claims nothing: another one may stand on the same file.
void LeasedDevice::note_claimed() {
  struct stat status {};
  if (!geometry().rotational || geometry().may_be_shared || ::stat(name().c_str(), &status) != 0) return;
  const io::Stack stack = io::stack_of(status, name());
  if (stack.complete && std::ranges::all_of(stack.layers, &io::Layer::is_block_device)) keeper_.let_rest();
}

void LeasedDevice::look_soon() { keeper_.look_soon(); }

LeaseFacts LeasedDevice::facts() const {
  LeaseFacts facts;
  facts.is_held = claimed_ && keeper_.why_lost().empty();
  facts.may_be_shared = geometry().may_be_shared;
  facts.why_lost = keeper_.why_lost();
  if (!claimed_) return facts;
  facts.holder = describe(lease_.process, lease_.taken);
  facts.look_age_ms = keeper_.look_age_ns() / 1'000'000;
  return facts;
}

Result<std::unique_ptr<LeasedDevice>> LeasedDevice::hold(std::unique_ptr<io::BlockDevice> below, Use use, const Times& times) {
  std::unique_ptr<LeasedDevice> device(new LeasedDevice(std::move(below), std::move(use), times));
  TRY(device->begin());
  return device;
}

Result<std::unique_ptr<LeasedDevice>> LeasedDevice::open(const std::string& path, const io::OpenOptions& options, Use use) {
  auto device = TRY(remote::open_device(path, options));
  return hold(std::move(device), std::move(use));
}

Status LeasedDevice::begin() {
  if (!area_.has_room()) return {};
  const auto found = area_.read();
  if (!found.ok()) return {};  // its user will meet the error, and say what it means
  first_block_ = found->first_block;
  if (!read_only()) return found->lease || found->has_superblock ? claim() : Status();
  if (!found->lease) return {};
  if (may_write_unseen(*found->lease, self())) other_holder_ = describe(found->lease->process, found->lease->taken);
  if (life_of(*found->lease, self()) != Life::alive) return {};
  return Error(Errc::in_use, fmt::format("{} is in use by {}: stop that first", name(),
                                         describe(found->lease->process, found->lease->taken)));
}

Status LeasedDevice::claim() {
  const Lock one(claim_mutex_);
  if (claimed_) return {};
  const auto alone = TRY(io::KernelClaim::take(name(), geometry().is_block_device));
  TRY(shut_out_others());
  Claim claim(area_, self(), times_, Clock::system(), Random::system());
  const bool was_looked_at = TRY(area_.read()).first_block == first_block_;
  std::uint64_t began = 0;
  for (bool said = false;;) {
    began = boot_time_ns();
    const auto wait = TRY(claim.step(boot_time_ns));
    if (!wait) break;
    if (claim.waits_for() && !std::exchange(said, true))
      log_warn("{}: waiting up to {} s, in case {} still lives", name(),
                   (promise_of(*claim.waits_for()) + times_.margin_ns) / 1'000'000'000,
                   describe(claim.waits_for()->process, claim.waits_for()->taken));
    std::this_thread::sleep_for(std::chrono::nanoseconds(*wait));
  }
  TRY(keeper_.start(claim, began));
  lease_ = claim.lease();
  claimed_ = true;
  if (was_looked_at || claim.first_block() == first_block_) return {};
  return Error(Errc::in_use, fmt::format("{} has been changed by another program since it was opened: try again", name()));
}

// Where the storage has a lock of its own, the lease only names the holder.
Status LeasedDevice::shut_out_others() {
  const auto holder = TRY(area_.read()).lease;
  const bool has_ended = holder && life_of(*holder, self()) == Life::dead;
  const auto others = use_.takes_over ? io::ShutOut::all : has_ended ? io::ShutOut::dead_neighbour : io::ShutOut::nobody;
  auto is_alone = below_->shut_out(others);
  if (!is_alone.ok() && is_alone.error().is(Errc::in_use))
    return Error(Errc::in_use, fmt::format("{}{}: stop that first, or take it over (varve mount --take-over)", is_alone.error().message(),
                                           holder ? fmt::format(" ({})", describe(holder->process, holder->taken)) : ""));
  is_alone_ = TRY(std::move(is_alone));
  return {};
}

Status LeasedDevice::release() {
  const Lock one(claim_mutex_);
  if (std::exchange(released_, true) || !claimed_) return {};
  return keeper_.release();
}

bool LeasedDevice::admits(const io::IoRequest& request) {
  keeper_.note_use();
  if (!request.changes() || !area_.has_room()) return true;
  if (!claimed_) {
    if (const Status claimed = claim(); !claimed.ok()) {
      log_error("{}", claimed.error().message());
      return false;
    }
  }
  const bool is_super = is_superblock(request);
  if (!keeper_.may_write(is_super)) return false;
  if (is_super && request.offset == 0) {
    const std::span block(static_cast<const std::byte*>(request.iov[0].iov_base), kBlockSize);
    keeper_.expect_first_block(crc32c(block));
  }
  return true;
}

// EBUSY is for what another uses. A device that has failed is a failed disk, also if it has not said so yet and only the lease could not
// be read in time.
int LeasedDevice::why_refused() const {
  const bool is_failed = !below_->refusal().empty() || keeper_.has_failed() || (claimed_ && keeper_.why_lost().empty());
  return is_failed ? EIO : EBUSY;
}

// No less a change than a write.
Status LeasedDevice::set_length(std::uint64_t bytes) {
  if (!claimed_ || !keeper_.may_write(true)) return Error(Errc::in_use, fmt::format("{}: {}", name(), refusal()));
  return below_->set_length(bytes);
}

void LeasedDevice::submit(io::Reactor& reactor, io::IoRequest& request) {
  if (!admits(request)) return reactor.finish_later(request, why_refused());
  const auto completed = [](void* context, io::IoRequest& done, std::uint64_t) {
    done.error = static_cast<LeasedDevice*>(context)->judge(done, done.error);
  };
  if (makes_safe(request)) request.intercept(completed, this);
  below_->submit(reactor, request);
}

// One that was under way when the lease's write failed may have come to the error too late.
int LeasedDevice::judge(const io::IoRequest& request, int error) const {
  return !error && makes_safe(request) && keeper_.has_failed() ? EIO : error;
}

int LeasedDevice::execute(io::IoRequest& request) {
  if (!admits(request)) return request.error = why_refused();
  const int error = covers_lease(request) && area_.has_room() ? write_around(request) : below_->execute(request);
  return request.error = judge(request, error);
}

// The same request with the lease in its place. Rare and never large: what is wiped before a filesystem is made.
int LeasedDevice::write_around(io::IoRequest& request) {
  const std::uint64_t end = request.offset + request.length;
  io::IoRequest changed;
  changed.kind = request.kind;
  changed.durable = request.durable;
  if (request.kind == io::IoKind::discard) {
    if (end <= kLeaseEnd) return request.error = 0;  // only a hint
    changed.offset = kLeaseEnd;
    changed.length = end - kLeaseEnd;
    return request.error = below_->execute(changed);
  }
  AlignedBuffer bytes(request.length);
  std::size_t at = 0;
  for (const iovec& part : request.iov) {
    std::memcpy(bytes.data() + at, part.iov_base, part.iov_len);
    at += part.iov_len;
  }
  if (request.offset <= kLeaseBegin)
    format::encode_lease(keeper_.lease(), bytes.span().subspan(kLeaseBegin - request.offset, kBlockSize));
  changed.offset = request.offset;
  changed.add(bytes.data(), bytes.size());
  return request.error = below_->execute(changed);
}

void LeasedDevice::on_lost(std::function<void(const std::string& why)> lost) { keeper_.on_lost(std::move(lost)); }

}  // namespace varve::lease

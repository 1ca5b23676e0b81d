#include "support/crash_device.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "format/superblock.h"
#include "io/reactor.h"
#include "io/transfer.h"

namespace varve::test {

namespace {

constexpr std::size_t kMilestone = 64;
constexpr std::size_t kSector = 512;
constexpr std::array<const char*, 6> kPolicyNames = {"prefix", "lost", "subset", "torn", "scramble", "halved"};

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

using io::IoKind;
using io::IoRequest;

std::string to_string(const Cut& cut) {
  return fmt::format("{}:{}:{}", cut.position, kPolicyNames[static_cast<std::size_t>(cut.policy)], cut.seed);
}

std::optional<Cut> parse_cut(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  const auto policy =
      std::find(kPolicyNames.begin(), kPolicyNames.end(), text.substr(first + 1, second - first - 1));
  const auto position = parse_number(text.substr(0, first));
  const auto seed = parse_number(text.substr(second + 1));
  if (policy == kPolicyNames.end() || !position || !seed) return std::nullopt;
  return Cut{*position, static_cast<CutPolicy>(policy - kPolicyNames.begin()), *seed};
}

CrashDevice::CrashDevice(const io::MemDevice& start, Options options)
    : geometry_(start.geometry()), options_(options), now_(start.store()), random_(options.completion_seed) {
  milestones_.push_back(now_);
}

void CrashDevice::submit(io::Reactor& reactor, IoRequest& request) {
  if (options_.completion_seed != 0) return submit_shuffled(reactor, request);
  const auto carry_out = [](void* context, IoRequest& due, std::uint64_t submitted_at) {
    due.error = static_cast<CrashDevice*>(context)->execute_at(due, submitted_at);
  };
  request.intercept(carry_out, this, position());
  reactor.finish_later(request, 0);
}

void CrashDevice::submit_shuffled(io::Reactor& reactor, IoRequest& request) {
  const std::size_t now = position();
  reactor.begin(request);
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({&reactor, &request, now});
  }
  reactor.post([this, r = &reactor] { complete_any(*r); });
}

void CrashDevice::complete_any(io::Reactor& reactor) {
  Pending chosen{};
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < pending_.size(); ++i)
      if (pending_[i].reactor == &reactor) own.push_back(i);
    const std::size_t at = own[random_.next() % own.size()];
    chosen = pending_[at];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  reactor.finish(*chosen.request, execute_at(*chosen.request, chosen.submitted_at));
}

int CrashDevice::execute(IoRequest& request) { return execute_at(request, position()); }

std::size_t CrashDevice::position() const {
  const std::lock_guard lock(mutex_);
  return journal_.size();
}

std::size_t CrashDevice::flushes() const {
  const std::lock_guard lock(mutex_);
  return flushes_;
}

void CrashDevice::power_off() {
  const std::lock_guard lock(mutex_);
  powered_off_ = true;
}

int CrashDevice::execute_at(IoRequest& request, std::size_t submitted_at) {
  if (const int error = check_request(request, geometry_, false)) return error;
  const std::lock_guard lock(mutex_);
  if (powered_off_) return EIO;
  Event event;
  event.kind = request.kind;
  event.submitted_at = submitted_at;
  event.first_block = block_of(request.offset);
  event.durable = request.durable;
  std::uint64_t offset = request.offset;
  for (const iovec& part : request.iov) {
    const std::span<std::byte> bytes(static_cast<std::byte*>(part.iov_base), part.iov_len);
    if (request.kind == IoKind::read) now_.read(offset, bytes);
    if (request.kind == IoKind::write)
      for (std::size_t at = 0; at < bytes.size(); at += kBlockSize)
        event.blocks.push_back(io::MemStore::make_block(bytes.subspan(at).first<kBlockSize>()));
    offset += part.iov_len;
  }
  if (request.kind == IoKind::discard) event.blocks.resize(block_of(request.length));
  if (request.kind != IoKind::read) append(std::move(event));
  return 0;
}

// The caller holds mutex_.
void CrashDevice::append(Event event) {
  event.durable_until = journal_.empty() ? 0 : journal_.back().durable_until;
  if (event.kind == IoKind::flush) {
    event.durable_until = std::max(event.durable_until, event.submitted_at);
    ++flushes_;
  }
  deepest_ = std::max(deepest_, journal_.size() - event.submitted_at);
  apply(event, now_);
  journal_.push_back(std::move(event));
  if (journal_.size() % kMilestone == 0) milestones_.push_back(now_);
}

void CrashDevice::apply(const Event& event, io::MemStore& store) {
  for (std::size_t i = 0; i < event.blocks.size(); ++i) store.set_block(event.first_block + i, event.blocks[i]);
}

// A superblock has two sectors that say something: one of them comes without the other.
void CrashDevice::apply_half(const Event& event, io::MemStore& store, bool first) {
  const auto& bytes = event.blocks.front()->bytes;
  const std::size_t from = first ? 0 : kSector;
  store.write(event.first_block * kBlockSize + from, std::span(bytes).subspan(from, first ? kSector : kBlockSize - kSector));
  for (std::size_t i = 1; i < event.blocks.size() && !first; ++i) store.set_block(event.first_block + i, event.blocks[i]);
}

// Either a first part of the sectors, as one disk would leave it, or any of them, as an array of disks may.
void CrashDevice::apply_torn(const Event& event, io::MemStore& store, SeededRandom& random) {
  const std::size_t sectors = event.blocks.size() * (kBlockSize / kSector);
  const bool in_order = random.next() % 2 == 0;
  const std::size_t end = sectors ? random.next() % sectors : 0;
  for (std::size_t sector = 0; sector < sectors; ++sector) {
    const bool written = in_order ? sector < end : random.next() % 2 == 0;
    if (!written) continue;
    static constexpr std::array<std::byte, kBlockSize> kZeros{};
    const BlockPtr& source = event.blocks[sector * kSector / kBlockSize];
    const auto& bytes = source ? source->bytes : kZeros;
    store.write(event.first_block * kBlockSize + sector * kSector,
                std::span(bytes).subspan(sector * kSector % kBlockSize, kSector));
  }
}

// The functions from here to image() need mutex_ held.
io::MemStore CrashDevice::state_at(std::size_t position) const {
  const std::size_t milestone = position / kMilestone;
  io::MemStore store = milestones_[milestone];
  for (std::size_t i = milestone * kMilestone; i < position; ++i) apply(journal_[i], store);
  return store;
}

std::size_t CrashDevice::durable_at(std::size_t position) const {
  return position == 0 ? 0 : journal_[position - 1].durable_until;
}

io::MemStore CrashDevice::durable_state_at(std::size_t position) const {
  const std::size_t flushed = durable_at(position);
  io::MemStore store = state_at(flushed);
  for (std::size_t i = flushed; i < position; ++i)
    if (journal_[i].durable) apply(journal_[i], store);
  return store;
}

// Events that changed something, or were just about to, and are not durable.
std::vector<std::size_t> CrashDevice::loose_at(std::size_t position) const {
  std::vector<std::size_t> loose;
  const std::size_t end = std::min(journal_.size(), position + deepest_ + 1);
  for (std::size_t i = durable_at(position); i < end; ++i)
    if (journal_[i].kind != IoKind::flush &&
        (i < position ? !journal_[i].durable : journal_[i].submitted_at <= position))
      loose.push_back(i);
  return loose;
}

// The write to tear: the one that completes next, if it was under way, or else the last one that is not durable.
std::optional<std::size_t> CrashDevice::write_at_cut(std::size_t position) const {
  std::optional<std::size_t> found;
  for (const std::size_t i : loose_at(position)) {
    if (journal_[i].kind != IoKind::write) continue;
    found = i;
    if (i >= position) break;
  }
  return found;
}

std::optional<std::size_t> CrashDevice::superblock_at_cut(std::size_t position) const {
  const auto found = write_at_cut(position);
  if (!found) return std::nullopt;
  const Event& event = journal_[*found];
  const bool is_small = event.blocks.size() <= format::kMaxSlotBlocks && event.blocks.front();
  return is_small && !format::decode_superblock(event.blocks.front()->bytes).fails_with(Errc::not_varve) ? found : std::nullopt;
}

std::unique_ptr<io::MemDevice> CrashDevice::image(const Cut& cut) const {
  const std::lock_guard lock(mutex_);
  const std::size_t position = std::min(cut.position, journal_.size());
  SeededRandom random(cut.seed * 0x9E3779B97F4A7C15ULL + position);
  std::optional<io::MemStore> store;
  switch (cut.policy) {
    case CutPolicy::prefix:
      store = state_at(position);
      break;
    case CutPolicy::lost:
      store = durable_state_at(position);
      break;
    case CutPolicy::subset: {
      store = durable_state_at(position);
      const std::uint64_t eighths = 1 + random.next() % 7;  // how many survive
      for (const std::size_t i : loose_at(position))
        if (random.next() % 8 < eighths) apply(journal_[i], *store);
      break;
    }
    case CutPolicy::torn: {
      const auto torn = write_at_cut(position);
      store = state_at(torn ? std::min(*torn, position) : position);
      if (torn) apply_torn(journal_[*torn], *store, random);
      for (std::size_t i = torn.value_or(position) + 1; i < position; ++i) apply(journal_[i], *store);
      break;
    }
    case CutPolicy::halved: {
      const auto halved = superblock_at_cut(position);
      store = state_at(halved ? std::min(*halved, position) : position);
      if (halved) apply_half(journal_[*halved], *store, cut.seed % 2 == 0);
      for (std::size_t i = halved.value_or(position) + 1; i < position; ++i) apply(journal_[i], *store);
      break;
    }
    case CutPolicy::scramble: {
      store = durable_state_at(position);
      std::vector<std::size_t> loose = loose_at(position);
      for (std::size_t left = loose.size(); left > 1; --left) std::swap(loose[left - 1], loose[random.next() % left]);
      for (const std::size_t i : loose) {
        const std::uint64_t fate = random.next() % 4;
        if (fate == 0) apply_torn(journal_[i], *store, random);
        if (fate >= 2) apply(journal_[i], *store);
      }
      break;
    }
  }
  return std::make_unique<io::MemDevice>(std::move(*store), fmt::format("crash at {}", to_string(cut)));
}

std::vector<Cut> CrashDevice::cuts(const CutPlan& plan) const {
  const std::size_t end = std::min(plan.last, position());
  std::vector<std::size_t> positions;
  for (std::size_t i = plan.first; i <= end; ++i) positions.push_back(i);
  SeededRandom random(plan.seed);
  if (positions.size() > plan.max_positions) {
    for (std::size_t i = 0; i < plan.max_positions; ++i)
      std::swap(positions[i], positions[i + random.next() % (positions.size() - i)]);
    positions.resize(plan.max_positions);
    std::sort(positions.begin(), positions.end());
  }
  std::vector<Cut> cuts;
  const std::lock_guard lock(mutex_);
  for (const std::size_t i : positions) {
    cuts.push_back({i, CutPolicy::prefix, 0});
    cuts.push_back({i, CutPolicy::lost, 0});
    for (const CutPolicy policy : {CutPolicy::subset, CutPolicy::torn, CutPolicy::scramble})
      for (unsigned variant = 0; variant < plan.seeds; ++variant) cuts.push_back({i, policy, random.next() % 1'000'000});
    if (!superblock_at_cut(i)) continue;
    cuts.push_back({i, CutPolicy::halved, 0});
    cuts.push_back({i, CutPolicy::halved, 1});
  }
  return cuts;
}

}  // namespace varve::test

#include "checkpoint/readers.h"

#include <algorithm>
#include <utility>

#include "snapshots/snapshots.h"
#include "space/charge.h"

namespace varve::checkpoint {

namespace {
constexpr std::size_t kMostReaders = 256;
constexpr std::uint64_t kMostSeconds = 3600;
}  // namespace

// A tool that has not asked again in time has ended.
std::vector<Serial> Readers::held_now() const {
  std::vector<Serial> held;
  if (readers_.empty()) return held;
  const std::uint64_t now = parts_.clock.monotonic_ns();
  for (const Reader& reader : readers_)
    if (reader.until_ns > now) held.push_back(reader.snapshot);
  return held;
}

bool Readers::erase_ended() {
  if (readers_.empty()) return false;
  const std::uint64_t now = parts_.clock.monotonic_ns();
  return std::erase_if(readers_, [&](const Reader& reader) { return reader.until_ns <= now; }) > 0;
}

void Readers::charge() { parts_.charge.hold(parts_.snapshots.loose_of(held_now()).blocks); }

std::vector<Serial> Readers::held() {
  const Lock lock(mutex_);
  return held_now();
}

std::size_t Readers::expendable() {
  const std::size_t all = parts_.snapshots.automatic();
  if (!all) return 0;
  const Lock lock(mutex_);
  const std::size_t held = parts_.snapshots.loose_of(held_now()).snapshots;
  return all - std::min(all, held);
}

void Readers::note_leaving(std::vector<Serial> leaving) {
  const Lock lock(mutex_);
  leaving_ = std::move(leaving);
}

void Readers::count() {
  const Lock lock(mutex_);
  if (readers_.empty()) return;
  erase_ended();
  charge();
}

bool Readers::forget_ended() {
  const Lock lock(mutex_);
  const bool any = erase_ended();
  if (any) charge();
  return any;
}

// Users may have filled what it holds since the last checkpoint: then somebody would be refused at once.
Status Readers::begin(Serial snapshot) {
  if (!parts_.snapshots.find(snapshot) || std::ranges::find(leaving_, snapshot) != leaving_.end()) return Errc::stale;
  if (readers_.size() >= kMostReaders) return Error(Errc::in_use, "too many tools read snapshots");
  std::vector<Serial> held = held_now();
  const std::uint64_t before = parts_.snapshots.loose_of(held).blocks;
  held.push_back(snapshot);
  const std::uint64_t blocks = parts_.snapshots.loose_of(held).blocks;
  if (parts_.charge.free_blocks() < blocks - std::min(blocks, before)) return Errc::no_space;
  parts_.charge.hold(blocks);
  return {};
}

Status Readers::hold(Serial snapshot, std::uint64_t reader, std::uint64_t seconds) {
  const Gate::Pass pass(parts_.gate);
  const Lock lock(mutex_);
  const auto is_it = [&](const Reader& one) { return one.snapshot == snapshot && one.number == reader; };
  erase_ended();
  if (seconds == 0) {
    std::erase_if(readers_, is_it);
    charge();
    return {};
  }
  if (std::ranges::find(readers_, snapshot, &Reader::snapshot) == readers_.end()) TRY(begin(snapshot));
  std::erase_if(readers_, is_it);
  const std::uint64_t now = parts_.clock.monotonic_ns();
  readers_.push_back({snapshot, reader, now + std::min(seconds, kMostSeconds) * 1'000'000'000});
  return {};
}

}  // namespace varve::checkpoint

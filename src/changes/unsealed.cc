#include "changes/unsealed.h"

#include <algorithm>

#include "base/invariant.h"
#include "format/chunk.h"

namespace varve::changes {

bool Unsealed::reserve_records(std::size_t bytes) {
  INVARIANT(bytes <= most_record_bytes_);  // or no seal would help
  const std::size_t before = reserved_records_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= most_record_bytes_) return true;
  give_back_records(bytes);
  return false;
}

void Unsealed::give_back_records(std::size_t bytes) {
  [[maybe_unused]] const std::size_t before = reserved_records_.fetch_sub(bytes, std::memory_order_relaxed);
  INVARIANT(before >= bytes);
}

void Unsealed::add(InodeDelta& delta, std::uint64_t now_ns) {
  const Lock lock(mutex_);
  deltas_.push_back(&delta);
  if (!since_ns_) since_ns_ = std::max<std::uint64_t>(1, now_ns);
}

void Unsealed::count(const PendingBlock& block) {
  auto& listed = block.buffer->listed;
  const std::uint64_t bytes = (listed.held ? 1 : 1 + std::uint64_t{block.buffer->beside}) << kBlockShift;
  const bool stream = block.block >= kYoungBlocks;
  ++listed.waiting;
  ++listed.held;
  listed.stream += stream;
  payload_bytes_.fetch_add(kBlockSize, std::memory_order_relaxed);
  held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (stream) stream_bytes_.fetch_add(kBlockSize, std::memory_order_relaxed);
}

void Unsealed::keep_logged(PendingPtr block) {
  const Lock lock(mutex_);
  INVARIANT(block->owner && !block->is_logged);
  block->is_logged = true;
  logged_.push_back(std::move(block));
  logged_count_ = logged_.size();
  reserved_records_ += kLoggedRecordBytes;
}

void Unsealed::give_blocks_to_logged() {
  const Lock lock(mutex_);
  for (PendingPtr& block : logged_) {
    block->is_logged = false;
    block->needs_block = true;
    block->buffer->listed = {};  // of the chunk before
    count(*block);
    payload_.push_back(std::move(block));
  }
  logged_.clear();
  logged_count_ = 0;  // its records stay reserved
}

void Unsealed::drop_payload(PendingBlock& block) {
  const Lock lock(mutex_);
  INVARIANT(block.owner != nullptr);
  if (block.is_logged) {
    block.owner = nullptr;
    std::erase_if(logged_, [&](const PendingPtr& one) { return one.get() == &block; });
    logged_count_ = logged_.size();
    return;
  }
  auto& listed = block.buffer->listed;
  INVARIANT(listed.waiting > 0);
  payload_bytes_.fetch_sub(kBlockSize, std::memory_order_relaxed);
  if (--listed.waiting == 0) {
    held_bytes_.fetch_sub((std::uint64_t{listed.held} + block.buffer->beside) << kBlockShift, std::memory_order_relaxed);
    stream_bytes_.fetch_sub(std::uint64_t{listed.stream} << kBlockShift, std::memory_order_relaxed);
    listed = {};
  }
  block.owner = nullptr;
  block.data = nullptr;
  block.buffer.reset();  // the list keeps the rest
  ++dropped_;
}

void Unsealed::forget_dropped() {
  constexpr std::size_t kFew = 1024;
  if (dropped_ < kFew || dropped_ < payload_.size() / 2) return;
  std::erase_if(payload_, [](const PendingPtr& block) { return !block->owner; });
  dropped_ = 0;
}

void Unsealed::forget_vanished() {
  const Lock lock(mutex_);
  std::erase_if(deltas_, [](InodeDelta* delta) {
    if (delta->vanished()) delta->unsealed.listed = false;
    return !delta->unsealed.listed;
  });
  if (deltas_.empty()) since_ns_ = 0;
}

void Unsealed::settle_records(std::size_t bytes) {
  INVARIANT(bytes <= reserved_records());
  reserved_records_ = bytes;
}

void Unsealed::clear() {
  const Lock lock(mutex_);
  INVARIANT(payload_.empty());
  deltas_.clear();
  reserved_records_ = for_logged();
  dropped_ = 0;
  payload_bytes_ = held_bytes_ = stream_bytes_ = 0;
  since_ns_ = 0;
  has_more_than_times_ = has_news_ = false;
}

}  // namespace varve::changes

#include "store/unsealed.h"

#include <algorithm>

#include "base/invariant.h"
#include "format/chunk.h"

namespace varve::store {

bool Unsealed::reserve_records(std::size_t bytes) {
  INVARIANT(bytes <= format::kMaxChunkRecordBytes);  // or no seal would help
  const std::size_t before = reserved_records_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= format::kMaxChunkRecordBytes) return true;
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

void Unsealed::clear() {
  const Lock lock(mutex_);
  INVARIANT(payload_.empty());
  deltas_.clear();
  reserved_records_ = 0;
  payload_bytes_ = 0;
  since_ns_ = 0;
}

}  // namespace varve::store

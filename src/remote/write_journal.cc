#include "remote/write_journal.h"

#include <algorithm>
#include <cstring>

#include "base/invariant.h"

namespace varve::remote {

// The memory is not touched before it is used: what never holds a write takes none.
WriteJournal::WriteJournal(std::size_t bytes) : capacity_(bytes), ring_(new std::byte[bytes]) {}

WriteJournal::Entry* WriteJournal::add(std::uint64_t offset, std::uint32_t length) {
  MEMORY_INVARIANT(length > 0 && length <= largest());
  std::uint64_t position = end_;
  if (const std::uint64_t at = position % capacity_; at + length > capacity_) position += capacity_ - at;
  if (position + length - begin_ > capacity_) return nullptr;
  Entry& entry = entries_.emplace_back();
  entry.offset = offset;
  entry.length = length;
  entry.position = position;
  entry.data = ring_.get() + position % capacity_;
  end_ = position + length;
  return &entry;
}

void WriteJournal::acknowledge(Entry& entry) {
  if (entry.state != State::sent) return;  // repeated, and acknowledged again
  entry.state = State::acknowledged;
  entry.serial = ++serial_;
  acknowledged_bytes_ += entry.length;
}

void WriteJournal::acknowledge_durable(Entry& entry) {
  for (const Entry& older : entries_) {
    if (&older == &entry) break;
    if (older.state != State::safe && older.meets(entry)) return acknowledge(entry);
  }
  drop(entry);
}

void WriteJournal::overwrite(std::uint64_t offset, const std::byte* data, std::uint64_t length) {
  for (Entry& entry : entries_) {
    const std::uint64_t begin = std::max(offset, entry.offset), end = std::min(offset + length, entry.offset + entry.length);
    if (begin < end) std::memcpy(entry.data + (begin - entry.offset), data + (begin - offset), end - begin);
  }
}

void WriteJournal::drop(Entry& entry) {
  if (entry.state == State::acknowledged) acknowledged_bytes_ -= entry.length;
  entry.state = State::safe;
  shorten();
}

void WriteJournal::flushed(std::uint64_t mark) {
  for (Entry& entry : entries_) {
    if (entry.state != State::acknowledged || entry.serial > mark) continue;
    entry.state = State::safe;
    acknowledged_bytes_ -= entry.length;
  }
  shorten();
}

void WriteJournal::clear() {
  entries_.clear();
  begin_ = end_;
  acknowledged_bytes_ = 0;
}

void WriteJournal::shorten() {
  while (!entries_.empty() && entries_.front().state == State::safe && !entries_.front().on_wire) entries_.pop_front();
  begin_ = entries_.empty() ? end_ : entries_.front().position;
}

}  // namespace varve::remote

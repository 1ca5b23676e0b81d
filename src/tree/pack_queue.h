// Items or child references on their way into new nodes, with the bytes that each will take there.
//
// The sizes follow the coding of keys in format/node.h: an entry costs less behind a neighbour with the same inode and
// kind. They are known in advance so that nodes can be cut evenly; the builders have the last word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/invariant.h"
#include "format/key.h"
#include "format/node.h"
#include "format/varint.h"

namespace varve::tree {

// `previous`: in the same node, or null.
constexpr std::size_t coded_key_bytes(const format::Key* previous, const format::Key& key) {
  const bool same_ino = previous && previous->ino == key.ino;
  const bool same_kind = previous && previous->kind == key.kind;
  const std::size_t ino = same_ino ? 0 : format::varint_bytes(previous ? key.ino - previous->ino : key.ino.v);
  const std::uint64_t offset = same_ino && same_kind ? key.offset - previous->offset : key.offset;
  return 1 + ino + (same_kind ? 0 : 1) + format::varint_bytes(offset);
}

// Value: what an entry carries besides its key; `coded_bytes()` is its size in a node.
template <class Value>
class PackQueue {
 public:
  struct Entry {
    format::Key key;
    std::size_t bytes = 0;  // as coded behind the entry before it
    Value value;
  };

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  std::size_t bytes() const { return bytes_; }
  const Entry& operator[](std::size_t i) const { return entries_[i]; }
  const Entry& front() const { return entries_.front(); }
  const Entry& back() const { return entries_.back(); }

  void push_back(const format::Key& key, Value value) {
    const format::Key* previous = entries_.empty() ? nullptr : &entries_.back().key;
    const std::size_t bytes = coded_key_bytes(previous, key) + value.coded_bytes();
    entries_.push_back({key, bytes, std::move(value)});
    bytes_ += bytes;
  }

  void push_front(const format::Key& key, Value value) {
    const std::size_t bytes = coded_key_bytes(nullptr, key) + value.coded_bytes();
    if (!entries_.empty()) recode_front(&key);
    entries_.push_front({key, bytes, std::move(value)});
    bytes_ += bytes;
  }

  void pop_front(std::size_t n) {
    MEMORY_INVARIANT(n <= entries_.size());
    for (; n > 0; --n) {
      INVARIANT(bytes_ >= entries_.front().bytes);
      bytes_ -= entries_.front().bytes;
      entries_.pop_front();
    }
    if (!entries_.empty()) recode_front(nullptr);
  }

  void pop_back() {
    MEMORY_INVARIANT(!entries_.empty());
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }

  // Number of leading entries that come nearest to `target` bytes and fit in a node; at least one.
  std::size_t cut(std::size_t target) const {
    std::size_t sum = 0, n = 0;
    while (n < entries_.size()) {
      const std::size_t with = sum + entries_[n].bytes;
      if (n > 0 && (with > format::kNodePayloadBytes || (with > target && with - target > target - sum))) break;
      sum = with;
      ++n;
      if (sum >= target) break;
    }
    return n;
  }

 private:
  void recode_front(const format::Key* previous) {
    Entry& entry = entries_.front();
    INVARIANT(bytes_ >= entry.bytes);
    bytes_ -= entry.bytes;
    entry.bytes = coded_key_bytes(previous, entry.key) + entry.value.coded_bytes();
    bytes_ += entry.bytes;
  }

  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
};

}  // namespace varve::tree

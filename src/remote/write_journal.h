// Copies of the writes that a flush has not made safe yet, to be repeated after a lost connection.
//
// The server may have lost what it has acknowledged: it was killed, or its machine was. So every write is copied before it is
// sent, and the copy is kept until a flush that began after the acknowledgement has succeeded, or until the write is
// acknowledged as durable by itself. The memory is a ring of fixed size that is taken at the beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace varve::remote {

class WriteJournal {
 public:
  enum class State : std::uint8_t { sent, acknowledged, safe };

  struct Entry {
    std::uint64_t offset = 0;  // on the device, in bytes
    std::uint32_t length = 0;
    std::byte* data = nullptr;
    std::uint64_t position = 0;  // in the ring, counted from the beginning of time
    std::uint64_t serial = 0;    // of the acknowledgement
    State state = State::sent;
    bool durable = false;
    bool on_wire = false;   // for the repetition
    void* waiter = nullptr;  // what the sender wants to find again; null once it has been answered

    bool meets(const Entry& other) const { return offset < other.offset + other.length && other.offset < offset + length; }
  };

  explicit WriteJournal(std::size_t bytes);

  // Room for a write's bytes, in one piece; null when the ring is full. Entries stay where they are until they are safe.
  Entry* add(std::uint64_t offset, std::uint32_t length);
  void acknowledge(Entry& entry);
  // The same of a durable write: safe by itself, unless an older one that is not would be repeated over it. Then both are kept.
  void acknowledge_durable(Entry& entry);
  // Of no interest any more: it was refused.
  void drop(Entry& entry);
  // What has been acknowledged so far: a flush that is sent now covers that.
  std::uint64_t mark() const { return serial_; }
  void flushed(std::uint64_t mark);
  void clear();
  // What was written past the journal stands in the copies as well, so that no repetition brings back what was there before.
  void overwrite(std::uint64_t offset, const std::byte* data, std::uint64_t length);

  // Whether a flush should be sent, so that room comes back before it is missed.
  bool wants_flush() const { return acknowledged_bytes_ > capacity_ / 2; }
  std::uint64_t acknowledged_bytes() const { return acknowledged_bytes_; }
  std::size_t largest() const { return capacity_ / 4; }
  // In the order in which they were sent, safe ones among them.
  std::deque<Entry>& entries() { return entries_; }

 private:
  void shorten();

  std::size_t capacity_;
  std::unique_ptr<std::byte[]> ring_;
  std::deque<Entry> entries_;
  std::uint64_t begin_ = 0, end_ = 0;  // positions of the used part
  std::uint64_t serial_ = 0;
  std::uint64_t acknowledged_bytes_ = 0;
};

}  // namespace varve::remote

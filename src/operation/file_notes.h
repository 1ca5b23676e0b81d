// Operations note here for work in idle time that the filesystem is in use, and which files stand in pieces. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/types.h"

namespace varve::operation {

class FileNotes {
 public:
  static constexpr std::size_t kMostFiles = 64;  // that are remembered
  using Files = std::unordered_map<std::uint64_t, std::uint64_t>;  // by inode: pieces, as far as is known

  // Off where nobody would read them: then nothing need be told.
  explicit FileNotes(bool on) : on_(on) {}
  bool is_on() const { return on_; }

  // An operation changes something, or waits for the device: it comes first.
  void note_use() {
    if (on_) uses_.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t uses() const { return uses_.load(std::memory_order_relaxed); }

  void note_overwrite(Ino file, std::uint64_t blocks);  // before the end of the file
  void note_pieces(Ino file, std::uint64_t pieces);     // what was read in a row stands in so many
  bool any() const { return on_ && has_files_.load(std::memory_order_relaxed); }

  Files take();  // all of them
  void put_back(const Files& files);
  // Blocks that it has cost since the mount, if a seek takes as long as the transfer of so many.
  std::uint64_t cost(std::uint64_t seek_blocks) const;

 private:
  void note(std::uint64_t file, std::uint64_t pieces) REQUIRES(mutex_);

  const bool on_;
  std::atomic<std::uint64_t> uses_{0};
  std::atomic<bool> has_files_{false};
  mutable Mutex mutex_;
  Files files_ GUARDED_BY(mutex_);
  std::uint64_t written_over_ GUARDED_BY(mutex_) = 0, read_in_pieces_ GUARDED_BY(mutex_) = 0;  // blocks; pieces
};

}  // namespace varve::operation

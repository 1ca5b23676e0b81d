// Puts files together again by itself, where seeks are dear: those that were written over here and there, or were read in a row and
// found in many pieces. It does so when for some seconds no operation has changed anything or waited for the device, on mains power.
//
// The budget: moving takes the device no longer than the pieces have cost already when they were read. Beside that it writes no more than
// has been written over since the mount. A piece of a file is moved only if reading it would take twice as long as it need. Tidying
// stops where its writes would make the cleaner begin, and each file is looked at once until it is written over or read in pieces again:
// so it comes to rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "base/mutex.h"
#include "base/types.h"

namespace varve::fs {

class Engine;
struct ReadCost;

class Tidier {
 public:
  static constexpr std::uint64_t kIdleNs = 10'000'000'000;  // since the last use
  static constexpr std::size_t kMostFiles = 64;             // that are remembered

  explicit Tidier(Engine& engine);
  ~Tidier();

  // --- any thread ---
  // Only on what may seek, and with a cleaner: elsewhere nothing need be told.
  bool is_on() const { return on_; }
  // An operation changes something, or waits for the device: it comes first.
  void note_use() {
    if (on_) uses_.fetch_add(1, std::memory_order_relaxed);
  }
  void note_overwrite(Ino file, std::uint64_t blocks);  // before the end of the file
  void note_pieces(Ino file, std::uint64_t pieces);     // what was read in a row stands in so many
  bool has_work() const { return on_ && has_files_.load(std::memory_order_relaxed); }
  std::uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }  // blocks

  // --- the thread that makes checkpoints ---
  // The filesystem has not been used for a while.
  bool is_due(std::uint64_t now_ns);
  // Until all files have been looked at, the budget is spent, or there is something else to do: it is used, or `disturbed`.
  void run(const std::function<bool()>& disturbed);

 private:
  class Files;
  using FileMap = std::unordered_map<std::uint64_t, std::uint64_t>;  // by inode: pieces, as far as is known

  void note(Ino file, std::uint64_t pieces) REQUIRES(mutex_);
  std::uint64_t budget(const ReadCost& cost);  // blocks
  FileMap take_files();
  void tidy(Files& files, const ReadCost& cost, const std::function<bool()>& stop);

  Engine& engine_;
  const bool on_;
  std::atomic<std::uint64_t> uses_{0}, moved_{0};
  std::atomic<bool> has_files_{false};
  std::uint64_t seen_uses_ = 0, since_ns_ = 0;  // since when there have been no more
  Mutex mutex_;
  FileMap files_ GUARDED_BY(mutex_);
  std::uint64_t written_over_ GUARDED_BY(mutex_) = 0, read_in_pieces_ GUARDED_BY(mutex_) = 0;  // blocks; pieces
};

}  // namespace varve::fs

// What the kernel had accepted from write(2) into its cache and the filesystem then refused: for want of room, because it has become
// read-only, or as the device failed. It is known which ranges of which files are missing, and which threads that write to them have not
// been told yet.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/errc.h"
#include "base/mutex.h"
#include "base/types.h"

namespace varve::fuse {

// The kernel reports such a refusal once, to the first fsync or close, and goes on accepting. This remembers it until what is
// missing has been written again, cut off or punched out, or the kernel has forgotten the file and with it what it believed.
class LostWrites {  // thread-safe
 public:
  // Is what has failed with this error gone for its file? Of other errors the program hears in another way, or should have known.
  static bool loses(Errc why);
  // Bytes [from, end) of a file.
  void refused(Ino ino, std::uint64_t from, std::uint64_t end, Errc why);
  void settled(Ino ino, std::uint64_t from, std::uint64_t end);  // written, or punched out
  void cut(Ino ino, std::uint64_t size) { settled(ino, size, UINT64_MAX); }
  void forget(Ino ino);

  bool any() const { return files_lacking_.load(std::memory_order_relaxed) != 0; }
  bool lacks(Ino ino) const { return why_lacking(ino).has_value(); }
  std::optional<Errc> why_lacking(Ino ino) const;      // of the last refusal; none: it lacks nothing
  std::vector<Ino> files(std::size_t most) const;  // some of those that lack something

  // Of a file that lacks something: this thread writes to it.
  void writes(Ino ino, std::uint32_t thread);
  // Has something been refused since this thread, which writes to the file, was last told? Then it is to fail with this.
  std::optional<Errc> take_news(Ino ino, std::uint32_t thread);

 private:
  struct File {
    std::map<std::uint64_t, std::uint64_t> missing;  // from -> end; disjoint, bounded
    std::uint64_t refusals = 0;
    Errc why = Errc::no_space;  // of the last one
    std::unordered_map<std::uint32_t, std::uint64_t> told;  // thread -> refusals that it knows of; bounded
  };

  static void add(File& file, std::uint64_t from, std::uint64_t end);
  static void remove(File& file, std::uint64_t from, std::uint64_t end);
  void count() REQUIRES(mutex_) { files_lacking_.store(files_.size(), std::memory_order_relaxed); }

  mutable Mutex mutex_;
  std::unordered_map<Ino, File> files_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> files_lacking_{0};
};

}  // namespace varve::fuse

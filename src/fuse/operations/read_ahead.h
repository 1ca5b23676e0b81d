// Reading ahead of the kernel, for files that are read from front to end.
//
// The kernel asks for the next window of such a file when its reader enters the one before, so the device would rest while
// a window is copied. What will be asked for next is therefore read beforehand, into memory of its own, and handed over
// when the request for it comes, if the file is still the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "fs/filesystem.h"
#include "fuse/transport/buffer_pool.h"

namespace varve::fuse {

struct FileRange {
  Ino ino;
  std::uint64_t offset = 0;  // bytes
  std::size_t bytes = 0;
  bool keep_atime = false;  // O_NOATIME

  std::uint64_t end() const { return offset + bytes; }
};

// A range that is read ahead. Thread-safe after start().
class AheadPiece : public std::enable_shared_from_this<AheadPiece> {
 public:
  AheadPiece(fs::Filesystem& fs, const FileRange& range, io::Reactor& reactor)
      : fs_(fs), range_(range), operation_(fs.operations(), {}, &reactor) {}

  // Begins to read, by the reactor's thread; calls `read` with what it found, in bytes.
  void start(std::shared_ptr<BufferPool> pool, std::function<void(std::size_t got)> read);
  // Calls `ready` when content() may be asked, on the thread that reads. False: it may be asked now.
  bool when_done(std::function<void()> ready);
  // The first `bytes` of the range, fewer at the end of the file, as long as the piece lives; none if reading failed or
  // the file has changed since.
  std::optional<std::span<const std::byte>> content(std::size_t bytes) const;
  const FileRange& range() const { return range_; }

 private:
  void finish(const Result<std::size_t>& got, const std::function<void(std::size_t got)>& read);

  fs::Filesystem& fs_;
  const FileRange range_;
  fs::Operation operation_;
  std::shared_ptr<BufferPool> pool_;  // outlives the lease
  Lease memory_;
  std::uint64_t version_ = 0;         // of the content
  std::size_t got_ = 0;

  Mutex mutex_;
  // Under mutex_:
  bool done_ GUARDED_BY(mutex_) = false;
  std::function<void()> ready_ GUARDED_BY(mutex_);
};
using AheadPiecePtr = std::shared_ptr<AheadPiece>;

// Which pieces there are, and which to read next. Thread-safe.
class ReadAhead {
 public:
  static constexpr std::size_t kLeast = 256u << 10;   // shorter requests are not of a stream worth it
  static constexpr std::size_t kWindow = 4u << 20;    // bytes ahead of what has been asked for
  static constexpr std::uint64_t kPatience = 1'000'000'000;  // ns that a piece which has been read waits for its request

  static constexpr std::size_t kMostBytes = 8 * BufferPool::kMaxBytes;

  // `max_bytes`: of the buffers of all pieces that wait for a request.
  ReadAhead(fs::Filesystem& fs, Clock& clock, std::size_t max_bytes) : fs_(fs), clock_(clock), max_bytes_(max_bytes) {}

  void limit(std::size_t max_bytes) {  // another one; there may be more until they are asked for
    const Lock lock(mutex_);
    max_bytes_ = max_bytes;
  }

  // The piece with all of this range, the caller's from now on; null if there is none.
  AheadPiecePtr claim(const FileRange& range);
  // The kernel has asked for this range: the pieces to start now, by start(), since the request that claims one waits for it.
  std::vector<AheadPiecePtr> follow(const FileRange& range, io::Reactor& reactor);
  // On the thread of the reactor. A piece that there is no memory to start is dropped and done.
  void start(const AheadPiecePtr& piece, const std::shared_ptr<BufferPool>& pool);
  void expire();  // the pieces that have waited too long; follow() does so, too

 private:
  struct Stream {
    std::uint64_t end = 0;      // of what the kernel has asked for
    std::uint64_t planned = 0;  // end of the pieces
    unsigned run = 0;           // requests, each behind the one before
  };
  struct Waiting {
    AheadPiecePtr piece;
    std::uint64_t since_ns = 0;  // 0: it is being read, which takes as long as the device needs
  };
  using Pieces = std::map<std::pair<std::uint64_t, std::uint64_t>, Waiting>;  // by inode and offset

  bool goes_on(Stream& stream, const FileRange& range);
  void note_read(const AheadPiece& piece, std::size_t got);
  template <class Passed>
  void expire(Passed&& passed) REQUIRES(mutex_);
  Pieces::iterator remove(Pieces::iterator at) REQUIRES(mutex_);

  fs::Filesystem& fs_;
  Clock& clock_;
  Mutex mutex_;
  // Under mutex_:
  std::size_t max_bytes_ GUARDED_BY(mutex_);
  Pieces pieces_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;  // of their buffers
  std::unordered_map<std::uint64_t, Stream> streams_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse

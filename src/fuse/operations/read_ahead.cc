#include "fuse/operations/read_ahead.h"

#include <algorithm>
#include <new>

#include "base/invariant.h"
#include "io/reactor.h"

namespace varve::fuse {

namespace {
constexpr std::size_t kMaxStreams = 256;
constexpr unsigned kSureAfter = 2;  // requests that follow each other
}  // namespace

// --- a piece --------------------------------------------------------------------------------------------------------------

void AheadPiece::start(std::shared_ptr<BufferPool> pool, std::function<void(std::size_t got)> read) {
  pool_ = std::move(pool);
  operation::run(
      operation_,
      [this]() -> Result<std::size_t> {
        if (!memory_) memory_ = pool_->take(range_.bytes);
        return fs_.read(operation_, range_.ino, range_.offset, {memory_.data(), range_.bytes},
                        {.keep_atime = range_.keep_atime, .version = &version_});
      },
      [self = shared_from_this(), read = std::move(read)](const Result<std::size_t>& got) { self->finish(got, read); });
}

void AheadPiece::finish(const Result<std::size_t>& got, const std::function<void(std::size_t got)>& read) {
  INVARIANT(!got.ok() || *got <= range_.bytes);
  got_ = got.ok() ? *got : 0;
  read(got_);
  std::function<void()> ready;
  {
    const Lock lock(mutex_);
    done_ = true;
    ready = std::move(ready_);
  }
  if (ready) ready();
}

bool AheadPiece::when_done(std::function<void()> ready) {
  const Lock lock(mutex_);
  if (done_) return false;
  ready_ = std::move(ready);
  return true;
}

std::optional<std::span<const std::byte>> AheadPiece::content(std::size_t bytes) const {
  if (got_ == 0 || fs_.content_version(range_.ino) != version_) return std::nullopt;
  return std::span<const std::byte>(memory_.data(), std::min(got_, bytes));
}

// --- all of them ----------------------------------------------------------------------------------------------------------

AheadPiecePtr ReadAhead::claim(const FileRange& range) {
  const Lock lock(mutex_);
  auto at = pieces_.find({range.ino.v, range.offset});
  if (at == pieces_.end()) return nullptr;
  AheadPiecePtr piece = at->second.piece;
  remove(at);
  return piece->range().bytes >= range.bytes ? piece : nullptr;
}

std::vector<AheadPiecePtr> ReadAhead::follow(const FileRange& range, io::Reactor& reactor) {
  std::vector<AheadPiecePtr> fresh;
  const std::size_t size = BufferPool::size_for(range.bytes);
  const Lock lock(mutex_);
  expire([&](const FileRange& piece) { return piece.ino == range.ino && piece.end() + kWindow <= range.offset; });
  if (streams_.size() > kMaxStreams) streams_.clear();
  Stream& stream = streams_[range.ino.v];
  if (!goes_on(stream, range)) stream = {range.end(), 0, 1};
  if (stream.run < kSureAfter) return fresh;
  stream.planned = std::max(stream.planned, stream.end);
  for (; stream.planned < stream.end + kWindow && bytes_ + size <= max_bytes_; stream.planned += range.bytes) {
    const FileRange next{range.ino, stream.planned, range.bytes, range.keep_atime};
    if (pieces_.contains({next.ino.v, next.offset})) continue;
    const auto piece = std::make_shared<AheadPiece>(fs_, next, reactor);
    pieces_.try_emplace({next.ino.v, next.offset}, Waiting{piece});
    fresh.push_back(piece);
    bytes_ += size;
    INVARIANT(bytes_ <= max_bytes_);
  }
  return fresh;
}

void ReadAhead::start(const AheadPiecePtr& piece, const std::shared_ptr<BufferPool>& pool) {
  piece->start(pool, [this, read = piece.get()](std::size_t got) { note_read(*read, got); });
}

// Requests of one window may come in any order.
bool ReadAhead::goes_on(Stream& stream, const FileRange& range) {
  if (stream.run == 0) return false;
  if (range.offset < stream.end) return stream.end - range.offset <= kWindow;
  if (range.offset - stream.end > 2 * range.bytes) return false;
  stream.end = range.end();
  ++stream.run;
  return true;
}

// One that a request has claimed is no more among them, and another one may have its place.
void ReadAhead::note_read(const AheadPiece& piece, std::size_t got) {
  const Lock lock(mutex_);
  const auto at = pieces_.find({piece.range().ino.v, piece.range().offset});
  if (at == pieces_.end() || at->second.piece.get() != &piece) return;
  if (got == 0) remove(at);
  else at->second.since_ns = std::max<std::uint64_t>(clock_.monotonic_ns(), 1);
}

void ReadAhead::expire() {
  const Lock lock(mutex_);
  expire([](const FileRange&) { return false; });
}

template <class Passed>
void ReadAhead::expire(Passed&& passed) {
  const std::uint64_t now = clock_.monotonic_ns();
  for (auto at = pieces_.begin(); at != pieces_.end();) {
    const std::uint64_t since = at->second.since_ns;
    const bool goes = passed(at->second.piece->range()) || (since && now - since > kPatience);
    at = goes ? remove(at) : std::next(at);
  }
}

ReadAhead::Pieces::iterator ReadAhead::remove(Pieces::iterator at) {
  const std::size_t size = BufferPool::size_for(at->second.piece->range().bytes);
  INVARIANT(bytes_ >= size);
  bytes_ -= std::min(bytes_, size);
  return pieces_.erase(at);
}

}  // namespace varve::fuse

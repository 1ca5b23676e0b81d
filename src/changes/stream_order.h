// Does what has come of a stream have a gap? Several threads take the messages of one writer, so a later one may be done first. What is
// sealed then lies out of its file's order for good.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace varve::changes {

// Not thread-safe. Follows the streams that went on last; what of others is out of order is not seen.
class StreamOrder {
 public:
  void note(Ino ino, std::uint64_t block);  // it has come
  // All that has come is in a chunk: each stream goes on behind it.
  void seal();
  bool has_gap() const;

 private:
  static constexpr std::uint64_t kFar = 16'384;  // blocks: what comes so far behind is no late message's successor, the writer has jumped
  struct Stream {
    Ino ino;
    std::uint64_t begin = 0, end = 0;  // blocks
    std::uint64_t count = 0;           // that have come of those
  };
  Stream& stream_of(Ino ino);

  std::array<Stream, 4> streams_;
  std::size_t next_ = 0;  // to be forgotten
};

}  // namespace varve::changes

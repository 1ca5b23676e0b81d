// What can be asked about snapshots, piece by piece: by a tool that has opened an image, or through the control room of a mount.
//
// A question says all there is to know: nothing is kept between two of them, so nothing is left behind by a tool that ends.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "format/item.h"
#include "format/key.h"

namespace varve::compare {

struct Question {
  enum class Kind : std::uint32_t {
    changes = 1,  // records (record.h) of what differs between two snapshots, from a key on; without `before`: everything
    entries = 2,  // the names in a directory of `after`, behind a cookie (entries.h)
    inode = 3,    // of `after` (kept_inode.h), from a byte on
    data = 4,     // bytes of a file of `after`, from an offset on; none: it ends there
    files = 5,    // these inodes of `after` (kept_file.h), in their order, the first ones of them; without their data
    contents = 6, // the same, with the data of small ones
  };
  Kind kind = Kind::changes;
  Serial before, after;
  format::Key from = format::kMinKey;  // but for `changes`: the inode, and the cookie, byte or offset
  std::vector<Ino> inodes{};           // files, contents: at least one and at most kMostAsked
};
inline constexpr std::size_t kMostAsked = 256;

// What the newest checkpoint has, for all but `data`, `files` and `contents`. Each attempt at an answer has its own, as nobody holds it.
inline constexpr Serial kNewest{~0ULL};

struct Answer {
  format::Key next = format::kMinKey;  // where the next question goes on
  bool ended = false;                  // there is nothing behind `bytes`
  format::Bytes bytes;                 // at most kMostAnswerBytes; may be empty before the end
};
inline constexpr std::size_t kMostAnswerBytes = 15u << 10;

// Errc::stale: a snapshot has gone. Errc::corrupt, Errc::io: it cannot be read.
using Ask = std::function<Result<Answer>(const Question&)>;

}  // namespace varve::compare

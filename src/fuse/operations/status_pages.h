// Answers that a tool is reading piece by piece (control/control.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "control/requests.h"

namespace varve::fuse {

class StatusPages {  // thread-safe; keeps the last few
 public:
  struct Piece {
    std::uint64_t document;
    std::uint32_t offset, total;
    std::string text;
    control::Right right;  // may have it
  };
  // Makes a new document and returns its first piece, of at most `room` bytes.
  Piece add(std::string text, std::size_t room, control::Right right);
  Result<Piece> piece(std::uint64_t document, std::uint32_t offset, std::size_t room);  // Errc::no_attribute: forgotten

 private:
  struct Document {
    std::uint64_t name;
    std::string text;
    control::Right right;
  };
  static Piece cut(const Document& document, std::uint32_t offset, std::size_t room);

  Mutex mutex_;
  std::uint64_t next_name_ GUARDED_BY(mutex_) = 1;
  std::deque<Document> documents_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse

// What a directory says of itself while it receives: which stream, and how far it has come.
//
// It stands in an attribute that no stream can reach. The filesystem keeps the order of changes, also over a crash, so what it tells has
// been carried out. What came after it may have been, too, in part: that is done once more.
#pragma once

#include <optional>
#include <string>

#include "send/stream.h"

namespace varve::send {

// This attribute of the directory that receives says what it has received, or what it is receiving. It is no part of a stream.
inline constexpr std::string_view kReceivedAttribute = "trusted.varve.received";

struct Interrupted {
  Begin begin;       // with the position where it goes on
  std::string path;  // of the file that was being written, if any
};

// The attribute as it is; empty: there is none.
Result<std::string> read_mark(int directory);
// In one step. Also where the directory is immutable, which it stays. Empty: it goes.
Status write_mark(int directory, const std::string& text);

std::string mark_of(const Interrupted& interrupted);
// None: the mark tells of something that was received as a whole, or there is none. Errc::corrupt.
Result<std::optional<Interrupted>> interrupted_from(const std::string& mark);

}  // namespace varve::send

// What a directory says of itself while it receives: which stream, and how far it has come.
//
// It stands in an attribute that no stream can reach. The filesystem keeps the order of changes, also over a crash, so what it tells has
// been carried out. What came after it may have been, too, in part: that is done once more.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"
#include "send/stream.h"

namespace varve::send {

// This attribute of the directory that receives says what it has received, or what it is receiving. It is no part of a stream.
inline constexpr std::string_view kReceivedAttribute = "trusted.varve.received";

// The attribute begins with this word when all is there, until the snapshot has been made of it. Then that snapshot's serial stands in it.
inline constexpr std::string_view kKeeping = "keeping ";

struct Interrupted {
  Begin begin;       // with the position where it goes on
  std::string path;  // of the file that was being written, if any
};

// What was received as a whole.
struct Whole {
  State sent;
  std::string name;  // of its snapshot here when that was made
  Serial here;       // 0: it has not been made yet, or the mark is from before
};

// The attribute as it is; empty: there is none.
Result<std::string> read_mark(int directory);
// In one step. Also where the directory is immutable, which it stays. Empty: it goes.
Status write_mark(int directory, const std::string& text);

std::string mark_of(const Interrupted& interrupted);
// None: the mark tells of something that was received as a whole, or there is none. Errc::corrupt.
Result<std::optional<Interrupted>> interrupted_from(const std::string& mark);

std::string mark_of(const State& sent, const std::string& name, Serial here);
// None: nothing was, or the mark tells of something else.
std::optional<Whole> whole_in(const std::string& mark);
// A snapshot has the mark of the moment before it was made. This is the one that came after.
std::string mark_behind(const std::string& mark, Serial snapshot);

}  // namespace varve::send

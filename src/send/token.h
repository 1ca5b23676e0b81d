// Where a receiver was interrupted, as a text that people carry from the receiver to the sender.
#pragma once

#include <string>
#include <string_view>

#include "send/stream.h"

namespace varve::send {

// Hexadecimal digits, with a checksum.
std::string token_of(const Begin& where);
// Errc::invalid: it is none, or not a whole one.
Result<Begin> begin_from(std::string_view token);

// Do both lead from the same state to the same state, wherever they begin? Snapshots may have been renamed in between.
bool lead_the_same_way(const Begin& one, const Begin& other);

}  // namespace varve::send

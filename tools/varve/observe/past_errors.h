// Errors that a filesystem has met since it was made, and whether they are over.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

struct PastErrors {
  std::uint64_t count = 0;
  std::int64_t last = 0;      // seconds since 1970
  std::int64_t verified = 0;  // when the last scrub, or check of all data, began, if it came to its end and found nothing; else 0

  // Everything has been read since the last one, and nothing is wrong any more.
  bool are_over() const { return count > 0 && verified > last; }
};

PastErrors past_errors(const Json& status);  // of a mount or a superblock
// "2 errors since it was made, the last 2026-11-26 14:00:00 +0000"; "no errors" without any.
std::string text_of(const PastErrors& errors);

}  // namespace varve::tool

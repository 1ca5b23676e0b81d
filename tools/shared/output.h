// Whether what a command printed has arrived.
#pragma once

#include <cerrno>
#include <cstring>
#include <ostream>

#include "base/errc.h"

namespace varve {

// For the end of a command: else a full disk, or a closed output, would pass for a complete answer. False after a message.
inline bool is_written(const char* tool, std::ostream& out, std::ostream& err) {
  errno = 0;
  if (out.flush()) return true;
  err << tool << ": the output could not all be written";
  if (errno != 0) err << ": " << errno_text();  // unknown if a write before has failed
  err << std::endl;
  return false;
}

}  // namespace varve

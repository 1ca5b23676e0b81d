// What another process says through a pipe.
#pragma once

#include <string>

namespace varve::fuse {

// Waits, and appends what has come. False: the process that writes there has ended, or it cannot be read.
bool read_some(int fd, std::string& text);

}  // namespace varve::fuse

#include "fuse/pipe_text.h"

#include <unistd.h>

#include <cerrno>

namespace varve::fuse {

bool read_some(int fd, std::string& text) {
  char part[512];
  ssize_t got;
  do got = ::read(fd, part, sizeof part);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  text.append(part, static_cast<std::size_t>(got));
  return true;
}

}  // namespace varve::fuse

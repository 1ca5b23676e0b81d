#include <unistd.h>

#include <csignal>
#include <iostream>

#include "fsck/command.h"
#include "fsck/recovery.h"
#include "shared/guarded.h"
#include "shared/start.h"

namespace {

// A repair that is cut off is a crash like any other: nothing to clean up.
void cancel(int) { ::_exit(varve::fsck::kCancelled); }

}  // namespace

int main(int argc, char** argv) {
  if (!varve::start_tool("fsck.varve")) return varve::fsck::kOperationalError;
  std::signal(SIGINT, cancel);
  std::signal(SIGTERM, cancel);
  std::signal(SIGPIPE, SIG_IGN);  // where nobody reads what it says, it repairs all the same
  return varve::guarded("fsck.varve", varve::fsck::kOperationalError, [&] {
    return varve::fsck::run(argc, argv, {std::cout, std::cerr, ::isatty(STDOUT_FILENO) != 0, varve::fsck::recover});
  });
}

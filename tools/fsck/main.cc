#include <unistd.h>

#include <csignal>
#include <iostream>

#include "base/standard_descriptors.h"
#include "fsck/command.h"
#include "fsck/recovery.h"
#include "shared/guarded.h"

namespace {

// A repair that is cut off is a crash like any other: nothing to clean up.
void cancel(int) { ::_exit(varve::fsck::kCancelled); }

}  // namespace

int main(int argc, char** argv) {
  if (!varve::open_standard_descriptors()) return varve::fsck::kOperationalError;
  std::signal(SIGINT, cancel);
  std::signal(SIGTERM, cancel);
  return varve::guarded("fsck.varve", varve::fsck::kOperationalError, [&] {
    return varve::fsck::run(argc, argv, {std::cout, std::cerr, ::isatty(STDOUT_FILENO) != 0, varve::fsck::recover});
  });
}

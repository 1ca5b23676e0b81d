#include <unistd.h>

#include <csignal>
#include <iostream>

#include "fsck/command.h"

namespace {

// Nothing is ever written, so there is nothing to clean up.
void cancel(int) { ::_exit(varve::fsck::kCancelled); }

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, cancel);
  std::signal(SIGTERM, cancel);
  return varve::fsck::run(argc, argv, {std::cout, std::cerr, ::isatty(STDOUT_FILENO) != 0, nullptr});
}

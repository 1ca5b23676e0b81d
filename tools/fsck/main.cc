#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string_view>

#include "fsck/command.h"
#include "fsck/recovery.h"
#include "shared/guarded.h"
#include "shared/interruptible.h"
#include "shared/start.h"
#include "shared/terminal.h"

namespace {

// A repair that is cut off is a crash like any other: nothing to clean up.
void cancel(int) {
  constexpr std::string_view kWord = "\nfsck.varve: interrupted: give the same command again\n";
  (void)!::write(STDERR_FILENO, kWord.data(), kWord.size());
  ::_exit(varve::fsck::kCancelled);
}

}  // namespace

int main(int argc, char** argv) {
  if (!varve::start_tool("fsck.varve")) return varve::fsck::kOperationalError;
  for (const int signal : varve::kInterruptions)
    if (!varve::is_ignored(signal)) std::signal(signal, cancel);
  std::signal(SIGPIPE, SIG_IGN);  // where nobody reads what it says, it repairs all the same
  return varve::guarded("fsck.varve", varve::fsck::kOperationalError, [&] {
    return varve::fsck::run(argc, argv, {std::cout, std::cerr, varve::moves_cursor(STDOUT_FILENO), varve::fsck::recover});
  });
}

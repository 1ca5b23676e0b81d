#include "base/io_priority.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace varve {

namespace {

// linux/ioprio.h is not for C++.
constexpr int kThisThread = 1, kClassShift = 13, kBestEffort = 2, kIdle = 3, kUsualLevel = 4;

void set(int io_class, int level) { (void)::syscall(SYS_ioprio_set, kThisThread, 0, io_class << kClassShift | level); }

}  // namespace

void be_idle_for_io() { set(kIdle, 0); }

void keep_io_priority() {
  const long chosen = ::syscall(SYS_ioprio_get, kThisThread, 0);
  if (chosen >= 0 && chosen >> kClassShift == 0) set(kBestEffort, kUsualLevel);
}

}  // namespace varve

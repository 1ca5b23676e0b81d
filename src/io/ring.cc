#include "io/ring.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace varve::io {

namespace {

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

// The best first. TASKRUN_FLAG lets a poll() with nothing to do get by without a system call.
constexpr unsigned kFlagSets[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_R_DISABLED,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_COOP_TASKRUN,
    0,
};

// Waiting with a timeout in one system call, and no lost completions: both since Linux 5.11.
constexpr unsigned kNeededFeatures = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE;

// The memory of one ring may be that of another which has gone. liburing maps it by system calls of its own, which the thread
// sanitizer does not see: it is told that a thread that takes memory comes after all that have returned some.
#ifdef __SANITIZE_THREAD__
char memory_of_rings;
void note_memory_returned() { __tsan_release(&memory_of_rings); }
void note_memory_taken() { __tsan_acquire(&memory_of_rings); }
#else
void note_memory_returned() {}
void note_memory_taken() {}
#endif

}  // namespace

Ring::~Ring() {
  if (!ring_) return;
  note_memory_returned();
  io_uring_queue_exit(ring_.get());
}

int Ring::open(unsigned entries) {
  int result = -EINVAL;
  for (const unsigned flags : kFlagSets) {
    auto ring = std::make_unique<io_uring>();
    io_uring_params parameters{};
    parameters.flags = flags | IORING_SETUP_CLAMP;
    result = io_uring_queue_init_params(entries, ring.get(), &parameters);
    if (result == -EINVAL) continue;
    if (result < 0) return -result;
    note_memory_taken();
    ring_ = std::move(ring);
    return (parameters.features & kNeededFeatures) == kNeededFeatures ? 0 : ENOSYS;
  }
  return -result;
}

int Ring::enable() {
  if (!(ring_->flags & IORING_SETUP_R_DISABLED)) return 0;
  // This is io_uring_enable_rings(), which the shared library of liburing 2.3 declares but does not export.
  const long result = ::syscall(__NR_io_uring_register, ring_->ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  return result < 0 ? errno : 0;
}

}  // namespace varve::io

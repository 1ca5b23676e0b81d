#include "io/ring_reactor.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/invariant.h"
#include "base/logging.h"

namespace varve::io {

namespace {

constexpr std::size_t kBatch = 64;

std::uint64_t tagged(const void* pointer, std::uint64_t tag) { return reinterpret_cast<std::uintptr_t>(pointer) | tag; }

template <class T>
T& untagged(std::uint64_t data, std::uint64_t mask) {
  return *reinterpret_cast<T*>(data & ~mask);
}

// Errors of the ring itself. Those of the moment go away when completions are taken; the others are misuse (a foreign
// thread, a reactor carried over a fork) after which no request would ever complete.
void check_ring(int result, const char* action) {
  if (result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY) return;
  log_critical("io_uring: {} failed: {} (a reactor belongs to one thread of one process)", action,
                   std::strerror(-result));
  std::abort();
}

void pause() {
  const timespec millisecond{0, 1'000'000};
  ::nanosleep(&millisecond, nullptr);
}

void set_tag(io_uring_sqe* entry, std::uint64_t data) { entry->user_data = data; }

}  // namespace

// A reactor thrown away with entries in flight must not leave the kernel with pointers into freed memory.
RingReactor::~RingReactor() {
  while (in_ring_ > 0) {
    io_uring_cqe* entry = nullptr;
    const int result = io_uring_submit_and_wait_timeout(ring_.get(), &entry, 1, nullptr, nullptr);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) break;
    while (io_uring_peek_cqe(ring_.get(), &entry) == 0) {
      if ((entry->user_data & kTagMask) == kEntry) --in_ring_;
      io_uring_cqe_seen(ring_.get(), entry);
    }
  }
  backlog_.clear();
  abandon_all();
}

void RingReactor::kick() {
  enable();
  fill();
  submit_entries();
}

unsigned RingReactor::poll() {
  kick();
  const unsigned ran = run_arrivals();
  return ran + reap();
}

unsigned RingReactor::wait(std::int64_t timeout_ns) {
  enable();
  unsigned ran = run_arrivals();
  fill();
  if (ran > 0 || has_arrivals()) {
    submit_entries();
  } else {
    if (timeout_ns != 0) spin();
    sleep(timeout_ns);
  }
  ran += run_arrivals();
  ran += reap();
  mailbox_.take_wake();
  return ran;
}

// Only now, not in the constructor: the ring belongs to the thread that does this.
void RingReactor::enable() {
  note_owner();
  if (enabled_) return;
  check_ring(-ring_.enable(), "enable");
  enabled_ = true;
}

// An empty entry, or nullptr while the ring is full and the kernel takes nothing.
io_uring_sqe* RingReactor::next_entry() {
  if (io_uring_sqe* entry = io_uring_get_sqe(ring_.get())) return entry;
  submit_entries();
  return io_uring_get_sqe(ring_.get());
}

void RingReactor::submit_entries() {
  if (io_uring_sq_ready(ring_.get()) > 0) check_ring(io_uring_submit(ring_.get()), "submit");
}

// The kernel says in the ring's flags that there is something to reap, so looking costs no system call.
void RingReactor::spin() {
  io_uring* const ring = ring_.get();
  if (!may_spin_ || in_ring_ == 0 || !(ring->flags & IORING_SETUP_TASKRUN_FLAG)) return;
  submit_entries();
  spinner_.spin([ring] {
    return io_uring_cq_ready(ring) > 0 || (__atomic_load_n(ring->sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN);
  });
}

void RingReactor::sleep(std::int64_t timeout_ns) {
  __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  io_uring_cqe* entry = nullptr;
  const int result =
      io_uring_submit_and_wait_timeout(ring_.get(), &entry, 1, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  check_ring(result, "wait");
  // The kernel is out of memory for the moment and there may be nothing to reap: do not turn in circles.
  if ((result == -EAGAIN || result == -EBUSY) && io_uring_cq_ready(ring_.get()) == 0) pause();
}

// Moves into the ring what it has room for.
void RingReactor::fill() {
  if (!mailbox_armed_) {
    if (io_uring_sqe* entry = next_entry()) {
      io_uring_prep_read(entry, mailbox_.fd(), &mailbox_count_, sizeof mailbox_count_, 0);
      set_tag(entry, kMailbox);
      mailbox_armed_ = true;
    }
  }
  arm_watches();
  while (!backlog_.empty() && in_ring_ < ring_.get()->sq.ring_entries) {
    io_uring_sqe* const to = next_entry();
    if (!to) break;
    RingEntry& entry = backlog_.front();
    backlog_.pop_front();
    MEMORY_INVARIANT(entry.calls != nullptr);
    entry.calls->prepare(entry, *to);
    set_tag(to, tagged(&entry, kEntry));
    ++in_ring_;
  }
}

void RingReactor::arm_watches() {
  while (!to_arm_.empty()) {
    io_uring_sqe* entry = next_entry();
    if (!entry) return;
    Watch& watch = *to_arm_.back();
    MEMORY_INVARIANT(!watch.armed && !watch.removed);
    io_uring_prep_poll_add(entry, watch.fd, POLLIN);
    set_tag(entry, tagged(&watch, kWatch));
    watch.armed = true;
    to_arm_.pop_back();
  }
}

// Completions are copied out before any callback runs: a callback may use the queue, and its entries with it.
unsigned RingReactor::reap() {
  unsigned ran = 0;
  std::size_t budget = 2 * std::size_t{ring_.get()->sq.ring_entries};
  for (;;) {
    io_uring_cqe* entries[kBatch];
    Completion completions[kBatch];
    const unsigned count = io_uring_peek_batch_cqe(ring_.get(), entries, kBatch);
    for (unsigned i = 0; i < count; ++i) completions[i] = Completion{entries[i]->user_data, entries[i]->res};
    io_uring_cq_advance(ring_.get(), count);
    for (unsigned i = 0; i < count; ++i) ran += handle(completions[i]);
    if (count < kBatch || budget < kBatch) return ran;
    budget -= kBatch;
  }
}

unsigned RingReactor::handle(const Completion& completion) {
  switch (completion.data & kTagMask) {
    case kEntry:
      return handle_entry(untagged<RingEntry>(completion.data, kTagMask), completion.result);
    case kWatch:
      return handle_watch(untagged<Watch>(completion.data, kTagMask), completion.result);
    case kMailbox:
      mailbox_armed_ = false;
      mailbox_.acknowledge();
      return run_arrivals();
    default:
      return 0;
  }
}

unsigned RingReactor::handle_entry(RingEntry& entry, int result) {
  MEMORY_INVARIANT(in_ring_ > 0);
  --in_ring_;
  const RingEntry::Calls* const calls = entry.calls;
  if (calls->complete(entry, result)) return 1;
  backlog_.push_front(entry);
  return 0;
}

void RingReactor::watch(int fd, std::function<void()> readable) {
  unwatch(fd);
  auto watch = std::make_shared<Watch>();
  watch->fd = fd;
  watch->readable = std::move(readable);
  to_arm_.reserve(watches_.size() + 1);  // arming again needs no memory
  watches_[fd] = watch;
  to_arm_.push_back(std::move(watch));
}

void RingReactor::unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  const std::shared_ptr<Watch> watch = found->second;
  if (watch->armed) leaving_.push_back(watch);
  watches_.erase(found);
  watch->removed = true;
  if (!watch->armed) {
    std::erase(to_arm_, watch);
    return;
  }
  io_uring_sqe* entry = next_entry();
  if (!entry) return;  // it goes when the descriptor becomes readable
  io_uring_prep_poll_remove(entry, tagged(watch.get(), kWatch));
  set_tag(entry, kIgnored);
  submit_entries();  // at once: the caller is about to close the descriptor
}

unsigned RingReactor::handle_watch(Watch& watch, int result) {
  MEMORY_INVARIANT(watch.armed);
  watch.armed = false;
  if (watch.removed) {
    std::erase_if(leaving_, [&watch](const auto& other) { return other.get() == &watch; });
    return 0;
  }
  const std::shared_ptr<Watch> keep = watches_.at(watch.fd);  // the callback may unwatch
  if (result < 0) {
    log_warn("io_uring: descriptor {} cannot be watched: {}", watch.fd, std::strerror(-result));
    watches_.erase(watch.fd);
    return 0;
  }
  watch.readable();
  MEMORY_INVARIANT(to_arm_.size() < to_arm_.capacity() || watch.removed);  // arming again needs no memory
  if (!watch.removed) to_arm_.push_back(keep);
  return 1;
}

}  // namespace varve::io

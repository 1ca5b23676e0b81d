#include "io/uring_queue.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "io/first_exception.h"

namespace varve::io {

namespace {

constexpr std::size_t kMaxSingle = std::size_t{1} << 30;  // bytes of one READ or WRITE; the rest follows
constexpr unsigned kDiscardCommand = 0x1200;              // BLOCK_URING_CMD_DISCARD, Linux 6.12
constexpr std::size_t kBatch = 64;

std::uint64_t tagged(const void* pointer, std::uint64_t tag) { return reinterpret_cast<std::uintptr_t>(pointer) | tag; }

template <class T>
T& untagged(std::uint64_t data, std::uint64_t mask) {
  return *reinterpret_cast<T*>(data & ~mask);
}

// Errors of the ring itself. Those of the moment go away when completions are taken; the others are misuse (a foreign
// thread, a queue carried over a fork) after which no request would ever complete.
void check_ring(int result, const char* action) {
  if (result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN || result == -EBUSY) return;
  spdlog::critical("io_uring: {} failed: {} (a queue belongs to one thread of one process)", action,
                   std::strerror(-result));
  std::abort();
}

void pause() {
  const timespec millisecond{0, 1'000'000};
  ::nanosleep(&millisecond, nullptr);
}

void set_tag(io_uring_sqe* entry, std::uint64_t data) { entry->user_data = data; }

}  // namespace

UringQueue::UringQueue(UringDevice& device, Ring ring) : device_(device), ring_(std::move(ring)) {}

// A queue thrown away with requests in flight must not leave the kernel or the pool with pointers into freed memory.
UringQueue::~UringQueue() {
  while (in_ring_ > 0) {
    io_uring_cqe* entry = nullptr;
    const int result = io_uring_submit_and_wait_timeout(ring_.get(), &entry, 1, nullptr, nullptr);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) break;
    while (io_uring_peek_cqe(ring_.get(), &entry) == 0) {
      if ((entry->user_data & kTagMask) == kOperation) --in_ring_;
      io_uring_cqe_seen(ring_.get(), entry);
    }
  }
  while (in_pool_ > 0) {
    mailbox_.run();
    if (in_pool_ > 0) pause();
  }
}

UringQueue::Operation& UringQueue::make_operation(IoRequest& request) {
  if (unused_.empty()) {
    operations_.emplace_back();
    if (unused_.capacity() < operations_.size()) unused_.reserve(2 * operations_.size());  // giving back needs no memory
    unused_.push_back(&operations_.back());
  }
  Operation& operation = *unused_.back();
  unused_.pop_back();
  operation.transfer.start(request);
  return operation;
}

void UringQueue::submit(IoRequest& request) {
  request.error = check_request(request, device_.geometry(), device_.read_only());
  if (request.error) {
    rejected_.push_back(&request);
  } else {
    backlog_.push_back(&make_operation(request));
  }
  ++in_flight_;
}

void UringQueue::kick() {
  enable();
  fill();
  submit_entries();
}

unsigned UringQueue::poll() {
  kick();
  return run_rejected() + mailbox_.run() + reap();
}

unsigned UringQueue::wait(std::int64_t timeout_ns) {
  enable();
  unsigned ran = run_rejected() + mailbox_.run();
  fill();
  if (ran > 0 || mailbox_.has_wake()) {
    submit_entries();
  } else {
    if (timeout_ns != 0) spin();
    sleep(timeout_ns);
  }
  ran += mailbox_.run() + reap();
  mailbox_.take_wake();
  return ran;
}

// Only now, not in the constructor: the ring belongs to the thread that does this.
void UringQueue::enable() {
  if (enabled_) return;
  check_ring(-ring_.enable(), "enable");
  enabled_ = true;
}

// An empty entry, or nullptr while the ring is full and the kernel takes nothing.
io_uring_sqe* UringQueue::next_entry() {
  if (io_uring_sqe* entry = io_uring_get_sqe(ring_.get())) return entry;
  submit_entries();
  return io_uring_get_sqe(ring_.get());
}

void UringQueue::submit_entries() {
  if (io_uring_sq_ready(ring_.get()) > 0) check_ring(io_uring_submit(ring_.get()), "submit");
}

// The kernel says in the ring's flags that there is something to reap, so looking costs no system call.
void UringQueue::spin() {
  io_uring* const ring = ring_.get();
  if (!may_spin_ || in_ring_ == 0 || !(ring->flags & IORING_SETUP_TASKRUN_FLAG)) return;
  submit_entries();
  spinner_.spin([ring] {
    return io_uring_cq_ready(ring) > 0 || (__atomic_load_n(ring->sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN);
  });
}

void UringQueue::sleep(std::int64_t timeout_ns) {
  __kernel_timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  io_uring_cqe* entry = nullptr;
  const int result =
      io_uring_submit_and_wait_timeout(ring_.get(), &entry, 1, timeout_ns < 0 ? nullptr : &timeout, nullptr);
  check_ring(result, "wait");
  // The kernel is out of memory for the moment and there may be nothing to reap: do not turn in circles.
  if ((result == -EAGAIN || result == -EBUSY) && io_uring_cq_ready(ring_.get()) == 0) pause();
}

// Moves into the ring what it has room for.
void UringQueue::fill() {
  if (!mailbox_armed_) {
    if (io_uring_sqe* entry = next_entry()) {
      io_uring_prep_read(entry, mailbox_.fd(), &mailbox_count_, sizeof mailbox_count_, 0);
      set_tag(entry, kMailbox);
      mailbox_armed_ = true;
    }
  }
  arm_watches();
  while (!backlog_.empty() && in_ring_ < ring_.get()->sq.ring_entries) {
    Operation& operation = *backlog_.front();
    if (!prepare(operation)) break;
    backlog_.pop_front();
  }
}

// Puts an operation into the ring, or gives it to the pool; false when there is no room.
bool UringQueue::prepare(Operation& operation) {
  Transfer& transfer = operation.transfer;
  IoRequest& request = transfer.request();
  const bool block_discard = request.kind == IoKind::discard && device_.geometry().is_block_device;
  if (block_discard && !device_.ring_discards()) {
    hand_to_pool(request);
    unused_.push_back(&operation);
    return true;
  }
  io_uring_sqe* entry = next_entry();
  if (!entry) return false;
  const int fd = device_.fd();
  const iovec* iov = transfer.iov();
  const bool single = transfer.iov_count() == 1;
  const auto bytes = single ? static_cast<unsigned>(std::min(iov->iov_len, kMaxSingle)) : 0U;
  switch (request.kind) {
    case IoKind::read:
      if (single) {
        io_uring_prep_read(entry, fd, iov->iov_base, bytes, transfer.offset());
      } else {
        io_uring_prep_readv(entry, fd, iov, transfer.iov_count(), transfer.offset());
      }
      break;
    case IoKind::write:
      if (single) {
        io_uring_prep_write(entry, fd, iov->iov_base, bytes, transfer.offset());
      } else {
        io_uring_prep_writev(entry, fd, iov, transfer.iov_count(), transfer.offset());
      }
      if (request.durable) entry->rw_flags = RWF_DSYNC;
      break;
    case IoKind::flush:
      io_uring_prep_fsync(entry, fd, IORING_FSYNC_DATASYNC);
      break;
    case IoKind::discard:
      prepare_discard(entry, request);
      break;
  }
  set_tag(entry, tagged(&operation, kOperation));
  ++in_ring_;
  return true;
}

// Without a thread for it, the waiting thread does it.
void UringQueue::hand_to_pool(IoRequest& request) {
  IoRequest* const job = &request;
  if (!device_.pool().add({&job, 1}, *this)) {
    request.error = device_.execute(request);
    finished(request);
  }
  ++in_pool_;
}

void UringQueue::prepare_discard(io_uring_sqe* entry, const IoRequest& request) {
  if (!device_.geometry().is_block_device) {
    io_uring_prep_fallocate(entry, device_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            static_cast<off_t>(request.offset), static_cast<off_t>(request.length));
    return;
  }
  io_uring_prep_rw(IORING_OP_URING_CMD, entry, device_.fd(), nullptr, 0, 0);
  entry->cmd_op = kDiscardCommand;
  entry->addr = request.offset;
  entry->addr3 = request.length;
}

void UringQueue::arm_watches() {
  while (!to_arm_.empty()) {
    io_uring_sqe* entry = next_entry();
    if (!entry) return;
    Watch& watch = *to_arm_.back();
    io_uring_prep_poll_add(entry, watch.fd, POLLIN);
    set_tag(entry, tagged(&watch, kWatch));
    watch.armed = true;
    to_arm_.pop_back();
  }
}

unsigned UringQueue::run_rejected() {
  std::vector<IoRequest*> rejected;
  rejected.swap(rejected_);
  in_flight_ -= rejected.size();
  call_for_all(rejected, [](IoRequest* request) { complete(*request, request->error); });
  return static_cast<unsigned>(rejected.size());
}

// Completions are copied out before any callback runs: a callback may use the queue, and its entries with it.
unsigned UringQueue::reap() {
  unsigned ran = 0;
  FirstException thrown;
  std::size_t budget = 2 * std::size_t{ring_.get()->sq.ring_entries};
  for (;;) {
    io_uring_cqe* entries[kBatch];
    Completion completions[kBatch];
    const unsigned count = io_uring_peek_batch_cqe(ring_.get(), entries, kBatch);
    for (unsigned i = 0; i < count; ++i) completions[i] = Completion{entries[i]->user_data, entries[i]->res};
    io_uring_cq_advance(ring_.get(), count);
    for (unsigned i = 0; i < count; ++i) thrown.run([&] { ran += handle(completions[i]); });
    thrown.rethrow();  // what is left in the ring stays there for the next time
    if (count < kBatch || budget < kBatch) return ran;
    budget -= kBatch;
  }
}

unsigned UringQueue::handle(const Completion& completion) {
  switch (completion.data & kTagMask) {
    case kOperation:
      return handle_operation(untagged<Operation>(completion.data, kTagMask), completion.result);
    case kWatch:
      return handle_watch(untagged<Watch>(completion.data, kTagMask), completion.result);
    case kMailbox:
      mailbox_armed_ = false;
      mailbox_.acknowledge();
      return mailbox_.run();
    default:
      return 0;
  }
}

unsigned UringQueue::handle_operation(Operation& operation, int result) {
  --in_ring_;
  Transfer& transfer = operation.transfer;
  if (falls_back_to_pool(transfer.request(), result)) {
    device_.no_ring_discards();
    backlog_.push_front(&operation);
    return 0;
  }
  if (result == -ECANCELED) {  // nobody has asked for that: the kernel has found no thread for what would have to wait
    finish(operation, device_.execute(transfer.request()));
    return 1;
  }
  switch (transfer.advance(result)) {
    case Transfer::Next::again:
      backlog_.push_front(&operation);
      return 0;
    case Transfer::Next::finished:
      finish(operation, 0);
      return 1;
    case Transfer::Next::failed:
      finish(operation, transfer.error());
      return 1;
  }
  return 0;
}

void UringQueue::finish(Operation& operation, int error) {
  IoRequest& request = operation.transfer.request();
  unused_.push_back(&operation);
  --in_flight_;
  complete(request, error);
}

// Older kernels know no discards through rings.
bool UringQueue::falls_back_to_pool(const IoRequest& request, int result) const {
  return request.kind == IoKind::discard && device_.geometry().is_block_device &&
         (result == -EOPNOTSUPP || result == -EINVAL);
}

void UringQueue::finished(IoRequest& request) {
  mailbox_.post([this, &request] {
    --in_pool_;
    --in_flight_;
    complete(request, request.error);
  });
}

void UringQueue::watch(int fd, std::function<void()> readable) {
  unwatch(fd);
  auto watch = std::make_shared<Watch>();
  watch->fd = fd;
  watch->readable = std::move(readable);
  to_arm_.reserve(watches_.size() + 1);  // arming again needs no memory
  watches_[fd] = watch;
  to_arm_.push_back(std::move(watch));
}

void UringQueue::unwatch(int fd) {
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

unsigned UringQueue::handle_watch(Watch& watch, int result) {
  watch.armed = false;
  if (watch.removed) {
    std::erase_if(leaving_, [&watch](const auto& other) { return other.get() == &watch; });
    return 0;
  }
  const std::shared_ptr<Watch> keep = watches_.at(watch.fd);  // the callback may unwatch
  if (result < 0) {
    spdlog::warn("io_uring: descriptor {} cannot be watched: {}", watch.fd, std::strerror(-result));
    watches_.erase(watch.fd);
    return 0;
  }
  FirstException thrown;
  thrown.run(watch.readable);
  if (!watch.removed) to_arm_.push_back(keep);
  thrown.rethrow();
  return 1;
}

}  // namespace varve::io

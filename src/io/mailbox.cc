#include "io/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace varve::io {

// Blocking on purpose: a ring's read of a non-blocking descriptor would fail with EAGAIN instead of waiting.
Mailbox::Mailbox() : fd_(::eventfd(0, EFD_CLOEXEC)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Mailbox::~Mailbox() { ::close(fd_); }

// Signals under the lock: once the owner has seen the task, this thread no longer touches the mailbox, so the task
// itself may be the reason to destroy it.
void Mailbox::post(std::function<void()> task) {
  const Lock lock(mutex_);
  tasks_.push_back(std::move(task));
  has_tasks_.store(true);
  signal();
}

void Mailbox::wake() {
  woken_.store(true);
  signal();
}

void Mailbox::signal() {
  if (signalled_.exchange(true)) return;
  const std::uint64_t one = 1;
  while (::write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Mailbox::drain() {
  std::uint64_t count = 0;
  while (::read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
  }
  acknowledge();
}

void Mailbox::acknowledge() { signalled_.store(false); }

unsigned Mailbox::run() {
  if (!has_tasks()) return 0;
  std::vector<std::function<void()>> tasks;
  {
    const Lock lock(mutex_);
    tasks.swap(tasks_);
    has_tasks_.store(false);
  }
  for (auto& task : tasks) task();
  return static_cast<unsigned>(tasks.size());
}

}  // namespace varve::io

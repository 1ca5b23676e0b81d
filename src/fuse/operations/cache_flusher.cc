#include "fuse/operations/cache_flusher.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/errc.h"

namespace varve::fuse {

namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::uint64_t kManyRounds = 3'000'000'000;  // ns

// Of a directory of a FUSE filesystem: below a mount that has been detached there is another one.
Descriptor open_mount(const std::string& directory) {
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs about {};
  if (opened && ::fstatfs(opened.get(), &about) == 0 && about.f_type == FUSE_SUPER_MAGIC) return opened;
  return Descriptor();
}

}  // namespace

void CacheFlusher::flush(Ino ino, std::uint64_t offset, std::function<void()> done) {
  add({[this, ino, offset] { drop_cache(ino, offset); }, std::move(done)});
}

void CacheFlusher::flush_all(const std::string& directory, std::size_t most, std::function<void()> done) {
  add({[this, directory, most] { write_back(directory, most); }, std::move(done)});
}

void CacheFlusher::add(Job job) {
  {
    const Lock lock(mutex_);
    if (!stopping_) {
      jobs_.push_back(std::move(job));
      changed_.notify_one();
      return;
    }
  }
  job.done();  // the mount is ending: its callers get an answer, whichever
}

void CacheFlusher::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void CacheFlusher::run() {
  ::pthread_setname_np(::pthread_self(), "varve-flush");
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.work();
    job.done();
    lock.lock();
  }
}

// syncfs() makes WRITEs and waits for none. It passes over a file while more than a few are on their way, so once is not enough: with the
// last one there were few.
void CacheFlusher::write_back(const std::string& directory, std::size_t most) {
  const Descriptor mount = open_mount(directory);
  const std::uint64_t end = Clock::system().monotonic_ns() + kManyRounds;
  bool settled = transport_.settle(most, kPatience);
  for (std::uint64_t before = transport_.data_messages(); settled && mount; before = transport_.data_messages()) {
    if (::syncfs(mount.get()) != 0) spdlog::debug("{}: {}", directory, errno_text());  // those hear of it that sync the file
    settled = transport_.settle(most, kPatience);
    if (transport_.data_messages() - before < most / 8) return;
    if (Clock::system().monotonic_ns() > end) settled = false;
  }
  if (!settled) spdlog::info("{}: writes go on and on: some that the kernel still holds back are not waited for", directory);
}

void CacheFlusher::drop_cache(Ino ino, std::uint64_t offset) {
  if (const int error = notify_inval_inode(transport_, ino, static_cast<std::int64_t>(offset)))
    spdlog::debug("inode {}: cache not dropped: {}", ino, std::strerror(error));
}

}  // namespace varve::fuse

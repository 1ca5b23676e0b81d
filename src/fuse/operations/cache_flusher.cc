#include "fuse/operations/cache_flusher.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/logging.h"

namespace varve::fuse {

namespace {

constexpr Arrivals::Limits kLimits{std::chrono::seconds(2), std::chrono::seconds(10)};
constexpr std::chrono::seconds kUsualTime{3}, kMostTime{120};

// What all filesystems have not written yet: as much of this one, at most.
std::uint64_t unwritten_bytes() {
  std::ifstream memory("/proc/meminfo");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(memory, line);) {
    std::uint64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "Dirty: %" SCNu64, &kilobytes) == 1 || std::sscanf(line.c_str(), "Writeback: %" SCNu64, &kilobytes) == 1)
      sum += kilobytes << 10;
  }
  return sum;
}

// Of a directory of a FUSE filesystem: below a mount that has been detached there is another one.
Descriptor open_mount(const std::string& directory) {
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs about {};
  if (opened && ::fstatfs(opened.get(), &about) == 0 && about.f_type == FUSE_SUPER_MAGIC) return opened;
  return Descriptor();
}

// syncfs() of the only file that a process of its own has. Returns an errno. The kernel waits in there for answers of ours, and no signal
// ends that. Were it a thread of this process, it would keep /dev/fuse open when the others are killed, and the mount would hang.
int sync_apart(int mount) {
  const pid_t child = ::vfork();  // this thread sleeps until the child ends; it has our memory, but its own table of files
  if (child == 0) {
    close_others(0, static_cast<unsigned>(mount));
    ::_exit(::syncfs(mount) == 0 ? 0 : errno);
  }
  if (child < 0) return errno;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

}  // namespace

void CacheFlusher::flush(Ino ino, std::uint64_t offset, std::function<void()> done) {
  of_files_.add({[this, ino, offset] { drop_cache(ino, offset); }, std::move(done)});
}

void CacheFlusher::flush_all(const std::string& directory, std::size_t most, std::function<void()> done) {
  const auto work = [this, directory, most] {
    if (!write_back(directory, most))
      log_warn("{}: reads and writes go on and on: not all is waited for that the kernel holds back", directory);
  };
  of_all_.add({work, std::move(done)});
}

void CacheFlusher::Worker::add(Job job) {
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
  of_all_.stop();
  of_files_.stop();
}

void CacheFlusher::Worker::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

bool CacheFlusher::Worker::is_stopping() {
  const Lock lock(mutex_);
  return stopping_;
}

void CacheFlusher::Worker::run() {
  ::pthread_setname_np(::pthread_self(), "varve-flush");
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::vector<Job> jobs;
    do {
      jobs.push_back(std::move(jobs_.front()));
      jobs_.pop_front();
    } while (behind_ && !jobs_.empty());
    lock.unlock();
    for (const Job& job : jobs) job.work();
    if (behind_) behind_();
    for (const Job& job : jobs) job.done();
    lock.lock();
  }
}

// syncfs() makes WRITEs and waits for none. It passes over a file while more than a few are on their way, so once is not enough: with the
// last one there were few. False: that did not come to pass, though as much was written as can have waited, and more.
bool CacheFlusher::write_back(const std::string& directory, std::size_t most) {
  const Descriptor mount = open_mount(directory);
  const std::uint64_t few = std::max<std::uint64_t>(most / 8, 1), unwritten = 2 * unwritten_bytes();
  bool settled = settle(most);
  if (!mount) return settled;
  const auto began = std::chrono::steady_clock::now();
  const std::uint64_t bytes = transport_.writes().bytes;
  for (;;) {
    const std::uint64_t before = transport_.writes().count;
    // Those hear of it that sync the file.
    if (const int error = sync_apart(mount.get())) log_debug("{}: {}", directory, std::strerror(error));
    settled = settle(most);
    const Arrivals::Writes now = transport_.writes();
    if (settled && now.count - before < few) return true;
    const auto taken = std::chrono::steady_clock::now() - began;
    const bool goes_on = now.count != before && now.bytes - bytes <= unwritten;  // a slow device takes its time
    if (of_all_.is_stopping() || taken > kMostTime || (taken > kUsualTime && !goes_on)) return false;
  }
}

void CacheFlusher::drop_cache(Ino ino, std::uint64_t offset) {
  if (const int error = notify_inval_inode(transport_, ino, static_cast<std::int64_t>(offset)))
    log_debug("inode {}: cache not dropped: {}", ino, std::strerror(error));
}

void CacheFlusher::wait_for_writes() {
  if (const std::size_t most = most_) (void)settle(most);
}

bool CacheFlusher::settle(std::size_t most) {
  const Lock one(settling_);
  return transport_.settle(most, kLimits);
}

}  // namespace varve::fuse

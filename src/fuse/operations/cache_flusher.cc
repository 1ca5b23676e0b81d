#include "fuse/operations/cache_flusher.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <cstring>

namespace varve::fuse {

void CacheFlusher::flush(Ino ino, std::uint64_t offset, std::function<void()> done) {
  {
    const Lock lock(mutex_);
    if (!stopping_) {
      jobs_.push_back({ino, offset, std::move(done)});
      changed_.notify_one();
      return;
    }
  }
  done();  // the mount is ending: its callers get an answer, whichever
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
    drop_cache(job);
    job.done();
    lock.lock();
  }
}

void CacheFlusher::drop_cache(const Job& job) {
  if (const int error = notify_inval_inode(transport_, job.ino, static_cast<std::int64_t>(job.offset)))
    spdlog::debug("inode {}: cache not dropped: {}", job.ino, std::strerror(error));
}

}  // namespace varve::fuse

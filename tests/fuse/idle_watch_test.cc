#include "daemon/idle_watch.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace varve::fuse {
namespace {

void pin_to_first_cpu() {
  cpu_set_t cpus;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cpus, &cpus), 0);
  int first = 0;
  while (!CPU_ISSET(first, &cpus)) ++first;
  CPU_ZERO(&cpus);
  CPU_SET(first, &cpus);
  ASSERT_EQ(::sched_setaffinity(0, sizeof cpus, &cpus), 0);
}

// A thread that runs until it is told to stop, in place of one that serves.
class Runner {
 public:
  Runner() : thread_([this] { run(); }) { placed = made_.get_future().get(); }
  ~Runner() {
    stopping_ = true;
    thread_.join();
  }
  void make_idle() {
    wanted_ = true;
    while (wanted_) std::this_thread::yield();
  }
  std::shared_ptr<daemon::PlacedThread> placed;

 private:
  void run() {
    placed_ = std::make_shared<daemon::PlacedThread>(0);
    made_.set_value(placed_);
    while (!stopping_)
      if (wanted_) placed_->become_idle([this] { wanted_ = false; });
  }
  std::shared_ptr<daemon::PlacedThread> placed_;  // of the thread
  std::atomic<bool> wanted_{false};
  std::promise<std::shared_ptr<daemon::PlacedThread>> made_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

TEST(IdleWatch, FreesAThreadThatStarves) {
  Runner serving;
  serving.make_idle();
  if (!serving.placed->is_idle()) GTEST_SKIP() << "no thread may become an idle one here";
  std::atomic<bool> done{false};
  std::thread hog([&done] {
    pin_to_first_cpu();  // as the other one is
    while (!done) {
    }
  });
  {
    daemon::IdleWatch watch;
    watch.add(serving.placed);
    watch.look_after_idle();
    while (serving.placed->is_idle()) std::this_thread::yield();  // for ever, if nobody frees it
    watch.remove(serving.placed.get());
  }
  done = true;
  hog.join();
}

}  // namespace
}  // namespace varve::fuse

// A device on which some blocking requests take as long as one likes.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "io/block_device.h"

namespace varve::test {

inline bool is_flush(const io::IoRequest& request) { return request.kind == io::IoKind::flush; }

class StallingDevice : public io::BlockDevice {
 public:
  // While it is held, no request that `which` names ends; then they do with `error`, if that is not 0, and write nothing.
  explicit StallingDevice(io::BlockDevice& below, std::function<bool(const io::IoRequest&)> which = is_flush, int error = 0)
      : below_(below), which_(std::move(which)), error_(error) {}

  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  Status look_again() override { return below_.look_again(); }
  Status set_length(std::uint64_t bytes) override { return below_.set_length(bytes); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override { below_.submit(reactor, request); }
  int execute(io::IoRequest& request) override {
    if (which_(request)) {
      std::unique_lock lock(mutex_);
      caught_ = caught_ || held_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_; });
      if (error_) return error_;
    }
    return below_.execute(request);
  }

  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    caught_ = caught_ && held;
    changed_.notify_all();
  }
  // Until a request is being held.
  void wait_until_caught() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return caught_; });
  }

 private:
  io::BlockDevice& below_;
  const std::function<bool(const io::IoRequest&)> which_;
  const int error_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false, caught_ = false;
};

}  // namespace varve::test

// Lets requests wait for a modelled device as they would for a real one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "models/model.h"

namespace varve::bench {

class Host {
 public:
  // `speed`: seconds of the device for each second of the machine; 0: requests do not wait, and the device is never idle.
  Host(std::unique_ptr<DeviceModel> model, double speed);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const Facts& facts() const { return model_->facts(); }
  // Any thread. `done` is called on a thread of the host's when the device has carried it out; requests reach the device in the order
  // of these calls.
  void submit(const Request& request, std::function<void()> done);
  // What the device has done since the last reset(), as JSON.
  std::string counters();
  void reset();

 private:
  using Time = std::chrono::steady_clock;
  struct Waiting {
    Request request;
    std::function<void()> done;
  };

  void run();
  std::uint64_t now_ns() const;
  void take_one();
  bool wait_for_first(std::unique_lock<std::mutex>& lock);

  const std::unique_ptr<DeviceModel> model_;
  const double speed_;
  const Time::time_point begin_ = Time::now();
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Waiting> waiting_;
  std::multimap<std::uint64_t, std::function<void()>> served_;  // by when they are done
  std::uint64_t now_ns_ = 0, since_ns_ = 0;  // device time
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace varve::bench

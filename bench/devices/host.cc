#include "host.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace varve::bench {

Host::Host(std::unique_ptr<DeviceModel> model, double speed) : model_(std::move(model)), speed_(speed) {
  model_->power() = {};  // its clock is not the machine's: it would fall asleep between any two requests
  thread_ = std::thread([this] { run(); });
}

Host::~Host() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  arrived_.notify_all();
  thread_.join();
}

void Host::submit(const Request& request, std::function<void()> done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({request, std::move(done)});
  arrived_.notify_one();
}

std::uint64_t Host::now_ns() const {
  if (speed_ == 0) return now_ns_;
  const double elapsed = std::chrono::duration<double, std::nano>(Time::now() - begin_).count();
  return std::max(now_ns_, static_cast<std::uint64_t>(elapsed * speed_));
}

void Host::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (served_.empty()) arrived_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (served_.empty() && waiting_.empty()) return;
    if (!waiting_.empty() && served_.size() < model_->at_once()) {
      take_one();
    } else if (wait_for_first(lock)) {
      const std::function<void()> done = std::move(served_.begin()->second);
      served_.erase(served_.begin());
      lock.unlock();
      done();
      lock.lock();
    }
  }
}

void Host::take_one() {
  std::vector<Request> requests;
  for (const Waiting& one : waiting_) requests.push_back(one.request);
  const auto chosen = waiting_.begin() + static_cast<std::ptrdiff_t>(model_->choose(requests));
  now_ns_ = now_ns();
  model_->serve(chosen->request, now_ns_);
  served_.emplace(model_->done_at_ns(), std::move(chosen->done));
  waiting_.erase(chosen);
}

// Until the machine's clock has come to where the first request that is served is done. False: another one has come, and can be served
// as well.
bool Host::wait_for_first(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t done_at = served_.begin()->first;
  if (speed_ > 0) {
    const auto until = begin_ + std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(done_at) / speed_));
    const auto can_take = [this] { return !waiting_.empty() && served_.size() < model_->at_once(); };
    if (arrived_.wait_until(lock, until, can_take)) return false;
  }
  now_ns_ = std::max(now_ns_, done_at);
  return true;
}

std::string Host::counters() {
  const std::lock_guard lock(mutex_);
  const Work& work = model_->work();
  static constexpr const char* kNames[] = {"read", "write", "flush", "discard"};
  const double passed = static_cast<double>(std::max(now_ns(), model_->free_at_ns()) - since_ns_) * 1e-9;
  const double at_work = static_cast<double>(work.busy_ns() + work.background_ns) * 1e-9;
  nlohmann::ordered_json out{{"model", facts().name},
                             {"rotational", facts().rotational},
                             {"device_seconds", static_cast<double>(work.busy_ns()) * 1e-9},
                             {"background_seconds", static_cast<double>(work.background_ns) * 1e-9},
                             {"passed_seconds", passed},
                             {"bytes_programmed", work.programmed},
                             {"bytes_copied", work.copied},
                             {"erases", work.erases},
                             {"seeks", work.seeks},
                             {"modelled_joules", work.joules() + at_work * facts().idle_watts}};
  for (std::size_t op = 0; op < kOps; ++op) {
    const Work::Kind& kind = work.kinds[op];
    out[kNames[op]] = {{"requests", kind.requests},
                       {"bytes", kind.bytes},
                       {"seconds", static_cast<double>(kind.ns) * 1e-9},
                       {"longest_ms", static_cast<double>(kind.longest_ns) * 1e-6}};
  }
  return out.dump(1) + "\n";
}

void Host::reset() {
  const std::lock_guard lock(mutex_);
  model_->forget_work();
  since_ns_ = std::max(now_ns(), model_->free_at_ns());
}

}  // namespace varve::bench

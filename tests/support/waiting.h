// How tests wait: for what can be seen, not for a time that is long enough on somebody's machine. The test's limit of time ends it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

namespace varve::test {

inline void pause_between_looks() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

template <class Condition>
void wait_until(Condition&& holds) {
  while (!holds()) pause_between_looks();
}

// Does this thread of the process sleep, as the kernel says: for a lock, or for another thread?
inline bool is_asleep(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
  std::string text;
  std::getline(file, text);
  return text.find(") S ") != std::string::npos;
}

// A thread that does nothing but sleep for so many looks on end: what it waits for does not come by itself.
class SleepWatch {
 public:
  bool is_asleep_for_good(pid_t thread) {
    constexpr int kLooks = 20;
    looks_ = is_asleep(thread) ? looks_ + 1 : 0;
    return looks_ >= kLooks;
  }

 private:
  int looks_ = 0;
};

}  // namespace varve::test

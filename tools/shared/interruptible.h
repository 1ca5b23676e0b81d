// Ctrl-C, or SIGTERM, ends something long at a point where nothing is lost; a second one ends the tool.
#pragma once

#include <signal.h>

#include <atomic>

namespace varve {

// One at a time: for as long as it lives. Calls that wait in the kernel come back with EINTR.
class Interruptible {
 public:
  Interruptible() {
    signal_() = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { signal_() = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, &before_[signal == SIGTERM]);
  }
  ~Interruptible() {
    for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &before_[signal == SIGTERM], nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  static bool asked() { return signal_() != 0; }

  // For a tool that failed: 130 after SIGINT, 143 after SIGTERM, as a shell reports a program that the signal has ended. Else `other`.
  static int exit_status(int other) {
    const int signal = signal_();
    return signal == 0 ? other : 128 + signal;
  }

 private:
  static std::atomic<int>& signal_() {
    static std::atomic<int> signal{0};
    return signal;
  }
  struct sigaction before_[2] {};
};

}  // namespace varve

// Ctrl-C, SIGTERM, or a terminal that goes (SIGHUP) ends something long at a point where nothing is lost; a second one ends the tool.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace varve {

inline constexpr std::array kInterruptions = {SIGINT, SIGTERM, SIGHUP};

// nohup(1) has it ignored, and a shell does so for what runs in the background: this stays so.
inline bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

// One at a time: for as long as it lives. Calls that wait in the kernel come back with EINTR.
class Interruptible {
 public:
  Interruptible() {
    signal_() = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { signal_() = signal; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (std::size_t i = 0; i < kInterruptions.size(); ++i)
      ::sigaction(kInterruptions[i], is_ignored(kInterruptions[i]) ? nullptr : &action, &before_[i]);
  }
  ~Interruptible() {
    for (std::size_t i = 0; i < kInterruptions.size(); ++i) ::sigaction(kInterruptions[i], &before_[i], nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  static bool asked() { return signal_() != 0; }

  // For a tool that failed: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP, as a shell reports a program that the signal has
  // ended. Else `other`.
  static int exit_status(int other) {
    const int signal = signal_();
    return signal == 0 ? other : 128 + signal;
  }

 private:
  static std::atomic<int>& signal_() {
    static std::atomic<int> signal{0};
    return signal;
  }
  std::array<struct sigaction, kInterruptions.size()> before_{};
};

}  // namespace varve

// Ctrl-C, or SIGTERM, ends something long at a point where nothing is lost; a second one ends the tool.
#pragma once

#include <signal.h>

#include <atomic>

namespace varve::tool {

// One at a time: for as long as it lives.
class Interruptible {
 public:
  Interruptible() {
    asked() = false;
    struct sigaction action {};
    action.sa_handler = [](int) { asked() = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, &before_[signal == SIGTERM]);
  }
  ~Interruptible() {
    for (int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &before_[signal == SIGTERM], nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  static std::atomic<bool>& asked() {
    static std::atomic<bool> interrupted{false};
    return interrupted;
  }

 private:
  struct sigaction before_[2] {};
};

}  // namespace varve::tool

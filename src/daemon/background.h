// Going into the background, with the exit status of the first process told by what becomes of the second.
#pragma once

#include <string>

#include "base/result.h"

namespace varve::daemon {

// What another process says through a pipe: waits, and appends what has come. False: that process has ended, or the pipe cannot be read.
bool read_some(int fd, std::string& text);

// Used before any thread is there. In the parent, the constructor's caller finds is_parent() and returns wait();
// the child does its work and calls ready() or failed().
class Background {
 public:
  // Forks. Errc::no_memory when the system cannot.
  static Result<Background> start();
  Background(Background&& other) noexcept;
  Background& operator=(Background&&) = delete;
  ~Background();  // of a child that said nothing: the parent sees the pipe end and reports a crash

  bool is_parent() const { return is_parent_; }
  // Parent: blocks until the child has said how it went. The error is the child's message.
  Status wait();
  // Child: the parent may exit. Cuts the ties to the terminal.
  void ready();
  void failed(const Error& error);

 private:
  Background(bool is_parent, int pipe, int child) : is_parent_(is_parent), pipe_(pipe), child_(child) {}

  bool is_parent_;
  int pipe_;
  int child_;
};

}  // namespace varve::daemon

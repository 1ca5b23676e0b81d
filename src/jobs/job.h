// Background work of one kind. One thread does all of it, a step at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "jobs/precedence.h"

namespace varve::jobs {

class Job {
 public:
  // Asked during a step: something has come that it gives way to. It ends soon then, and goes on at its next turn.
  using Interrupt = std::function<bool()>;
  enum class Next : std::uint8_t {
    later,    // when its turn comes again
    at_once,  // there is more to do
    waits     // for something that nobody tells of
  };

  explicit Job(Kind kind) : kind_(kind) {}
  virtual ~Job() = default;
  Kind kind() const { return kind_; }

  virtual bool is_due(std::uint64_t now_ns) = 0;
  // May it become due without a word to the thread? Then that looks now and then.
  virtual bool is_pending() = 0;
  // Does a bounded part of it.
  virtual Next step(const Interrupt& interrupt) = 0;

 private:
  const Kind kind_;
};

}  // namespace varve::jobs

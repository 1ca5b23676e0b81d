// A setting that one thread changes while others read it: a number that is copied like any other.
#pragma once

#include <atomic>

namespace varve {

template <class T>
class Tunable {
 public:
  Tunable(T value) : value_(value) {}  // implicit, as it stands for the number
  Tunable(const Tunable& other) : value_(other) {}
  Tunable& operator=(const Tunable& other) {
    value_.store(other, std::memory_order_relaxed);
    return *this;
  }
  operator T() const { return value_.load(std::memory_order_relaxed); }

  // Says what it is now, whenever it is asked. The number must outlive it.
  class View {
   public:
    View(const Tunable& of) : of_(&of) {}
    View(const Tunable&&) = delete;
    operator T() const { return *of_; }

   private:
    const Tunable* of_;
  };

 private:
  std::atomic<T> value_;
};

}  // namespace varve

// What must always hold, checked in every build.
//
// INVARIANT(condition): when it does not hold, everything that watches (a mounted filesystem does) is told what and where, and goes
// read-only. What is on the device stays as it is, and what was read so far can still be read. The program goes on behind it, so
// the code must do nothing worse with the wrong value than what a read-only filesystem may do. If nothing watches, the program
// aborts.
// MEMORY_INVARIANT(condition): the same for what shows that memory cannot be believed any more (a list that is broken, an index
// beyond its table). The program aborts: to go on would be worse.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace varve {

// While one of these exists, broken invariants are told to it. `broken` may be called by any thread under any lock: it notes what it
// is told, and does nothing that waits.
class InvariantWatch {
 public:
  explicit InvariantWatch(std::function<void(const std::string& what)> broken);
  ~InvariantWatch();
  InvariantWatch(const InvariantWatch&) = delete;
  InvariantWatch& operator=(const InvariantWatch&) = delete;

 private:
  const std::function<void(const std::string&)> broken_;
};

[[gnu::cold]] void report_broken(const char* condition, const char* file, int line) noexcept;
[[noreturn, gnu::cold]] void abort_broken(const char* condition, const char* file, int line) noexcept;

inline bool invariant(bool holds, const char* condition, const char* file, int line) {
  if (holds) [[likely]] return true;
  report_broken(condition, file, line);
  return false;
}

}  // namespace varve

// Its value is whether it holds.
#define INVARIANT(...) ::varve::invariant(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define MEMORY_INVARIANT(...) ((__VA_ARGS__) ? void() : ::varve::abort_broken(#__VA_ARGS__, __FILE__, __LINE__))

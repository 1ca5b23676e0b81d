// For several callbacks of which none may be left out because one before it has thrown.
#pragma once

#include <exception>
#include <utility>

namespace varve::io {

class FirstException {
 public:
  template <class Call>
  void run(Call&& call) noexcept {
    try {
      call();
    } catch (...) {
      if (!first_) first_ = std::current_exception();
    }
  }
  // Throws the first of what the calls have thrown, if any did.
  void rethrow() {
    if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  std::exception_ptr first_;
};

// call(element) for each of them, whatever those before have thrown; then throws the first of that.
template <class Range, class Call>
void call_for_all(Range&& range, Call&& call) {
  FirstException thrown;
  for (auto&& element : range) thrown.run([&] { call(element); });
  thrown.rethrow();
}

}  // namespace varve::io

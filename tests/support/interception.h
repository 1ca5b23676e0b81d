// For decorators of tests: what a device does when the one below has completed a request, with all that it must remember.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "io/request.h"

namespace varve::test {

inline void after(io::IoRequest& request, std::function<void(io::IoRequest&)> call) {
  using Call = std::function<void(io::IoRequest&)>;
  const auto run = [](void* context, io::IoRequest& completed, std::uint64_t) {
    const std::unique_ptr<const Call> owned(static_cast<Call*>(context));
    (*owned)(completed);
  };
  request.intercept(run, new Call(std::move(call)));
}

}  // namespace varve::test

// In a bench an error of the filesystem ends the run: it becomes an exception.
#pragma once

#include <stdexcept>

#include "base/result.h"

namespace varve::bench {

inline void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message());
}
inline void checked(const Status& status) { check(status); }

template <class T>
T checked(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

}  // namespace varve::bench

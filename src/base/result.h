// Result<T>: a value or an Error. Errors that are part of normal work (not_found, would_block) cost no allocation.
#pragma once

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/errc.h"

namespace varve {

class [[nodiscard]] Error {
 public:
  Error(Errc code) : code_(code) {}  // NOLINT(google-explicit-constructor): `return Errc::not_found;` is the idiom
  Error(Errc code, std::string context)
      : code_(code), context_(std::make_shared<const std::string>(std::move(context))) {}

  Errc code() const { return code_; }
  bool is(Errc code) const { return code_ == code; }
  int to_errno() const { return errno_of(code_); }
  // "what, where, what to do": the context if there is one, else the sentence of the code.
  std::string message() const;

 private:
  Errc code_;
  std::shared_ptr<const std::string> context_;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}       // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}   // NOLINT(google-explicit-constructor)
  Result(Errc code) : state_(std::in_place_index<1>, Error(code)) {}          // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  bool fails_with(Errc code) const { return !ok() && error().is(code); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  Result(Errc code) : error_(Error(code)) {}         // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  bool fails_with(Errc code) const { return error_ && error_->is(code); }
  void value() const {}
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// TRY(expression): its value, or its error from the enclosing function. What stands before it in one expression is not destroyed then.
#define VARVE_TRY_NAMED(expression, name)            \
  ({                                                 \
    auto&& name = (expression);                      \
    if (!name.ok()) return name.error();             \
    std::forward<decltype(name)>(name).value();      \
  })
#define VARVE_TRY_COUNTED(expression, counter) VARVE_TRY_NAMED(expression, varve_try_##counter)
#define VARVE_TRY_EXPANDED(expression, counter) VARVE_TRY_COUNTED(expression, counter)
#define TRY(expression) VARVE_TRY_EXPANDED(expression, __COUNTER__)

}  // namespace varve

// Functions of the test support answer with a text: empty, or what is wrong. This shows it as it is.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace varve::test {

inline ::testing::AssertionResult good(const std::string& failure) {
  if (failure.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\n" << failure;
}

}  // namespace varve::test

// Tests of every strategy there is, by name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "cleaner/registry.h"

namespace varve::test {

inline std::vector<std::string> every_strategy() {
  std::vector<std::string> names;
  for (const auto& [name, help] : cleaner::registry().strategies.names()) names.push_back(name);
  return names;
}

inline std::string name_of_strategy(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

}  // namespace varve::test

// One damaged image for every kind of damage that the checker can tell.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/problem.h"
#include "io/mem_device.h"

namespace varve::repair::test {

struct DamageCase {
  std::string name;  // of the folder in tests/images
  check::Code code;  // what the checker must find, perhaps among others
  std::function<std::unique_ptr<io::MemDevice>()> make;
  bool repairable = true;
};

const std::vector<DamageCase>& damage_cases();

}  // namespace varve::repair::test

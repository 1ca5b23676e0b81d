#include <iostream>

#include "base/standard_descriptors.h"
#include "mkfs/command.h"
#include "shared/guarded.h"

int main(int argc, char** argv) {
  if (!varve::open_standard_descriptors()) return 1;
  return varve::guarded("mkfs.varve", 1, [&] {
    return varve::mkfs::run(argc, argv, {std::cout, std::cerr, varve::Clock::system(), varve::Random::system()});
  });
}

#include <iostream>

#include "mkfs/command.h"
#include "shared/guarded.h"
#include "shared/start.h"

int main(int argc, char** argv) {
  if (!varve::start_tool("mkfs.varve")) return 1;
  return varve::guarded("mkfs.varve", 1, [&] {
    return varve::mkfs::run(argc, argv, {std::cout, std::cerr, varve::Clock::system(), varve::Random::system()});
  });
}

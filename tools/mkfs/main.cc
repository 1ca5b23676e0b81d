#include <iostream>

#include "mkfs/command.h"

int main(int argc, char** argv) {
  return varve::mkfs::run(argc, argv,
                          {std::cout, std::cerr, varve::Clock::system(), varve::Random::system()});
}

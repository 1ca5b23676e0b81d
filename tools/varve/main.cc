#include <iostream>

#include "shared/guarded.h"
#include "varve/command.h"

int main(int argc, char** argv) {
  return varve::guarded("varve", 1, [&] { return varve::tool::run(argc, argv, {std::cin, std::cout, std::cerr}); });
}

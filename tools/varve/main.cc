#include <iostream>

#include "varve/command.h"

int main(int argc, char** argv) { return varve::tool::run(argc, argv, {std::cin, std::cout, std::cerr}); }

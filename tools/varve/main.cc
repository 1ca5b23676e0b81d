#include <cstdlib>
#include <iostream>

#include "shared/guarded.h"
#include "shared/start.h"
#include "varve/command.h"
#include "varve/observe/status_asker.h"

int main(int argc, char** argv) {
  if (!varve::start_tool("varve")) return 1;
  const int status = varve::guarded("varve", 1, [&] { return varve::tool::run(argc, argv, {std::cin, std::cout, std::cerr}); });
  if (!varve::tool::StatusAsker::waits()) return status;
  std::cout.flush();
  std::_Exit(status);
}

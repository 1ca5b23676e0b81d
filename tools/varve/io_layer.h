// What a command reads and prints through, so that tests can run whole commands in-process.
#pragma once

#include <iosfwd>

namespace varve::tool {

struct IoLayer {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool answered = false;  // with --json: what was asked is told, also where the command ends with an error
};

}  // namespace varve::tool

// mkfs.varve as a function, so that tests run the whole command in-process.
#pragma once

#include <iosfwd>

#include "base/clock.h"

namespace varve::mkfs {

struct World {
  std::ostream& out;
  std::ostream& err;
  Clock& clock;
  Random& random;
};

// Returns the exit code: 0 when the filesystem was made (or could be, with -n), 1 otherwise.
int run(int argc, const char* const* argv, World world);

}  // namespace varve::mkfs

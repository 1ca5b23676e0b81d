// The same runs on the filesystem itself: engine, log, checkpoints and cleaner as in a mount, on a device in memory.
#pragma once

#include "simulator.h"

namespace varve::bench {

// Throws std::runtime_error with what the filesystem said.
RunResult run_on_engine(const RunSetup& setup);

}  // namespace varve::bench

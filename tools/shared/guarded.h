// What the main() of a tool is wrapped in.
#pragma once

#include <exception>
#include <iostream>
#include <new>

namespace varve {

// The exit code of `run`. What no Status tells (no memory, no thread) becomes a message and `failure` instead of an abort.
template <class Run>
int guarded(const char* tool, int failure, Run&& run, std::ostream& err = std::cerr) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    err << tool << ": out of memory" << std::endl;
  } catch (const std::exception& error) {
    err << tool << ": failed unexpectedly: " << error.what() << std::endl;
  }
  return failure;
}

}  // namespace varve

#include "fs/wait_times.h"

namespace varve::fs {

const char* name_of(WaitCause cause) {
  switch (cause) {
    case WaitCause::node: return "node";
    case WaitCause::data: return "data";
    case WaitCause::durable: return "durable";
    case WaitCause::memory: return "memory";
    case WaitCause::space: return "space";
    case WaitCause::in_flight: return "in_flight";
  }
  return "?";
}

}  // namespace varve::fs

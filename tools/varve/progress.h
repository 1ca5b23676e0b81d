// Waiting for something that a mount or an image does, with its progress on a terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/json_text.h"
#include "base/result.h"
#include "varve/io_layer.h"

namespace varve::tool {

struct Progress {
  std::function<Result<Json>()> state;  // its "state" is "running" until the end
  std::function<std::string(const Json&)> line;
  std::function<double(const Json&)> share{};  // of all there is to do, from 0 to 1, or ProgressMeter::kUnknown; none: it is not known
  std::function<Status()> stop;            // once, when the tool is interrupted (interruptible.h)
  bool shows = true;                       // shared/progress_meter.h
  std::chrono::milliseconds longest{500};  // between two looks
};

// The state at the end.
Result<Json> wait_for_end(const Progress& progress, IoLayer& io);

}  // namespace varve::tool

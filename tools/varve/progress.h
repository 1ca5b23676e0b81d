// Waiting for something that a mount or an image does, with its progress on a terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/json_text.h"
#include "base/result.h"
#include "varve/io_layer.h"
#include "varve/volume/volume.h"

namespace varve::tool {

struct Progress {
  std::string what;                                 // "clean": clean_report tells of it, and clean_stop ends it (control/requests.h)
  std::function<std::string(const Json&)> line;     // of a report, whose "state" is "running" until the end
  std::function<double(const Json&)> share;         // of all there is to do, from 0 to 1, or ProgressMeter::kUnknown
  bool shows = true;                                // shared/progress_meter.h
  std::chrono::milliseconds longest{500};           // between two looks
};

// The report at the end. It is stopped once, when the tool is interrupted (interruptible.h).
Result<Json> wait_for_end(Volume& volume, const Progress& progress, IoLayer& io);

}  // namespace varve::tool

// The work that people do with a card or a disk is done in a directory, and timed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/result.h"

namespace varve::tool {

struct Effort {
  std::uint64_t file_bytes = 0;  // of the large file; all new files together take as much at most, and the log a quarter of it
  double seconds = 0;            // that each kind of work may take; one operation may take longer
};

struct Outcome {
  std::string work;   // "4 KiB at random + fdatasync"
  std::string unit;   // "MiB/s", "files/s", "/s"
  double rate = 0;    // with what a sync writes afterwards
  double median_ms = 0, longest_ms = 0;  // of one operation; 0: there was but one
  std::uint64_t operations = 0;
};

Json to_json(const Outcome& outcome);

// A series of work needs these besides its directory.
struct Series {
  Effort effort;
  std::function<Status()> forget_cached;          // so that what is read next comes from the device
  std::function<void(const std::string&)> tell;   // which work begins
};

// All kinds of work, one after the other, on the same files. Errc::interrupted: somebody wants it to end (shared/interruptible.h).
Result<std::vector<Outcome>> run_series(const std::string& directory, const Series& series);

}  // namespace varve::tool

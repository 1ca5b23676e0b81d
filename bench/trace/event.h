// A trace of block I/O as text, one event a line: `t_ns op offset length flags [took_ns]`.
//
// op is R, W, F (flush) or D (discard); offset and length are bytes. flags is "-" or some of: f or S (durable: the answer waits for the
// medium), p (a flush comes first), z (zeros), m (metadata), s (somebody waits), c (the cleaner's). took_ns is from the issue to the
// answer, where that was recorded. A line "#mark NAME" begins a phase; other lines with '#' are comments. docs: README.md beside this.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

#include "models/model.h"

namespace varve::bench {

struct TracedRequest {
  std::uint64_t at_ns = 0;
  Request request = {};
  bool flush_first = false;
  bool timed = false;
  std::uint64_t took_ns = 0;  // if timed
};

struct TraceReader {
  std::function<void(const TracedRequest&)> request;
  std::function<void(const std::string&)> mark;
};

// Throws std::runtime_error that names the line if one is no event.
void read_trace(std::istream& in, const TraceReader& reader);

}  // namespace varve::bench

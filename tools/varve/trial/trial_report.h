// The figures of a trial: a table for people, and JSON to send.
#pragma once

#include <string>
#include <vector>

#include "base/json_text.h"
#include "varve/trial/workload.h"

namespace varve::tool {

struct Tried {
  std::string name;  // of the filesystem
  Json made;         // what mkfs.varve said; null for others
  std::vector<Outcome> outcomes;
};

struct TrialReport {
  Json machine, device;
  Effort effort;
  std::vector<Tried> tried;
};

Json to_json(const TrialReport& report);
// A row for each kind of work, and a column for each filesystem. Behind the rates of the others: how many times as fast the first one is.
std::string to_text(const TrialReport& report);

}  // namespace varve::tool

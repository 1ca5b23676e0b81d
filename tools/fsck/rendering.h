// The findings of a check as text and as JSON, from one model.
#pragma once

#include <string>

#include "check/report.h"

namespace varve::fsck {

struct Findings {
  std::string device;
  bool data_verified = false;
  bool repair_wanted = false;
  const check::Report& report;
};

std::string to_text(const Findings& findings);
std::string to_json(const Findings& findings);

}  // namespace varve::fsck

// A check's passes, for a repair that wants what they find out and not what they complain of.
#pragma once

#include "check/context.h"

namespace varve::repair {

struct Silence {
  Silence(io::BlockDevice& device, const format::Superblock& super) : context{device, options, nullptr, report} { report.super = super; }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  check::Report report;
  check::CheckOptions options;
  check::Context context;
};

}  // namespace varve::repair

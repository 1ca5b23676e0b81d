// What belongs to a copied file beside its content.
#pragma once

#include "varve/rescue/salvage_copy.h"

namespace varve::tool {

struct SalvagedPlace {
  int directory;
  const std::string& name;
  int fd;  // -1 where it cannot be opened
  const std::string& path;  // for the report
};

// Owner (for root), extended attributes, mode and times of what has been made there. What fails is in the report.
void copy_attributes(fs::Filesystem& filesystem, const fs::Attr& attr, const SalvagedPlace& place, SalvageReport& report);

}  // namespace varve::tool

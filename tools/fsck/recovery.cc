#include "fsck/recovery.h"

#include <spdlog/spdlog.h>

#include "shared/recovery.h"

namespace varve::fsck {

Status recover(io::BlockDevice& device, repair::Tolerance tolerance) {
  spdlog::set_level(spdlog::level::err);  // the report says what was done
  return varve::recover(device, tolerance);
}

}  // namespace varve::fsck

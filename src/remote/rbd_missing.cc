#include <fmt/format.h>

#include "remote/open_rbd.h"

namespace varve::remote {

Result<std::unique_ptr<io::BlockDevice>> open_rbd(const std::string& name, const io::OpenOptions&) {
  return Error(Errc::unsupported, fmt::format("{}: this Varve was built without librbd (Debian: librbd-dev): attach the image with "
                                              "`rbd map` and give its device, or build it anew", name));
}

}  // namespace varve::remote

#include <fmt/format.h>

#include "remote/open_nbd.h"

namespace varve::remote {

Result<std::unique_ptr<io::BlockDevice>> open_nbd(const std::string& name, const io::OpenOptions&) {
  return Error(Errc::unsupported, fmt::format("{}: this Varve was built without libnbd (Debian: libnbd-dev): attach the export with a "
                                              "kernel client and give its device, or build it anew", name));
}

}  // namespace varve::remote

#include "daemon/device_trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>

#include "base/errc.h"
#include "base/logging.h"

namespace varve::daemon {

Result<std::unique_ptr<DeviceTrace>> DeviceTrace::begin(const std::string& file, io::BlockDevice& device) {
  std::error_code ignored;
  if (const auto size = std::filesystem::file_size(file, ignored); !ignored && size > 0)
    return Error(Errc::exists, fmt::format("{}: there is something in it already, and a trace begins in an empty file", file));
  auto trace = std::make_unique<DeviceTrace>(file, device);
  if (!trace->out_) return Error(errc_from_errno(errno), fmt::format("{}: {}", file, errno_text()));
  return trace;
}

DeviceTrace::DeviceTrace(const std::string& file, io::BlockDevice& device)
    : file_(file), out_(file), writer_(out_), device_(device, [this](const io::TraceEvent& event) { record(event); }) {
  writer_.note(fmt::format("{}, {} bytes: t_ns op offset length flags", device.name(), device.geometry().size_bytes.get()));
}

void DeviceTrace::record(const io::TraceEvent& event) {
  if (is_broken_) return;
  if (!writer_(event) && !is_broken_.exchange(true)) log_error("{}: {}; the trace ends here", file_, errno_text());
}

}  // namespace varve::daemon

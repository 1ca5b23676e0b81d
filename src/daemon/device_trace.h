// What reaches the device of a mount, recorded in a file (mount option trace=).
#pragma once

#include <atomic>
#include <fstream>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/trace_device.h"

namespace varve::daemon {

// Lines as io::TraceWriter has them, behind a comment that names the device. What cannot be written any more is left out, and said in the
// log once: the mount goes on. Must outlive its users and be outlived by the device.
class DeviceTrace {
 public:
  // Errc::exists: there is something in the file, which may be anything.
  static Result<std::unique_ptr<DeviceTrace>> begin(const std::string& file, io::BlockDevice& device);
  DeviceTrace(const std::string& file, io::BlockDevice& device);

  io::BlockDevice& device() { return device_; }

 private:
  void record(const io::TraceEvent& event);

  const std::string file_;
  std::ofstream out_;
  io::TraceWriter writer_;
  io::TraceDevice device_;
  std::atomic<bool> is_broken_{false};
};

}  // namespace varve::daemon

#include "daemon/cache_limit.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/errc.h"

namespace varve::fuse {

void write_setting(const std::string& file, const std::string& value) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (::write(fd, value.data(), value.size()) < 0) spdlog::debug("{}: not set: {}", file, errno_text());
  ::close(fd);
}

CacheLimit::CacheLimit(std::string settings) : settings_(std::move(settings)) {
  lift();
  std::ifstream(settings_ + "max_bytes") >> normal_;  // 0 before Linux 6.2, which has no such limit
}

void CacheLimit::lift() {
  write_setting(settings_ + "strict_limit", "0");
  write_setting(settings_ + "max_ratio", "60");
}

void CacheLimit::set(std::uint64_t bytes) {
  bytes = std::min(bytes, normal_);
  if (bytes == set_) return;
  set_ = bytes;
  if (bytes == normal_) return lift();
  write_setting(settings_ + "max_bytes", std::to_string(bytes));
  write_setting(settings_ + "strict_limit", "1");
}

}  // namespace varve::fuse

#include "daemon/cache_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/errc.h"
#include "base/logging.h"
#include "base/page_size.h"

namespace varve::daemon {

void write_setting(const std::string& file, const std::string& value) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return;
  if (::write(fd, value.data(), value.size()) < 0) log_debug("{}: not set: {}", file, errno_text());
  ::close(fd);
}

namespace {

constexpr std::uint64_t kWidePercent = 60;

}  // namespace

std::uint64_t dirty_threshold() {
  std::ifstream counters("/proc/vmstat");
  std::string name;
  std::uint64_t pages = 0;
  while (counters >> name >> pages)
    if (name == "nr_dirty_threshold") return pages * kernel_page_bytes();
  return 0;
}

CacheLimit::CacheLimit(std::string settings, std::uint64_t of_all) : settings_(std::move(settings)), of_all_(of_all) {
  lift();
  std::ifstream file(settings_ + "max_bytes");
  has_bytes_ = static_cast<bool>(file >> normal_);
  if (!has_bytes_) normal_ = of_all_ / 100 * kWidePercent;
}

void CacheLimit::lift() {
  write_setting(settings_ + "strict_limit", "0");
  write_setting(settings_ + "max_ratio", std::to_string(kWidePercent));
}

// A hundredth is as fine as it gets: on a machine with much memory that is more than was asked for.
void CacheLimit::set_ratio(std::uint64_t bytes) {
  const std::uint64_t percent = of_all_ < 100 ? 1 : bytes / (of_all_ / 100);
  write_setting(settings_ + "max_ratio", std::to_string(std::clamp<std::uint64_t>(percent, 1, kWidePercent)));
}

void CacheLimit::set(std::uint64_t bytes) {
  bytes = std::min(bytes, normal_);
  if (bytes == set_) return;
  set_ = bytes;
  if (bytes == normal_ && normal_ > 0) return lift();
  if (!has_bytes_) return set_ratio(bytes);
  write_setting(settings_ + "max_bytes", std::to_string(bytes));
  write_setting(settings_ + "strict_limit", "1");
}

}  // namespace varve::daemon

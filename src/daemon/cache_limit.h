// The kernel's settings for a mount's cache.
#pragma once

#include <cstdint>
#include <string>

namespace varve::daemon {

// Writes a setting of the kernel's; that it cannot be done does not matter.
void write_setting(const std::string& file, const std::string& value);

// Returns how much the kernel may hold back of all filesystems, in bytes. 0: it does not say.
std::uint64_t dirty_threshold();

// How much the kernel may hold back of what is written to a mount. Before Linux 6.2 it takes that in hundredths of what it may hold back of
// all filesystems only. Not thread-safe; failures do not matter.
class CacheLimit {
 public:
  // `settings`: folder of the backing device, with a slash. Sets what is normal.
  explicit CacheLimit(std::string settings, std::uint64_t of_all = dirty_threshold());
  void set(std::uint64_t bytes);  // or what is normal, if that is less

 private:
  void lift();
  void set_ratio(std::uint64_t bytes);

  std::string settings_;
  std::uint64_t of_all_;
  bool has_bytes_ = false;
  std::uint64_t normal_ = 0;
  std::uint64_t set_ = UINT64_MAX;
};

}  // namespace varve::daemon

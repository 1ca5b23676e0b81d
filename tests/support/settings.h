// What a run of the tests may change from outside, and how long it may take.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace varve::test {

inline std::string setting(const char* name, const std::string& otherwise = "") {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets variables
  return value && *value ? value : otherwise;
}

inline std::uint64_t number_setting(const char* name, std::uint64_t otherwise) {
  const std::string value = setting(name);
  return value.empty() ? otherwise : std::stoull(value);
}

// A share of the seconds that VARVE_TEST_SECONDS allows the tests of one program. Those with sanitizers get more (CMakePresets.json).
class Budget {
 public:
  explicit Budget(double share)
      : end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(
                 share * static_cast<double>(number_setting("VARVE_TEST_SECONDS", 20))))) {}

  bool left() const { return std::chrono::steady_clock::now() < end_; }

 private:
  std::chrono::steady_clock::time_point end_;
};

// Where random tests start; each run of a test program uses the seeds from here on.
inline std::uint64_t first_seed() { return number_setting("VARVE_SEED", 1); }

}  // namespace varve::test

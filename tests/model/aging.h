// A device that is mostly one file, rewritten here and there until the cleaner has to work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "support/script_generator.h"
#include "support/world.h"

namespace varve::test {

inline constexpr std::uint64_t kAgedBytes = 48u << 20;
inline constexpr std::uint64_t kAgedBlocks = kAgedBytes / 100 * 70 / 4096;

inline WorldParameters world_of(const std::string& victims, const std::string& placement) {
  WorldParameters parameters;
  parameters.bytes = kAgedBytes;
  parameters.options = [=](fs::Options& options) {
    options.victims = victims;
    options.placement = placement;
  };
  return parameters;
}

// A file of most of the device, of which a tenth gets most of the writes.
class Aging {
 public:
  explicit Aging(World& world, std::uint64_t seed) : world_(world), dice_(seed) {}

  std::string fill() {
    if (auto failure = world_.steps.run(step("create /big 0644")); !failure.empty()) return failure;
    for (std::uint64_t at = 0; at < kAgedBlocks * 4096; at += 256 * 1024) {
      const std::uint64_t length = std::min<std::uint64_t>(256 * 1024, kAgedBlocks * 4096 - at);
      if (auto failure = world_.steps.run(step(fmt::format("write /big {} {} {}", at, length, ++writes_))); !failure.empty())
        return failure;
    }
    return "";
  }
  std::string write(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t block = dice_.percent(80) ? dice_.below(kAgedBlocks / 10) : dice_.below(kAgedBlocks - 4);
      const std::uint64_t length = dice_.percent(90) ? 4096 : dice_.between(1, 16384);
      const auto text = fmt::format("write /big {} {} {}", block * 4096, length, ++writes_);
      if (auto failure = world_.steps.run(step(text)); !failure.empty()) return failure;
      if (i % 200 != 199) continue;
      if (auto failure = world_.steps.run(step("fsync /big")); !failure.empty()) return failure;
    }
    return "";
  }

 private:
  World& world_;
  Dice dice_;
  std::uint64_t writes_ = 0;
};

}  // namespace varve::test

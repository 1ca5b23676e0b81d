// A filesystem on a modelled device, driven by one thread: overwrites of one file, with what they cost the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/options.h"

namespace varve::bench {

struct EngineSetup {
  std::string model = "sd-cheap";
  std::uint64_t size = 1u << 30;
  std::string files;         // instead of overwrites: untar, postmark, lines, stream
  double scale = 1;          // times as much work with files
  double full = 0.85;        // share of the device that the file has
  double exponent = 0;       // of Zipf's distribution of the overwritten blocks; 0: all alike
  double turns = 1.2;        // overwrites, as a share of the device's blocks
  double budget_seconds = 1e9;  // of the device, for each part
  std::uint64_t remount_after = 0;  // overwrites; 0: never
  double speed = 0;          // times as fast as the real device; 0: as fast as it computes
  bool synced = false;       // fdatasync after each
  bool discard = false;
  std::uint32_t segment_blocks = 0;  // 0: as mkfs chooses
  unsigned streams = 0;              // as the mount option
  std::uint64_t seed = 1;
  std::string strategy = "adaptive", victims = "decline", placement = "learned";
};

// What a part of a run has cost. Times are the device's.
struct EnginePart {
  std::string name;
  std::uint64_t operations = 0;
  double seconds = 0;
  double longest_wait = 0, wait_999 = 0;  // seconds, of a call
  std::uint64_t programmed = 0, erases = 0;  // bytes; erase units
  std::uint64_t written = 0, read = 0, discarded = 0;    // bytes
  std::uint64_t moved = 0, in_holes = 0, nodes = 0, checkpoints = 0, segments = 0;
  std::uint64_t chunks = 0, headers = 0, payload = 0;  // of the log; the latter two in blocks
  std::string explanation;  // of the strategy's last decision
};

// `told`: now and then what goes on, for a user that looks on. Throws std::runtime_error with what the filesystem said.
std::vector<EnginePart> run_files(const EngineSetup& setup);  // engine_files.cc
std::vector<EnginePart> run_on_model(const EngineSetup& setup, const std::function<void(const std::string&)>& told);

}  // namespace varve::bench

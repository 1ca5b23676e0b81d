// A fresh image in memory, mounted, with the model beside it: what most tests start from.
#pragma once

#include <functional>
#include <string>

#include "check/check.h"
#include "io/mem_device.h"
#include "support/comparer.h"
#include "support/fs_fixture.h"
#include "support/lockstep.h"
#include "support/manual_clock.h"
#include "support/script.h"

namespace varve::test {

struct WorldParameters {
  std::uint64_t bytes = 32u << 20;
  ImageParameters image;
  LockstepOptions lockstep;
  std::function<void(fs::Options&)> options;  // changes to test_options()
};

// Every problem that the independent checker finds on an image that nobody has mounted; empty when there is none.
std::string check_image(io::BlockDevice& device, bool verify_data = true);

// Did checkpoints stay within what operations were let in by? Empty when they did.
std::string foresight(FsFixture& fixture);

class World {
 public:
  explicit World(const WorldParameters& parameters);

  // Makes the image and mounts it. Empty or what went wrong.
  std::string start();
  // Runs the script, compares everything after each `interval` steps and at the end.
  std::string run(const Script& script, std::size_t interval = 200);
  std::string compare_now();
  // Unmounts, checks the image, mounts again, compares.
  std::string finish();

  const WorldParameters parameters;
  io::MemDevice device;
  ManualClock clock;
  SeededRandom random;
  FsFixture fixture;
  Lockstep steps;
};

// Runs a script in a world of its own, from mkfs to the last check.
std::string run_in_world(const WorldParameters& parameters, const Script& script, std::size_t interval = 200);

// The failure with the smallest script that shows one, and the seed it came from.
std::string report(const WorldParameters& parameters, const Script& script, const std::string& failure,
                   std::uint64_t seed);

}  // namespace varve::test

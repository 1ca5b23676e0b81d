// A filesystem on a modelled device, on one thread and by the device's clock: made, mounted, called.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "cleaning/checked.h"
#include "engine_run.h"
#include "fs/engine.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"
#include "model_device.h"
#include "models/catalogue.h"

namespace varve::bench {

// Throws std::runtime_error with what the filesystem said.
class Stage {
 public:
  explicit Stage(const EngineSetup& setup);

  void make();
  void mount();
  void unmount();
  // What log and cleaner have done since the first mount.
  static constexpr std::initializer_list<std::uint64_t EnginePart::*> kCounted = {
      &EnginePart::moved,    &EnginePart::in_holes, &EnginePart::nodes,   &EnginePart::checkpoints,
      &EnginePart::segments, &EnginePart::chunks,   &EnginePart::headers, &EnginePart::payload};
  EnginePart counted() const;
  fs::Filesystem& fs() { return *fs_; }
  DeviceClock& clock() { return clock_; }
  SeededRandom& random() { return random_; }
  const DeviceModel& model() const { return *model_; }

  template <class F>
  auto call(F&& function) {
    fs::Operation operation(fs_->operations(), fs::Caller{});
    return fs::block_on(operation, [&] { return function(operation); });
  }
  Ino make_file(Ino parent, const std::string& name);
  void write(Ino file, std::uint64_t offset, std::span<const std::byte> bytes);
  void sync();
  // As the timer of a mount does for what nobody syncs.
  void seal_when_due();

 private:
  const EngineSetup& setup_;
  SeededRandom random_;
  DeviceClock clock_;
  io::MemDevice memory_;
  std::unique_ptr<DeviceModel> model_;
  std::unique_ptr<ModelDevice> device_;
  std::unique_ptr<fs::Filesystem> fs_;
  EnginePart before_;  // what had been counted when it was last unmounted: counters begin with each mount
};

}  // namespace varve::bench

// A device in memory on which every request takes as long as a model says, by a clock that only it moves. One request at a time.
#pragma once

#include <functional>

#include "io/block_device.h"
#include "support/manual_clock.h"

namespace varve::test {

class TimedDevice : public io::BlockDevice {
 public:
  using Model = std::function<std::uint64_t(const io::IoRequest&)>;  // ns

  // `rotational`: what it says of itself, true or not.
  TimedDevice(io::BlockDevice& below, ManualClock& clock, bool rotational, Model model)
      : below_(below), clock_(clock), model_(std::move(model)), geometry_(below.geometry()) {
    geometry_.rotational = rotational;
  }

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    clock_.advance(static_cast<std::int64_t>(model_(request)));
    below_.submit(reactor, request);
  }

 private:
  io::BlockDevice& below_;
  ManualClock& clock_;
  const Model model_;
  io::Geometry geometry_;
};

}  // namespace varve::test

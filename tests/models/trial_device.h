// A modelled device without content, as a block device: requests take the model's time, and what else a test wants.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "io/block_device.h"
#include "model_device.h"
#include "models/block_ftl.h"

namespace varve::bench::test {

class TrialDevice : public io::BlockDevice {
 public:
  // `before`: bytes of the model in front of it, as of a partition.
  explicit TrialDevice(std::unique_ptr<DeviceModel> model, std::uint64_t before = 0);
  void hide_before() { geometry_.before = 0; }  // it does not tell

  const io::Geometry& geometry() const override { return geometry_; }
  const std::string& name() const override { return name_; }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;
  int execute(io::IoRequest& request) override { return request.error = serve(request); }

  Clock& clock() { return clock_; }
  const Work& work() const { return model_->work(); }
  double seconds() const { return static_cast<double>(clock_.elapsed_ns()) * 1e-9; }
  // Where writes have begun and ended, at the least and at the most; in bytes.
  std::uint64_t first_written() const { return first_; }
  std::uint64_t last_written() const { return last_; }

  std::function<std::uint64_t(std::uint64_t ns, Op op)> disturb;  // what a request of the model's time takes instead
  std::uint64_t fail_after = ~0ULL;                        // requests; then EIO

 private:
  int serve(const io::IoRequest& request);

  const std::unique_ptr<DeviceModel> model_;
  const std::uint64_t before_;
  DeviceClock clock_;
  io::Geometry geometry_;
  const std::string name_ = "modelled";
  std::uint64_t first_ = ~0ULL, last_ = 0;
};

// Units that take writes anywhere while they are open; the one that was used longest ago is copied when another is to be opened.
class AnywhereFtl : public Ftl {
 public:
  AnywhereFtl(std::uint64_t unit_pages, unsigned open_units) : unit_pages_(unit_pages), open_units_(open_units) {}
  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t, std::uint64_t) override { return {}; }

 private:
  const std::uint64_t unit_pages_;
  const unsigned open_units_;
  std::list<std::uint64_t> open_;  // the one used last comes first
};

// As sd-cheap, but for the mapping.
std::unique_ptr<DeviceModel> card_with(std::uint64_t size, std::unique_ptr<Ftl> ftl);

}  // namespace varve::bench::test

// A decorator that breaks chosen requests: what dying, lying and misbehaving hardware does.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "io/block_device.h"

namespace varve::test {

struct Fault {
  enum class Action : std::uint8_t {
    fail,       // nothing is done; completes with `error`
    partial,    // the first half of the blocks is done; completes with `error`
    flip,       // read: done, but bit `bit` of the data is wrong
    lose,       // write, flush, discard: success is reported, nothing is done
    misdirect,  // read, write: done `shift_blocks` away
    vanish,     // the device is gone: this and every later request of any kind fails with `error`
  };
  static constexpr std::uint64_t kForEver = UINT64_MAX;

  Action action = Action::fail;
  std::optional<io::IoKind> kind = {};             // nothing: any
  std::uint64_t nth = 1;                       // the first request that it hits, counted from when it was added
  std::uint64_t times = 1;                     // how many requests, from the nth on
  std::optional<std::uint64_t> touches_block = {}; // count only requests whose range has this block
  int error = EIO;
  std::uint64_t bit = 0;  // modulo the length
  std::int64_t shift_blocks = 1;
};

// Thread-safe. Requests are counted in the order of their submission.
class FaultDevice : public io::BlockDevice {
 public:
  // Keeps the device below, or only borrows it (it must then outlive this one).
  explicit FaultDevice(std::unique_ptr<io::BlockDevice> below);
  explicit FaultDevice(io::BlockDevice& below);

  std::optional<io::Connection> connection() const override { return below_.connection(); }
  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return below_.read_only(); }
  Status look_again() override { return below_.look_again(); }
  Status set_length(std::uint64_t bytes) override { return below_.set_length(bytes); }
  void submit(io::Reactor& reactor, io::IoRequest& request) override;

  void add(const Fault& fault);
  void heal();                                      // forgets all faults; a vanished device is back
  std::uint64_t hits() const;                       // requests broken so far
  std::uint64_t submitted(io::IoKind kind) const;   // requests seen so far

 private:
  struct Armed {
    Fault fault;
    std::uint64_t seen = 0;
  };

  std::optional<Fault> strike(const io::IoRequest& request);
  void partial(io::Reactor& reactor, io::IoRequest& request, int error);
  void flip(io::Reactor& reactor, io::IoRequest& request, std::uint64_t bit);
  void misdirect(io::Reactor& reactor, io::IoRequest& request, std::int64_t shift_blocks);

  std::unique_ptr<io::BlockDevice> owned_;
  io::BlockDevice& below_;
  mutable std::mutex mutex_;
  // Under mutex_:
  std::vector<Armed> faults_;
  std::optional<Fault> vanished_;
  std::uint64_t hits_ = 0;
  std::uint64_t submitted_[4] = {};
};

}  // namespace varve::test

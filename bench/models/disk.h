// A disk with a cache for writes and a queue for reads. A read that goes on where the arm stands waits for no turn, however late: as if
// the disk had read ahead into a buffer without bounds. Nor does a write, as long as nobody waits for one. A write that comes after a
// flush, or after a durable one, has missed its place.
#pragma once

#include <map>

#include "models/model.h"
#include "models/spindle.h"

namespace varve::bench {

struct DiskParameters {
  SpindleParameters spindle;
  double interface_rate = 0;       // bytes a second
  double request = 0;              // seconds for each request, besides all else
  std::uint64_t cache_bytes = 0;   // of writes that are not on the medium yet; 0: written through
};

class Disk : public DeviceModel {
 public:
  Disk(Facts facts, const DiskParameters& parameters)
      : DeviceModel(std::move(facts)), parameters_(parameters), spindle_(parameters.spindle) {}

  // The read that the arm reaches first; writes and flushes in their order, before any read that came after them.
  std::size_t choose(std::span<const Request> waiting) const override;

 protected:
  Duration seconds_for(const Request& request) override;
  double idle(double seconds) override;

 private:
  double read(const Request& request);
  double write(const Request& request);
  double drain_one();  // the next dirty run in the arm's direction; seconds
  double drain_all();
  double move_to(std::uint64_t offset, std::uint64_t length, bool write);
  void add_dirty(std::uint64_t from, std::uint64_t to);
  bool is_dirty(const Request& request) const;

  const DiskParameters parameters_;
  Spindle spindle_;
  double now_ = 0;                               // seconds of device time
  std::map<std::uint64_t, std::uint64_t> dirty_;  // runs: from, to
  std::uint64_t dirty_bytes_ = 0;
};

}  // namespace varve::bench

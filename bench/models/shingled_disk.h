// A shingled disk that hides it (drive-managed SMR): bands can only be rewritten whole; what does not come in a row goes to a cache on
// the medium, which is cleaned band by band.
//
// After Aghayev, Desnoyers, "Skylight: a window on shingled disk operation", FAST 2015: bands of 15 to 40 MiB, a persistent cache,
// cleaning in the order of arrival, also while idle.
#pragma once

#include <list>
#include <unordered_map>
#include <vector>

#include "models/model.h"
#include "models/spindle.h"

namespace varve::bench {

struct ShingleParameters {
  SpindleParameters spindle;
  double request = 0;              // seconds for each request
  std::uint64_t band = 30u << 20;  // bytes
  double cache_share = 0.01;       // of the size, at the outer edge
  unsigned streams = 3;            // bands that are written in a row at a time, without the cache
  double idle_before_cleaning = 1; // seconds
};

class ShingledDisk : public DeviceModel {
 public:
  ShingledDisk(Facts facts, const ShingleParameters& parameters);

  std::size_t choose(std::span<const Request> waiting) const override;
  std::uint64_t cached_bytes() const { return cached_pages_ * kPage; }

 protected:
  Duration seconds_for(const Request& request) override;
  double idle(double seconds) override;

 private:
  static constexpr std::uint64_t kPage = 4096;
  struct Stream {
    std::uint64_t band;
    std::uint64_t next;  // offset at which it goes on
  };

  double read(const Request& request);
  double write(const Request& request);
  double write_to_cache(const Request& request);
  double make_room(std::uint64_t pages);
  double clean_one();  // the band that has waited longest; seconds
  double close(std::list<Stream>::iterator stream);
  std::list<Stream>::iterator stream_for(const Request& request);
  void forget_cached(std::uint64_t from, std::uint64_t to);
  double move_to(std::uint64_t offset, std::uint64_t length, bool write);
  std::uint64_t place_of(std::uint64_t page) const;  // on the medium, bytes

  const ShingleParameters parameters_;
  Spindle spindle_;
  const std::uint64_t cache_pages_;
  double now_ = 0;
  std::list<Stream> streams_;                               // the one used last comes first
  std::unordered_map<std::uint64_t, std::uint64_t> cached_;  // page, place in the cache
  std::vector<std::uint64_t> cached_in_band_;
  std::list<std::uint64_t> waiting_bands_;                   // with cached pages, the first to come first
  std::uint64_t cached_pages_ = 0, next_place_ = 0;
};

}  // namespace varve::bench

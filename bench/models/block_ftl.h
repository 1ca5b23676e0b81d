// Block mapping, as in cheap cards and sticks: an allocation unit is written from its beginning to its end, a few are open at a time.
//
// After A. Bergmann, "Optimizing Linux with cheap flash drives" (LWN 428584) and the Linaro flash card survey. A write that goes on in
// an open unit costs what it writes. Any other one closes the unit that was used longest ago, for which the rest of it is copied.
#pragma once

#include <list>
#include <vector>

#include "models/ftl.h"

namespace varve::bench {

struct BlockMapping {
  std::uint64_t unit_pages = 1024;
  unsigned open_units = 5;
  std::uint64_t program_pages = 4;  // programmed at once: less than that costs as much
};

class BlockFtl : public Ftl {
 public:
  // `used`: every page has content already.
  BlockFtl(std::uint64_t pages, const BlockMapping& mapping, bool used = true);

  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t first, std::uint64_t pages) override;

 private:
  struct Open {
    std::uint64_t unit;
    std::uint64_t from, to;  // pages written since it was opened, counted from the unit's first
  };
  using Place = std::list<Open>::iterator;

  FlashWork write_in_unit(std::uint64_t unit, std::uint64_t from, std::uint64_t to);
  FlashWork close(Place place);
  FlashWork copy(std::uint64_t unit, std::uint64_t from, std::uint64_t to) const;
  Place find(std::uint64_t unit);

  const BlockMapping mapping_;
  std::vector<bool> has_content_;
  std::list<Open> open_;  // the one used last comes first
};

}  // namespace varve::bench

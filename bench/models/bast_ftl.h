// Hybrid mapping with a log block for one data block: a few blocks are written over at a time, and a write to another one merges the log
// block that was used longest ago.
//
// After Kim, Kim, Noh, Min, Cho, "A space-efficient flash translation layer for CompactFlash systems" (BAST), IEEE Transactions on Consumer
// Electronics 48(2), 2002.
#pragma once

#include <list>
#include <vector>

#include "models/ftl.h"

namespace varve::bench {

struct LogBlockMapping {
  std::uint64_t block_pages = 256;
  unsigned log_blocks = 32;
};

class BastFtl : public Ftl {
 public:
  // `used`: every page has content already.
  BastFtl(std::uint64_t pages, const LogBlockMapping& mapping, bool used = true);

  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t first, std::uint64_t pages) override;

 private:
  struct LogBlock {
    std::uint64_t block;               // the data block that it stands beside
    std::vector<std::uint64_t> pages;  // of the data block, in the order of writing
    bool in_row = true;                // each page stands where it stands in the data block
  };
  using Place = std::list<LogBlock>::iterator;

  FlashWork write_page(std::uint64_t block, std::uint64_t page);
  FlashWork merge(Place place);

  const LogBlockMapping mapping_;
  std::vector<bool> has_content_;
  std::list<LogBlock> logs_;  // the one used last comes first
};

}  // namespace varve::bench

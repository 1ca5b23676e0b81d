// Hybrid mapping: blocks are mapped whole, and what does not come in a row goes to a few page-mapped log blocks that all share.
//
// After Lee, Park, Chung, Lee, Park, Song, "A log buffer-based flash translation layer using fully-associative sector translation"
// (FAST), ACM TECS 6(3), 2007. As in FlashSim, the first write to a page of a data block that is erased there goes to it at once.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "models/ftl.h"

namespace varve::bench {

struct HybridMapping {
  std::uint64_t block_pages = 128;
  double spare = 0.10;  // of the blocks that can be addressed: all are log blocks, but one for writes in a row
};

class FastFtl : public Ftl {
 public:
  // `used`: every page has content already.
  FastFtl(std::uint64_t pages, const HybridMapping& mapping, bool used = true);

  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t first, std::uint64_t pages) override;

  std::uint64_t most_erases_of_a_block() const override;

 private:
  // Blocks of the chip, by number. Free ones are taken in the order in which they were erased.
  struct LogBlock {
    std::uint32_t chip_block;
    std::vector<std::uint64_t> pages;  // in the order of writing; kStale where another copy is newer
  };
  struct Sequential {
    std::uint64_t block;
    std::uint32_t chip_block;
    std::uint64_t written;  // pages, from the block's first
  };
  static constexpr std::uint64_t kStale = ~std::uint64_t{0};

  FlashWork write_page(std::uint64_t page);
  FlashWork close_sequential();
  FlashWork write_to_log(std::uint64_t page);
  FlashWork merge_oldest();
  FlashWork merge(std::uint64_t block);
  void make_stale(std::uint64_t page);
  std::uint32_t take_free();
  void erase(std::uint32_t chip_block);
  void replace_data(std::uint64_t block, std::uint32_t by);
  std::uint64_t end_of(std::uint64_t block) const;
  void renew(std::uint64_t block, std::uint64_t programmed);
  std::uint64_t valid_in(std::uint64_t block, std::uint64_t from) const;

  const HybridMapping mapping_;
  const std::size_t most_logs_;
  std::vector<bool> has_content_;
  std::vector<bool> programmed_;      // the page's place in its data block
  std::vector<std::int64_t> log_of_;  // number of the log block that has the page; -1: none
  std::deque<LogBlock> logs_;         // the oldest first
  std::int64_t first_log_ = 0;        // number of the oldest
  std::optional<Sequential> sequential_;
  std::vector<std::uint32_t> data_;    // the chip's block for each data block
  std::vector<std::uint64_t> erases_;  // of each of the chip's blocks
  std::deque<std::uint32_t> free_;
};

}  // namespace varve::bench

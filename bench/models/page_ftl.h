// Page mapping, as in SSDs and better cards: pages go to the open block wherever they belong, and blocks with few valid pages are
// copied together when free ones run out.
#pragma once

#include <cstdint>
#include <vector>

#include "models/ftl.h"

namespace varve::bench {

enum class VictimPolicy : std::uint8_t {
  greedy,        // the fewest valid pages
  cost_benefit,  // age·(1 − u)/2u (Kawaguchi, Nishioka, Motoda, "A flash-memory based file system", USENIX 1995)
};

struct PageMapping {
  std::uint64_t block_pages = 512;
  double spare = 0.07;  // blocks beyond those that can be addressed, as a share of them
  VictimPolicy policy = VictimPolicy::greedy;
  std::uint64_t program_pages = 1;  // programmed at once: a flush fills up what is not whole
  std::uint64_t map_pages = 0;      // of the map, that a flush programs
};

class PageFtl : public Ftl {
 public:
  // `used`: every page has content already, in the order of addresses.
  PageFtl(std::uint64_t pages, const PageMapping& mapping, bool used = true);

  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t first, std::uint64_t pages) override;
  FlashWork flush() override;  // what it fills up and the map take no room here

  std::uint64_t most_erases_of_a_block() const override;

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr std::size_t kLeastFree = 2;

  struct Block {
    std::uint32_t valid = 0;
    std::uint32_t erases = 0;
    std::uint64_t changed = 0;  // when a page of it was last written or given up, in writes of the host
    std::uint32_t next = kNone, previous = kNone;  // in the list of full blocks with as many valid pages
    bool full = false;
  };
  struct Frontier {
    std::uint32_t block = kNone;
    std::uint32_t next = 0;
  };

  void put(std::uint32_t page, Frontier& frontier, FlashWork& work);
  void give_up(std::uint32_t page);
  void collect(FlashWork& work);
  std::uint32_t victim() const;
  void list(std::uint32_t block);
  void unlist(std::uint32_t block);

  const PageMapping mapping_;
  std::vector<std::uint32_t> place_of_, page_at_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_, lists_;  // the first full block with so many valid pages
  Frontier host_, copies_;
  std::uint64_t writes_ = 0, flushed_ = 0;
};

}  // namespace varve::bench

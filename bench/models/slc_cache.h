// A cache of single-level cells before a mapping, as in cards and SSDs with three or four bits a cell. Writes go there fast. They are
// folded into the dense flash later, when nothing is asked for or when there is no room left.
//
// After the data sheets of such SSDs ("TurboWrite"), which say how large it is and what is left of the speed behind it. They do not say how
// it is folded: here by whole units of addresses, the one written longest ago first.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "models/ftl.h"

namespace varve::bench {

struct SlcCaching {
  std::uint64_t pages = 0;       // that it holds
  std::uint64_t unit_pages = 0;  // that are folded at once
};

class SlcCache : public Ftl {
 public:
  SlcCache(std::unique_ptr<Ftl> behind, const SlcCaching& caching) : behind_(std::move(behind)), caching_(caching) {}

  FlashWork write(std::uint64_t first, std::uint64_t pages) override;
  FlashWork discard(std::uint64_t first, std::uint64_t pages) override;
  FlashWork flush() override { return behind_->flush(); }
  FlashWork tidy() override;
  std::uint64_t most_erases_of_a_block() const override { return behind_->most_erases_of_a_block(); }

 private:
  struct Unit {
    std::uint64_t number;
    std::vector<bool> has;    // page of the unit: its newest copy is here
    std::uint64_t taken = 0;  // pages of the cache, older copies too
  };
  using Place = std::list<Unit>::iterator;

  Place unit_of(std::uint64_t page);
  FlashWork fold(Place place);

  const std::unique_ptr<Ftl> behind_;
  const SlcCaching caching_;
  std::list<Unit> units_;  // the one written last first
  std::unordered_map<std::uint64_t, Place> by_number_;
  std::uint64_t taken_ = 0;
};

}  // namespace varve::bench

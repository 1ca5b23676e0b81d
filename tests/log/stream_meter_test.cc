// How many open units of a card the writes themselves tell.
#include "device/stream_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <vector>

#include "base/clock.h"

namespace varve::device {
namespace {

constexpr std::uint64_t kUnit = 4 << 20, kPiece = 64 << 10;

// A device with units of kUnit bytes, `open` of which may be written in turn. 15 MB/s.
class Card {
 public:
  explicit Card(unsigned open, bool seeks = false) : open_(open), seeks_(seeks) {}

  std::uint64_t write(std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t unit = offset / kUnit;
    std::uint64_t ns = 400'000 + length * 1000 / 15;
    const auto found = std::ranges::find(units_, unit);
    if (found == units_.end() && units_.size() == open_) {
      ns += kUnit * 1000 / 15;  // the rest of another one is copied
      units_.pop_back();
    }
    if (seeks_ && (units_.empty() || units_.front() != unit)) ns += 18'000'000;
    if (found != units_.end()) units_.erase(found);
    units_.push_front(unit);
    return ns;
  }

 private:
  const unsigned open_;
  const bool seeks_;
  std::list<std::uint64_t> units_;
};

// Heads that are written in a random order, some more often than others.
void use(StreamMeter& meter, Card card, unsigned heads, unsigned writes, std::uint64_t piece = kPiece, unsigned stalls_every = 0) {
  SeededRandom random(1);
  std::vector<std::uint64_t> at(heads);
  std::uint64_t fresh = 0, now = 1;
  for (auto& place : at) place = fresh++ * kUnit;
  for (unsigned i = 0; i < writes; ++i) {
    std::uint64_t& place = at[std::min(random.next() % heads, random.next() % heads)];
    std::uint64_t ns = card.write(place, piece);
    if (stalls_every && i % stalls_every == 0) ns += 300'000'000;
    meter.observe(place, piece, now, now + ns);
    now += ns + 1000;
    place += piece;
    if (place % kUnit == 0) place = fresh++ * kUnit;
  }
}

unsigned measure(Card card, unsigned heads, unsigned writes, std::uint64_t piece = kPiece, unsigned stalls_every = 0) {
  StreamMeter meter(kUnit);
  use(meter, std::move(card), heads, writes, piece, stalls_every);
  return meter.limit();
}

TEST(StreamMeter, finds_how_many_units_a_card_keeps_open) {
  for (const unsigned open : {1U, 2U, 3U, 5U, 8U}) EXPECT_EQ(measure(Card(open), open + 4, 2000), open) << open;
}

TEST(StreamMeter, finds_it_from_small_writes_as_well) { EXPECT_EQ(measure(Card(5), 9, 4000, 4096), 5U); }

TEST(StreamMeter, has_nothing_to_say_where_all_units_stay_open) { EXPECT_EQ(measure(Card(30), 9, 4000), 0U); }

TEST(StreamMeter, takes_pauses_that_come_anywhere_for_no_limit) { EXPECT_EQ(measure(Card(30), 9, 4000, kPiece, 10), 0U); }

TEST(StreamMeter, takes_seeks_for_no_limit) { EXPECT_EQ(measure(Card(30, true), 9, 4000), 0U); }

// On a machine that is busy whole batches of writes are late, and the time stands with the first of them, which begins elsewhere.
TEST(StreamMeter, takes_what_was_late_for_no_single_stream) {
  for (const bool late : {true, false}) {
    StreamMeter meter(kUnit);
    std::uint64_t now = 1, head = 9 * kUnit;
    for (std::uint64_t i = 0; i < 60; ++i) {
      meter.observe(head, kPiece, now, now + 400'000'000, {.late = late});
      meter.observe(head + kPiece, kPiece, now, now + 405'000'000, {.late = late});
      head += 2 * kPiece;
      now += 405'000'000;
      meter.observe(i * 4096, 4096, now, now + 400'000'000, {.late = late});
      now += 400'000'000;
    }
    EXPECT_EQ(meter.limit(), late ? 0U : 1U);
  }
}

TEST(StreamMeter, takes_few_turns_of_many_places_for_no_single_stream) {
  for (unsigned writes = 20; writes < 400; writes += 20) EXPECT_NE(measure(Card(5), 24, writes), 1U) << writes;
}

TEST(StreamMeter, tells_with_how_many_others_a_place_was_seen_to_be_cheap) {
  StreamMeter meter(kUnit), few(kUnit), none(0);
  EXPECT_EQ(meter.proven(), 0U);
  use(meter, Card(30), 5, 2000);
  EXPECT_GE(meter.proven(), 4U) << "five take turns";
  EXPECT_LE(meter.proven(), 8U) << "they come to new units now and then";
  use(few, Card(3), 6, 2000);
  EXPECT_LE(few.proven(), 2U);
  EXPECT_EQ(none.proven(), StreamMeter::kMost);
}

TEST(StreamMeter, takes_flushes_and_noise_for_no_sign_that_places_are_dear) {
  StreamMeter flushed(kUnit), noisy(kUnit);
  std::uint64_t now = 1;
  for (std::uint64_t i = 0; i < 200; ++i) {  // a small durable write, and payload elsewhere
    flushed.observe(i * 4096, 4096, now, now + 5'000'000'000, {.durable = true});
    now += 5'000'000'000;
    flushed.observe(9 * kUnit + i * kPiece, kPiece, now, now + 5'000'000);
    now += 5'000'000;
  }
  EXPECT_GE(flushed.proven(), 1U);
  use(noisy, Card(30), 5, 2000, kPiece, 4);  // one in four is slow
  EXPECT_GE(noisy.proven(), 3U);
}

TEST(StreamMeter, needs_more_than_a_few_writes) { EXPECT_EQ(measure(Card(5), 9, 20), 0U); }

TEST(StreamMeter, measures_nothing_without_a_unit) {
  StreamMeter meter(0);
  for (std::uint64_t i = 0; i < 1000; ++i) meter.observe(i % 9 * kUnit + i / 9 * kPiece, kPiece, i * 1000, i * 1000 + 900);
  EXPECT_EQ(meter.limit(), 0U);
}

// Writes that overlap: the time that one waits for another is not its own.
TEST(StreamMeter, does_not_count_the_wait_for_other_writes) {
  StreamMeter meter(kUnit);
  std::uint64_t done = 1;
  for (std::uint64_t i = 0; i < 900; ++i) {
    const std::uint64_t began = done, took = 400'000 + kPiece * 1000 / 15;
    for (std::uint64_t head = 0; head < 9; ++head) {
      done += took;
      meter.observe(head * 100 * kUnit + i * kPiece, kPiece, began, done);
    }
  }
  EXPECT_EQ(meter.limit(), 0U);
}

}  // namespace
}  // namespace varve::device

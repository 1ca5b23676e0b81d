// Flash mappings where the answer can be computed.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "models/bast_ftl.h"
#include "models/block_ftl.h"
#include "models/catalogue.h"
#include "models/fast_ftl.h"
#include "models/flash_device.h"
#include "models/page_ftl.h"
#include "models/slc_cache.h"

namespace varve::bench {
namespace {

constexpr std::uint64_t kPages = 32768;  // 128 MiB

FlashWork write_all_in_a_row(Ftl& ftl) {
  FlashWork sum;
  for (std::uint64_t page = 0; page < kPages; page += 32) sum += ftl.write(page, 32);
  return sum;
}

double amplification(Ftl& ftl, std::uint64_t writes, std::uint64_t span = kPages) {
  SeededRandom random(1);
  FlashWork sum;
  for (std::uint64_t i = 0; i < writes; ++i) sum += ftl.write(random.next() % span, 1);
  return static_cast<double>(sum.programmed) / static_cast<double>(writes);
}

TEST(Mappings, WritesInARowCostWhatTheyWrite) {
  const auto mappings = [] {
    std::vector<std::unique_ptr<Ftl>> all;
    all.push_back(std::make_unique<BlockFtl>(kPages, BlockMapping{}));
    all.push_back(std::make_unique<PageFtl>(kPages, PageMapping{}));
    all.push_back(std::make_unique<FastFtl>(kPages, HybridMapping{}));
    return all;
  }();
  for (const auto& ftl : mappings) {
    for (int turn = 0; turn < 3; ++turn) {
      const FlashWork sum = write_all_in_a_row(*ftl);
      EXPECT_EQ(sum.programmed, kPages);
      EXPECT_EQ(sum.copied, 0U);
    }
  }
}

TEST(BlockMapped, AWriteElsewhereCostsAUnit) {
  BlockFtl ftl(kPages, {.unit_pages = 1024, .open_units = 2, .program_pages = 1});
  EXPECT_EQ(ftl.write(10, 1).programmed, 1U);
  EXPECT_EQ(ftl.write(2048, 1).programmed, 1U);
  const FlashWork third = ftl.write(4096, 1);  // the first is closed: all of it but the page
  EXPECT_EQ(third.copied, 1023U);
  EXPECT_EQ(third.programmed, 1024U);
  EXPECT_EQ(third.erases, 1U);
}

TEST(BlockMapped, BackwardsBeginsAnew) {
  BlockFtl ftl(kPages, {.unit_pages = 1024, .open_units = 2, .program_pages = 1});
  ftl.write(0, 100);
  const FlashWork back = ftl.write(50, 1);
  EXPECT_EQ(back.copied, 924U);
  EXPECT_EQ(ftl.write(60, 1).copied, 9U) << "over a gap: what is in it";
}

TEST(BlockMapped, ASmallWriteProgramsAWholePage) {
  BlockFtl ftl(kPages, {.unit_pages = 1024, .open_units = 2, .program_pages = 4});
  EXPECT_EQ(ftl.write(0, 1).programmed, 4U);
  EXPECT_EQ(ftl.write(1, 1).programmed, 4U);
  EXPECT_EQ(ftl.write(2, 6).programmed, 8U);
}

TEST(BlockMapped, WhatWasDiscardedIsNotCopied) {
  BlockFtl ftl(kPages, {.unit_pages = 1024, .open_units = 1, .program_pages = 1});
  ftl.discard(0, 1024);
  ftl.write(0, 1);
  EXPECT_EQ(ftl.write(2048, 1).copied, 0U);
}

// With the victims in the order of their age the valid share u' of a victim solves u = (u' − 1)/ln u' (Menon, 1995). The fewest
// valid pages are better than that, and never worse than what the spare blocks allow.
TEST(PageMapped, UniformWritesCostWhatTheoryAllows) {
  constexpr double kSpare = 0.25;
  PageFtl ftl(kPages, {.block_pages = 64, .spare = kSpare});
  amplification(ftl, 4 * kPages);
  const double measured = amplification(ftl, 8 * kPages);
  double low = 0.01, high = 0.99;
  for (int i = 0; i < 60; ++i) {
    const double u = (low + high) / 2;
    ((u - 1) / std::log(u) < 1 / (1 + kSpare) ? low : high) = u;
  }
  const double by_age = 1 / (1 - low);
  EXPECT_LT(measured, 1.02 * by_age);
  EXPECT_GT(measured, 0.75 * by_age);
}

TEST(PageMapped, DiscardedPagesMakeCollectingCheaper) {
  PageFtl all(kPages, {.block_pages = 64}), half(kPages, {.block_pages = 64});
  half.discard(kPages / 2, kPages / 2);
  amplification(half, 4 * kPages, kPages / 2);
  EXPECT_LT(amplification(half, 4 * kPages, kPages / 2), 1.3);
  amplification(all, 4 * kPages);
  EXPECT_GT(amplification(all, 4 * kPages), 3);
}

TEST(PageMapped, BothPoliciesKeepEveryPage) {
  for (const VictimPolicy policy : {VictimPolicy::greedy, VictimPolicy::cost_benefit}) {
    PageFtl ftl(4096, {.block_pages = 64, .spare = 0.1, .policy = policy});
    SeededRandom random(2);
    FlashWork sum;
    for (int i = 0; i < 40960; ++i) sum += ftl.write(random.next() % 4096, 1);
    EXPECT_EQ(sum.programmed - sum.copied, 40960U);
    EXPECT_GT(sum.erases, 40960U / 64);
  }
}

TEST(Hybrid, ScatteredWritesCostFarMoreThanPageMapped) {
  FastFtl hybrid(kPages, {.block_pages = 128, .spare = 0.1});
  PageFtl pages(kPages, {.block_pages = 128, .spare = 0.1});
  amplification(hybrid, kPages);
  amplification(pages, 4 * kPages);
  EXPECT_GT(amplification(hybrid, kPages / 4), 1.5 * amplification(pages, kPages / 4));
}

TEST(Hybrid, APartlyWrittenBlockIsCompleted) {
  FastFtl ftl(kPages, {.block_pages = 128, .spare = 0.1});
  EXPECT_EQ(ftl.write(0, 100).programmed, 100U);
  const FlashWork next = ftl.write(128, 1);  // another block from its beginning: the rest of the first is copied
  EXPECT_EQ(next.copied, 28U);
  EXPECT_EQ(next.erases, 1U);
}

// 24 log blocks take 24 writes to each of 128 of the 256 data blocks. The next write empties the oldest, which has a page of each of the
// first 128 data blocks: each is merged, and the pages of them in other logs are stale then.
TEST(Hybrid, AFullLogMergesEachBlockThatIsInIt) {
  FastFtl ftl(kPages, {.block_pages = 128, .spare = 26.0 / 256});
  for (std::uint64_t i = 0; i < 24u * 128; ++i) {
    const FlashWork work = ftl.write(i % 256 * 128 + 1 + i / 256, 1);
    ASSERT_EQ(work.programmed, 1U) << i;
    ASSERT_EQ(work.erases, 0U) << i;
  }
  const auto fill_one_log = [&] {
    FlashWork sum;
    for (std::uint64_t i = 0; i < 128; ++i) sum += ftl.write(i * 128 + 100, 1);
    return sum;
  };
  const FlashWork first = fill_one_log();
  EXPECT_EQ(first.copied, 128U * 128);
  EXPECT_EQ(first.programmed, 128U * 128 + 128);
  EXPECT_EQ(first.erases, 128U + 1);
  EXPECT_EQ(fill_one_log().copied, 128U * 128) << "the second has pages of the other data blocks";
  const FlashWork third = fill_one_log();
  EXPECT_EQ(third.copied, 0U) << "all of it is stale";
  EXPECT_EQ(third.erases, 1U);
}

TEST(Hybrid, APlaceThatIsErasedTakesTheFirstWrite) {
  FastFtl empty(kPages, {.block_pages = 128, .spare = 0.1}, false);
  FlashWork sum;
  for (const std::uint64_t page : {5, 3, 127, 128, 0}) sum += empty.write(page, 1);
  EXPECT_EQ(sum.programmed, 5U);
  EXPECT_EQ(sum.erases, 0U);
  for (std::uint64_t page = 0; page < 128; ++page) sum += empty.write(page, 1);
  EXPECT_EQ(sum.programmed, 5U + 128);
  EXPECT_EQ(sum.copied, 0U);
  EXPECT_EQ(sum.erases, 1U) << "the first one was written already, and the whole block comes in a row";
}

TEST(Hybrid, WhatWasDiscardedIsErasedByTheNextMerge) {
  FastFtl ftl(kPages, {.block_pages = 128, .spare = 0.1});
  ftl.discard(64, 64);
  ftl.write(0, 32);
  const FlashWork close = ftl.write(128, 1);
  EXPECT_EQ(close.copied, 32U) << "32 to 63; the others hold nothing";
  for (std::uint64_t page = 127; page >= 64; --page) EXPECT_EQ(ftl.write(page, 1).programmed, 1U);
  FlashWork again;
  for (std::uint64_t page = 127; page >= 64; --page) again += ftl.write(page, 1);
  EXPECT_EQ(again.programmed, 64U);
  EXPECT_EQ(again.copied, 0U) << "these are in a log block";
}

// Blocks that have lost pages when the third block is begun, as valid pages and age·(1 − u)/2u: 24 and 74, 40 and 20, 20 and 1.1 (it is
// losing them still). Two are emptied, since the first takes a free block for its copies.
TEST(PageMapped, CostBenefitTakesOlderBlocksThatAreFuller) {
  for (const auto& [policy, copied] : {std::pair{VictimPolicy::greedy, 20U + 24}, std::pair{VictimPolicy::cost_benefit, 24U + 40}}) {
    PageFtl ftl(8u * 64, {.block_pages = 64, .spare = 0.5, .policy = policy});
    FlashWork sum = ftl.write(0, 40);
    for (int i = 0; i < 45; ++i) sum += ftl.write(511, 1);
    sum += ftl.write(64, 43);
    ASSERT_EQ(sum.erases, 0U);
    sum += ftl.write(64 + 43, 1);
    EXPECT_EQ(sum.erases, 2U);
    EXPECT_EQ(sum.copied, copied);
  }
}

TEST(LogBlocks, EachStandsBesideOneDataBlock) {
  BastFtl ftl(kPages, {.block_pages = 128, .log_blocks = 4});
  FlashWork sum;
  for (std::uint64_t i = 0; i < 4u * 127; ++i) sum += ftl.write(i % 4 * 128 + 1, 1);  // the same page of four blocks
  EXPECT_EQ(sum.programmed, 4U * 127);
  EXPECT_EQ(sum.erases, 0U);
  const FlashWork fifth = ftl.write(4 * 128 + 1, 1);  // the log block that was used longest ago is merged: all 128 pages
  EXPECT_EQ(fifth.copied, 128U);
  EXPECT_EQ(fifth.erases, 2U);
}

TEST(LogBlocks, ABlockInARowTakesThePlaceOfTheOldOne) {
  BastFtl ftl(kPages, {.block_pages = 128, .log_blocks = 1});
  const FlashWork whole = ftl.write(0, 128);
  EXPECT_EQ(whole.copied, 0U);
  EXPECT_EQ(whole.erases, 1U);
  ftl.write(128, 100);
  const FlashWork partial = ftl.write(512, 1);
  EXPECT_EQ(partial.copied, 28U) << "the rest of the block before";
  EXPECT_EQ(partial.erases, 1U);
}

TEST(PageMapped, AFlushFillsUpWhatIsProgrammedAtOnce) {
  PageFtl ftl(kPages, {.block_pages = 64, .program_pages = 4, .map_pages = 4});
  ftl.flush();
  ftl.write(0, 5);
  EXPECT_EQ(ftl.flush().programmed, 3U + 4);
  EXPECT_EQ(ftl.flush().programmed, 0U) << "nothing was written since";
}

std::unique_ptr<SlcCache> cache_before_units(std::uint64_t pages) {
  auto behind = std::make_unique<BlockFtl>(kPages, BlockMapping{.unit_pages = 1024, .open_units = 1, .program_pages = 1});
  return std::make_unique<SlcCache>(std::move(behind), SlcCaching{.pages = pages, .unit_pages = 1024});
}

TEST(CachedFlash, TakesAllUntilItIsFull) {
  const auto ftl = cache_before_units(2048);
  FlashWork sum;
  for (std::uint64_t i = 0; i < 2048; ++i) sum += ftl->write(i % 2 * 4096 + i % 7, 1);
  EXPECT_EQ(sum.cached, 2048U);
  EXPECT_EQ(sum.programmed, 2048U);
  // Unit 0 is folded: seven pages of it, and behind the cache the rest of the unit, once another one is opened.
  const FlashWork first = ftl->write(8192, 1);
  EXPECT_EQ(first.cached, 1U);
  EXPECT_EQ(first.copied, 7U);
  EXPECT_EQ(first.programmed, 1U + 7);
  EXPECT_EQ(ftl->tidy().copied, 1017U + 7) << "unit 4, and what closes unit 0";
}

TEST(CachedFlash, FoldsNothingThatWasDiscarded) {
  const auto ftl = cache_before_units(2048);
  ftl->write(0, 100);
  ftl->discard(0, 1024);
  const FlashWork work = ftl->tidy();
  EXPECT_EQ(work.programmed, 0U);
  EXPECT_EQ(work.erases, 1U);
  EXPECT_EQ(ftl->tidy().erases, 0U) << "there is nothing left to do";
}

TEST(CachedFlash, FoldsWhileNothingIsAskedFor) {
  const FlashTiming timing{.read_rate = 100e6, .program_rate = 10e6, .cache_rate = 40e6, .copy_rate = 10e6, .tidy_after = 1};
  FlashDevice device({}, timing, cache_before_units(2048));
  constexpr std::uint64_t kLength = 4u << 20, kSecond = 1'000'000'000;
  EXPECT_NEAR(static_cast<double>(device.serve({Op::write, 0, kLength}, 0)), kLength / 40e6 * 1e9, 1e4);
  device.leave_alone(device.free_at_ns() + kSecond / 2);
  EXPECT_EQ(device.work().background_ns, 0U) << "it waits a second";
  device.leave_alone(device.free_at_ns() + 3 * kSecond);
  EXPECT_NEAR(static_cast<double>(device.work().background_ns), kLength / 10e6 * 1e9, 1e4);
  EXPECT_EQ(device.work().programmed, 2 * kLength);
}

FlashDevice queued(unsigned at_once) {
  const FlashTiming timing{.read_request = 100e-6, .write_request = 50e-6, .read_rate = 400e6, .program_rate = 100e6, .copy_rate = 100e6,
                           .at_once = at_once};
  return FlashDevice({}, timing, std::make_unique<PageFtl>(kPages, PageMapping{}));
}

TEST(AFlashDeviceWithAQueue, ServesRequestsBesideEachOther) {
  for (const unsigned at_once : {1U, 4U}) {
    FlashDevice device = queued(at_once);
    for (std::uint64_t i = 0; i < 8; ++i) device.serve({Op::read, i << 20, 40'960}, 0);  // 100 us beside each other, 102.4 us one by one
    const double expected = at_once == 1 ? 8 * 202.4e3 : 100e3 + 8 * 102.4e3;
    EXPECT_NEAR(static_cast<double>(device.free_at_ns()), expected, 10);
    EXPECT_NEAR(static_cast<double>(device.work().busy_ns()), expected, 10) << "time is counted once";
  }
}

TEST(AFlashDeviceWithAQueue, AFlushWaitsForAllBeforeIt) {
  FlashDevice device = queued(4);
  device.serve({Op::write, 0, 1'000'000 / 4096 * 4096}, 0);
  device.serve({Op::flush}, 0);
  EXPECT_GE(device.done_at_ns(), 10'000'000U);
}

TEST(AFlashDevice, TakesTheEnergyOfWhatItProgramsErasesAndReads) {
  const FlashTiming timing{.read_rate = 100e6, .program_rate = 50e6, .copy_rate = 25e6, .erase = 2e-3, .read_watts = 0.5,
                           .program_watts = 2};
  const BlockMapping mapping{.unit_pages = 1024, .open_units = 1, .program_pages = 1};
  FlashDevice device({}, timing, std::make_unique<BlockFtl>(kPages, mapping));
  constexpr std::uint64_t kLength = 1u << 20;
  device.serve({Op::read, 0, kLength}, 0);
  EXPECT_NEAR(device.work().joules(), 0.5 * kLength / 100e6, 1e-9);
  device.forget_work();
  device.serve({Op::write, 0, kLength}, device.free_at_ns());
  EXPECT_NEAR(device.work().joules(), 2 * (kLength / 50e6), 1e-9);
  device.forget_work();
  device.serve({Op::write, 64 * kLength, 4096}, device.free_at_ns());  // the rest of the first unit is copied, and one is erased
  EXPECT_EQ(device.work().copied, 3 * kLength);
  EXPECT_NEAR(device.work().joules(), 2 * (4096 / 50e6 + 3 * kLength / 25e6 + 2e-3), 1e-9);
}

// A block that is written in a row again and again: its erases go round over it and the spare ones.
TEST(Hybrid, ErasesAreCountedByBlock) {
  FastFtl ftl(kPages, {.block_pages = 128, .spare = 0.1});
  EXPECT_EQ(ftl.most_erases_of_a_block(), 0U);
  constexpr std::uint64_t kSpare = 26, kTurns = 10;  // 256 blocks, a tenth of them spare
  std::uint64_t erases = 0;
  for (std::uint64_t i = 0; i < kTurns * (kSpare + 1); ++i) erases += ftl.write(0, 128).erases;
  EXPECT_EQ(erases, kTurns * (kSpare + 1));
  EXPECT_EQ(ftl.most_erases_of_a_block(), kTurns);
}

// The block written in a row, each log block and the one to merge into come from the spare ones, and all go back there.
TEST(Hybrid, SpareBlocksSuffice) {
  FastFtl ftl(4096, {.block_pages = 128, .spare = 0.1});
  SeededRandom random(5);
  std::uint64_t erases = 0, most = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t length = 1 + random.next() % 200, first = random.next() % (4096 - length);
    erases += ftl.write(random.next() % 4 == 0 ? first / 128 * 128 : first, length).erases;
    EXPECT_GE(ftl.most_erases_of_a_block(), most);
    most = ftl.most_erases_of_a_block();
  }
  EXPECT_LE(most, erases);
  EXPECT_GE(most, erases / (4096 / 128 + 4));
}

TEST(Catalogue, EveryDeviceServesEveryRequest) {
  for (const CatalogueEntry& entry : catalogue()) {
    const auto model = entry.make(256u << 20);
    std::uint64_t now = 0;
    for (const Op op : {Op::write, Op::flush, Op::read, Op::discard})
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{123} << 20, (std::uint64_t{256} << 20) - 4096})
        now += model->serve({op, offset, 4096}, now);
    EXPECT_EQ(model->work()[Op::write].bytes, 3U * 4096) << entry.name;
    EXPECT_GT(model->work().busy_ns(), 0U) << entry.name;
    EXPECT_GE(model->work().programmed, 3U * 4096) << entry.name;
  }
  EXPECT_EQ(make_model("none", 1u << 25), nullptr);
}

// What the classes promise.
TEST(Catalogue, ApplicationCardsKeepTheirClass) {
  const auto writes_a_second = [](std::string_view name) {
    const auto model = make_model(name, 1u << 30);
    SeededRandom random(3);
    std::uint64_t ns = 0;
    for (int i = 0; i < 500; ++i) ns += model->serve({Op::write, random.next() % (1u << 18) << 12, 4096}, ns);
    return 500 / (static_cast<double>(ns) * 1e-9);
  };
  EXPECT_NEAR(writes_a_second("sd-a1"), 500, 150);
  EXPECT_NEAR(writes_a_second("sd-a2"), 2000, 900);
}

}  // namespace
}  // namespace varve::bench

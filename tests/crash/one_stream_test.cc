// All payload in the chain, as on a stick with one open unit: chunks without records carry what is too long for one segment.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "image_tools.h"
#include "support/good.h"
#include "sweep.h"

namespace varve::test {
namespace {

constexpr std::uint32_t kOfSegment = 64;  // of a segment
constexpr const char* kOneFile = "create /file 0644";

CrashSetup with_one_stream() {
  CrashSetup setup;
  setup.segment_blocks = kOfSegment;
  setup.streams = 1;
  return setup;
}

// Writes that are shorter and longer than what is left of a segment, sealed and synced, and one that is replaced.
std::string long_writes() {
  std::string steps;
  for (const unsigned blocks : {3U, 150U, 63U, 33U, 64U}) steps += fmt::format("write /file 8192 {} {}; seal; ", blocks * 4096, blocks);
  return steps + "fsync /file; write /file 0 450000 7; fsync /file; write /file 50000 20000 8; seal";
}

TEST(Hazards, a_log_that_carries_all_payload_is_replayed_up_to_any_cut) {
  CrashSetup setup = with_one_stream();
  for (const std::uint64_t order : {0, 7}) {
    setup.completion_seed = order;
    EXPECT_TRUE(good(sweep_all(setup, kOneFile, long_writes(), exhaustive())));
    const std::string beside = "write /file 0 500000 3; checkpoint; write /file 4096 400000 4; fsync /file";
    EXPECT_TRUE(good(sweep_all(setup, kOneFile, beside, exhaustive())));
  }
}

// A seal is there as a whole or not at all, however many chunks it takes. Each but the last has no records.
TEST(Hazards, what_carries_payload_has_no_records_and_fills_its_segment) {
  const CrashSetup setup = with_one_stream();
  Recording recording(setup, prepare(setup, script(kOneFile)), script("write /file 0 1200000 5; fsync /file"));
  ASSERT_TRUE(good(recording.failed()));
  const auto image = recording.device().image_now();
  unsigned carriers = 0;
  for (const FoundChunk& chunk : chain_of(*image)) {
    if (chunk.header.record_bytes != 0 || chunk.header.payload_blocks == 0) continue;
    ++carriers;
    EXPECT_EQ(chunk.header.run.blocks, chunk.header.payload_blocks + 1);
  }
  EXPECT_GE(carriers, 1200000U / 4096 / kOfSegment);
}

}  // namespace
}  // namespace varve::test

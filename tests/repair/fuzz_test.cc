// Damage by chance: whatever happens to the metadata, a repair ends with a filesystem that can be mounted. The checker has nothing to
// say about it, and everything in it is as it was or said to be lost.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "check/checking.h"
#include "fsck/recovery.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "support/settings.h"

namespace varve::repair::test {
namespace {

using varve::test::first_seed;
using varve::test::number_setting;

void spoil(io::MemDevice& device, BlockAddr address, Random& random) {
  std::array<std::byte, kBlockSize> block;
  device.peek(address.v * kBlockSize, block);
  switch (random.next() % 4) {
    case 0: block[random.next() % kBlockSize] ^= static_cast<std::byte>(1U << random.next() % 8); break;
    case 1: block.fill(std::byte{0}); break;
    case 2:
      for (std::size_t i = random.next() % 8 * 512, n = 0; n < 512; ++i, ++n) block[i] = static_cast<std::byte>(random.next());
      break;
    default: {  // what stands elsewhere
      device.peek(random.next() % device.geometry().blocks() * kBlockSize, block);
    }
  }
  device.poke(address.v * kBlockSize, block);
}

std::string damage_and_repair(std::uint64_t seed, const io::MemDevice& image, const std::vector<BlockAddr>& metadata,
                              const Seen& expected) {
  SeededRandom random(seed);
  const auto device = image.snapshot();
  bool log_hit = false;
  for (std::uint64_t n = 1 + random.next() % 6; n > 0; --n) {
    // Superblocks are few, and worth more than their share.
    const std::uint64_t last = device->geometry().blocks() - 1;
    const bool super = random.next() % 12 == 0;
    const BlockAddr block = super ? BlockAddr{random.next() % 2 * last} : metadata[random.next() % metadata.size()];
    log_hit |= is_chunk(image, block);
    spoil(*device, block, random);
  }
  const auto done = repair(*device, fsck::recover, {.search = true});
  if (!done.ok()) return "repair: " + done.error().message();
  std::string actions;
  for (const Action& action : done->actions.kept()) actions += to_line(action) + "\n";
  const auto report = check::check(*device, {});
  if (!report.ok()) return "check: " + report.error().message() + "\n" + actions;
  if (report->errors() + report->warnings() > 0) return "left:\n" + check::test::lines(*report) + actions;
  const Seen found = look_at(*device);
  std::string wrong = log_hit ? found.error : unexcused(expected, found, done->actions);
  const bool may_be_cut = log_hit || done->actions.count(ActionCode::superblock_found) > 0;
  if (!may_be_cut && done->actions.count(ActionCode::log_cut) > 0) wrong += "nothing is wrong with the log";
  return wrong.empty() ? "" : wrong + "\nbefore:\n" + check::test::lines(done->before) + actions;
}

void fuzz(bool unclean) {
  const auto image = populated_image(unclean);
  const auto metadata = metadata_blocks(*image);
  const Seen expected = look_at(*image->snapshot());
  ASSERT_EQ(expected.error, "");
  ASSERT_GT(metadata.size(), 30U);
  const std::uint64_t count = number_setting("VARVE_FUZZ_SEEDS", 300);
  unsigned failures = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count && failures < 5; ++seed) {
    const std::string failure = damage_and_repair(seed, *image, metadata, expected);
    if (failure.empty()) continue;
    ++failures;
    ADD_FAILURE() << "seed " << seed << (unclean ? " (unclean)" : "") << ": " << failure
                  << "\nrepeat with VARVE_SEED=" << seed << " VARVE_FUZZ_SEEDS=1";
  }
}

TEST(RepairFuzz, CleanImages) { fuzz(false); }
TEST(RepairFuzz, UncleanImages) { fuzz(true); }

// Wild bytes behind valid checksums: nothing that a reader may trust, but what a bug or malice could write.
std::string craft_and_repair(std::uint64_t seed, const ImageBuilder& builder, const io::MemDevice& image) {
  SeededRandom random(seed);
  const auto device = image.snapshot();
  for (std::uint64_t n = 1 + random.next() % 3; n > 0; --n) {
    const auto& node = builder.nodes()[random.next() % builder.nodes().size()];
    change_node(*device, builder, node.address, [&](std::span<std::byte> bytes) {
      const std::size_t from = random.next() % 4 == 0 ? 8 : format::kNodeHeaderBytes;
      const std::size_t used = std::size_t{std::to_integer<std::uint8_t>(bytes[34])} | std::to_integer<std::size_t>(bytes[35]) << 8;
      for (std::uint64_t i = 1 + random.next() % 6; i > 0; --i)
        bytes[from + random.next() % std::max<std::size_t>(used, 64)] = static_cast<std::byte>(random.next());
    });
  }
  const auto done = repair(*device, fsck::recover, {.search = true});
  if (!done.ok()) return "repair: " + done.error().message();
  std::string text;
  if (done->errors_left() > 0) text = "left:\n" + check::test::lines(done->after);
  else text = look_at(*device).error;
  if (text.empty()) return "";
  text += "\nbefore:\n" + check::test::lines(done->before);
  for (const Action& action : done->actions.kept()) text += to_line(action) + "\n";
  return text;
}

TEST(RepairFuzz, CraftedNodes) {
  ImageBuilder builder;
  check::test::fill(builder);
  const auto image = builder.build();
  const std::uint64_t count = number_setting("VARVE_FUZZ_SEEDS", 300);
  unsigned failures = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + count && failures < 5; ++seed) {
    const std::string failure = craft_and_repair(seed, builder, *image);
    failures += !failure.empty();
    EXPECT_EQ(failure, "") << "seed " << seed;
  }
}

// Every single block of the metadata, lost.
TEST(RepairFuzz, EachBlockLost) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_image(unclean);
    const Seen expected = look_at(*image->snapshot());
    for (const BlockAddr block : metadata_blocks(*image)) {
      const auto device = image->snapshot();
      device->poke(block.v * kBlockSize, std::array<std::byte, kBlockSize>{});
      const auto done = repair(*device, fsck::recover, {.search = true});
      ASSERT_TRUE(done.ok()) << "block " << block.v << ": " << done.error().message();
      EXPECT_EQ(done->errors_left(), 0U) << "block " << block.v << "\n" << check::test::lines(done->after);
      const Seen found = look_at(*device);
      EXPECT_EQ(is_chunk(*image, block) ? found.error : unexcused(expected, found, done->actions), "")
          << "block " << block.v << "\n" << check::test::lines(done->before);
      EXPECT_TRUE(is_chunk(*image, block) || done->actions.count(ActionCode::log_cut) == 0) << "block " << block.v;
    }
  }
}

}  // namespace
}  // namespace varve::repair::test

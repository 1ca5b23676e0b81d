// The scenarios of the design review in which the medium itself is damaged: what is told from a crash, and what it may
// cost.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "format/record.h"
#include "image_tools.h"
#include "io/overlay_device.h"
#include "mounts.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/comparer.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/world.h"
#include "sweep.h"
#include "unclean.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kSmallDevice = 8u << 20;

TEST(Hazards, H8_a_rotten_block_below_the_watermark_is_an_error_of_that_block) {
  Unclean crash(kSyncedSteps);
  const auto places = find_block(*crash.image, pattern_bytes(1, 0, kBlockSize));
  ASSERT_EQ(places.size(), 1U);
  flip_bit(*crash.image, places[0], 12345);
  Mounted mounted(*crash.image);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  const Ino a = *mounted.fixture.resolve("/a");
  auto bad = mounted.fixture.read(a, 0, kBlockSize);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().to_errno(), EIO);
  EXPECT_EQ(*mounted.fixture.read(a, kBlockSize, kBlockSize), pattern_bytes(4, kBlockSize, kBlockSize));
  for (const char* path : {"/b", "/c", "/d"}) EXPECT_TRUE(mounted.fixture.resolve(path).ok()) << path;
  EXPECT_EQ(*mounted.fixture.read(*mounted.fixture.resolve("/c"), 0, kBlockSize), pattern_bytes(3, 0, kBlockSize));
}

TEST(Hazards, H9_a_damaged_chunk_is_told_from_a_crash) {
  Unclean crash(kSyncedSteps);
  const auto chain = chain_of(*crash.image);
  ASSERT_GE(chain.size(), 4U);
  for (std::size_t i = 0; i + 2 < chain.size(); ++i) {
    const auto image = crash.image->snapshot();
    flip_bit(*image, chain[i].header.address, (format::kChunkHeaderBytes + 3) * 8);
    Mounted mounted(*image);
    ASSERT_FALSE(mounted.status.ok()) << "chunk " << i << " of " << chain.size() << " is gone without a word";
    EXPECT_TRUE(mounted.status.error().is(Errc::needs_fsck)) << mounted.status.error().message();
    EXPECT_NE(mounted.status.error().message().find("fsck"), std::string::npos);
    EXPECT_NE(mounted.status.error().message().find("-o ro,norecovery"), std::string::npos) << "the way that is left";
    Mounted looking(*image, [](fs::Options& options) { options.read_only = options.no_recovery = true; });
    EXPECT_TRUE(looking.status.ok());
  }
}

// Chunks for which nobody waits prove nothing, and there may be segments full of them before the one that does.
TEST(Hazards, H9_a_damaged_chunk_is_told_from_a_crash_long_before_the_one_that_proves_it) {
  std::string steps;
  for (int i = 0; i < 400; ++i) steps += fmt::format("create /file-{} 0644; seal; ", i);
  World world(WorldParameters{.bytes = 32u << 20, .image = {.segment_blocks = 64}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script(steps + "sync; create /last 0644; sync"))));
  world.fixture.crash();
  const auto chain = chain_of(world.device);
  ASSERT_GE(chain.size(), 400U);
  ASSERT_GT(chain.back().header.address.v / 64, chain.front().header.address.v / 64 + 3) << "some segments further on";
  for (std::size_t i = 0; i + 2 < chain.size(); i += 13) {
    const auto image = world.device.snapshot();
    flip_bit(*image, chain[i].header.address, (format::kChunkHeaderBytes + 3) * 8);
    EXPECT_TRUE(Mounted(*image).status.fails_with(Errc::needs_fsck)) << "chunk " << i << " is gone without a word";
    FaultDevice faulty(world.device);
    faulty.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = chain[i].header.address.v});
    EXPECT_TRUE(Mounted(faulty).status.fails_with(Errc::io)) << "chunk " << i;
  }
}

// It may be readable another day: nobody shall be told to have it cut off.
TEST(Hazards, H9_a_chunk_that_cannot_be_read_is_told_from_a_damaged_one) {
  Unclean crash(kSyncedSteps);
  const auto chain = chain_of(*crash.image);
  ASSERT_GE(chain.size(), 4U);
  for (std::size_t i = 0; i + 2 < chain.size(); ++i) {
    FaultDevice faulty(*crash.image);
    faulty.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = chain[i].header.address.v});
    {
      Mounted mounted(faulty);
      ASSERT_TRUE(mounted.status.fails_with(Errc::io)) << "chunk " << i;
      EXPECT_NE(mounted.status.error().message().find("-o ro,norecovery"), std::string::npos) << "the way that is left";
    }
    faulty.heal();
    io::OverlayDevice overlay(faulty);
    Mounted later(overlay);
    ASSERT_TRUE(later.status.ok()) << later.status.error().message();
    EXPECT_TRUE(good(compare(later.fixture, crash.last())));
  }
}

// Bytes of the last chunk that are not those that were written, and would make a valid name.
TEST(Hazards, H10_a_changed_byte_ends_the_log) {
  Unclean crash(std::string(kSyncedSteps) + "; create /tail 0644; seal");
  const auto chain = chain_of(*crash.image);
  ASSERT_FALSE(chain.empty());
  auto bytes = block_at(*crash.image, chain.back().header.address);
  const std::string_view name = "tail";
  const auto at = std::search(bytes.begin(), bytes.end(), name.begin(), name.end(),
                              [](std::byte b, char c) { return b == static_cast<std::byte>(c); });
  ASSERT_NE(at, bytes.end());
  *at = static_cast<std::byte>('m');
  crash.image->poke(chain.back().header.address.v * kBlockSize, bytes);
  Mounted mounted(*crash.image);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  for (const char* path : {"/tail", "/mail"}) EXPECT_FALSE(mounted.fixture.resolve(path).ok()) << path;
  EXPECT_TRUE(mounted.fixture.resolve("/d").ok()) << "what was synced is there";
}

// Half-written sectors read as errors on real drives: the end of the log, not the end of the mount.
TEST(Hazards, H11_an_unreadable_tail_ends_the_log) {
  Unclean crash(std::string(kSyncedSteps) + "; create /e 0644; write /e 0 4096 5; seal");
  const auto chain = chain_of(*crash.image);
  ASSERT_FALSE(chain.empty());
  FaultDevice faulty(*crash.image);
  Fault fault;
  fault.kind = io::IoKind::read;
  fault.times = Fault::kForEver;
  fault.touches_block = chain.back().header.address.v;
  faulty.add(fault);
  Mounted mounted(faulty);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  std::size_t state = 0;
  const Cut last{crash.recording.device().position(), CutPolicy::prefix, 0};
  EXPECT_TRUE(good(crash.recording.find(snapshot_of(mounted.fixture), crash.recording.allowed(last), state)));
  EXPECT_FALSE(mounted.fixture.resolve("/e").ok());
}

// The window that reaches up to the block fails, then the piece with it, then the block three times: what had been synced is there
// all the same.
TEST(Hazards, H11_a_tail_that_is_read_at_last_counts) {
  Unclean crash(kSyncedSteps);
  const auto chain = chain_of(*crash.image);
  ASSERT_FALSE(chain.empty());
  FaultDevice faulty(*crash.image);
  faulty.add({.kind = io::IoKind::read, .times = 5, .touches_block = chain.back().header.address.v});
  Mounted mounted(faulty);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  EXPECT_EQ(faulty.hits(), 5U);
  EXPECT_TRUE(good(compare(mounted.fixture, crash.last())));
}

// Everything in the chunk is right, but the epoch cannot be guessed.
TEST(Hazards, H18_a_forged_chunk_is_not_replayed) {
  Unclean crash(kSyncedSteps);
  const auto chain = chain_of(*crash.image);
  ASSERT_FALSE(chain.empty());
  const format::ChunkHeader& last = chain.back().header;
  for (const bool right_epoch : {false, true}) {
    const auto image = crash.image->snapshot();
    format::ChunkHeader forged = last;
    forged.epoch = right_epoch ? last.epoch : last.epoch ^ 1;
    forged.lsn = last.lsn + 1;
    forged.previous_crc = right_epoch ? chain.back().crc ^ 1 : chain.back().crc;
    forged.address = last.end();
    forged.payload_blocks = 0;
    format::Attributes root;
    root.mode = 040777;
    root.nlink = 2;
    root.parent = kRootIno;
    format::Bytes records;
    format::encode_record(format::SetAttributes{kRootIno, root}, records);
    forged.record_bytes = static_cast<std::uint32_t>(records.size());
    forged.header_blocks = format::chunk_header_blocks(records.size());
    std::vector<std::byte> bytes(forged.header_blocks * kBlockSize);
    format::encode_chunk(forged, records, bytes);
    image->poke(forged.address.v * kBlockSize, bytes);
    Mounted mounted(*image);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(good(compare(mounted.fixture, crash.last())));
  }
}

// A block rots, and its segment is cleaned over and over: its content must never become "valid".
TEST(Hazards, H35_cleaning_does_not_launder_rotten_blocks) {
  WorldParameters parameters;
  parameters.bytes = kSmallDevice;
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /rotten 0644; create /f 0644; create /g 0644"))));
  // The victim among blocks that will die, so that its segment is worth cleaning.
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(good(run_script(world.steps, script(fmt::format("write /f {} 4096 {}", i * 4096, 10 + i)))));
    if (i == 20) {
      ASSERT_TRUE(good(run_script(world.steps, script("write /rotten 0 4096 1"))));
    }
  }
  ASSERT_TRUE(good(run_script(world.steps, script("remount"))));
  const auto places = find_block(world.device, pattern_bytes(1, 0, kBlockSize));
  ASSERT_EQ(places.size(), 1U);
  flip_bit(world.device, places[0], 777);
  for (int i = 0; i < 600; ++i) {
    ASSERT_TRUE(good(run_script(world.steps, script(fmt::format("write /{} {} 65536 {}; work", i % 3 ? "f" : "g",
                                                         i * 7 % 40 * 32768, 100 + i)))));
  }
  auto read = world.fixture.read(*world.fixture.resolve("/rotten"), 0, kBlockSize);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().to_errno(), EIO);
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_NE(check_image(world.device).find("408"), std::string::npos) << "the checker must find the damaged block";
}

TEST(Hazards, H42_a_lost_inode_is_not_taken_for_its_successor) {
  Unclean crash("create /lost 0644; seal");
  const ModelInode& lost = crash.last().inode(*crash.last().resolve("/lost"));
  const Cut before{0, CutPolicy::lost, 0};
  const auto image = crash.recording.device().image(before);
  Mounted mounted(*image);
  ASSERT_TRUE(mounted.status.ok());
  ASSERT_FALSE(mounted.fixture.resolve("/lost").ok());
  auto next = mounted.fixture.make("/next", 0100644);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(std::pair(lost.ino.v, lost.generation), std::pair(next->ino.v, next->generation));
}

TEST(Hazards, H43_cookies_survive_a_crash) {
  std::string steps;
  for (int i = 0; i < 300; ++i) steps += fmt::format("create /d/name-{} 0644; ", i);
  for (int i = 0; i < 300; i += 3) steps += fmt::format("unlink /d/name-{}; ", i);
  for (int i = 1; i < 300; i += 6) steps += fmt::format("rename /d/name-{} /d/again-{} move; ", i, i);
  const DurableState start = prepare({}, script("mkdir /d 0755"));
  ManualClock clock;
  SeededRandom random(5);
  CrashDevice device(*start.image);
  std::vector<ListedEntry> before;
  {
    FsFixture fixture(device, test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    Lockstep lockstep(fixture, clock);
    lockstep.model = start.model;
    steps += "checkpoint; create /d/last 0644; unlink /d/name-5; fsync /d";
    ASSERT_TRUE(good(run_script(lockstep, script(steps))));
    before = *fixture.list(*fixture.resolve("/d"));
  }
  const auto image = device.image_now();
  Mounted mounted(*image);
  ASSERT_TRUE(mounted.status.ok());
  EXPECT_EQ(*mounted.fixture.list(*mounted.fixture.resolve("/d")), before);
}

// A replay reads no tree: what an entry led to before, in the trees or in another chunk, must not come back.
TEST(Hazards, H43_a_name_that_is_given_to_another_file_keeps_its_cookie) {
  std::string names = "mkdir /d 0755; ", steps;
  for (int i = 0; i < 40; ++i) names += fmt::format("create /d/{:02} 0644; ", i);
  const DurableState start = prepare({}, script(names));
  const auto replace = [&](int i) { steps += fmt::format("create /new 0644; rename /new /d/{:02} move; ", i); };
  for (int i = 0; i < 20; ++i) replace(i);
  for (int i = 30; i < 35; ++i) steps += fmt::format("rename /d/{:02} /d/{:02} exchange; ", i, i + 5);
  steps += "seal; ";
  for (int i = 0; i < 5; ++i) steps += fmt::format("unlink /d/{:02}; ", i);
  for (int i = 5; i < 10; ++i) replace(i);
  replace(20);
  steps += "unlink /d/20; fsync /d";
  ManualClock clock;
  SeededRandom random(5);
  CrashDevice device(*start.image);
  FsFixture fixture(device, test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  Lockstep lockstep(fixture, clock);
  lockstep.model = start.model;
  ASSERT_TRUE(good(run_script(lockstep, script(steps))));
  const std::vector<ListedEntry> before = *fixture.list(*fixture.resolve("/d"));
  ASSERT_EQ(before.size(), 2U + 34);
  for (std::size_t i = 2; i < before.size(); ++i) EXPECT_EQ(before[i].cookie, 3 + std::stoul(before[i].name)) << before[i].name;
  const auto image = device.image_now();
  for (const bool read_only : {true, false}) {
    Mounted mounted(*image, [&](fs::Options& options) { options.read_only = read_only; });
    ASSERT_TRUE(mounted.status.ok());
    EXPECT_EQ(*mounted.fixture.list(*mounted.fixture.resolve("/d")), before);
    EXPECT_TRUE(good(difference(snapshot_of(lockstep.model), snapshot_of(mounted.fixture))));
    EXPECT_TRUE(mounted.fixture.unmount().ok());
  }
  EXPECT_EQ(check_image(*image), "");
}

TEST(Hazards, H44_a_read_only_mount_replays_in_memory_and_writes_nothing) {
  Unclean crash(kSyncedSteps);
  CrashDevice device(*crash.image);
  {
    Mounted mounted(device, [](fs::Options& options) { options.read_only = true; });
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(good(difference(snapshot_of(crash.last()), snapshot_of(mounted.fixture))));
    EXPECT_TRUE(mounted.fixture.make("/x", 0100644).fails_with(Errc::read_only));
    EXPECT_EQ(mounted.fixture.getattr(*mounted.fixture.resolve("/a"))->blocks, 2U) << "no checkpoint has counted them";
    EXPECT_TRUE(mounted.fixture.unmount().ok());
  }
  EXPECT_EQ(device.position(), 0U) << "something was written";
  {
    Mounted mounted(device, [](fs::Options& options) { options.read_only = options.no_recovery = true; });
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(good(difference(snapshot_of(crash.recording.states()[0].model), snapshot_of(mounted.fixture))));
  }
  EXPECT_EQ(device.position(), 0U);
  // Without the log and writable: its first checkpoint would be the end of what is in the log.
  Mounted forgetful(device, [](fs::Options& options) { options.no_recovery = true; });
  ASSERT_TRUE(forgetful.status.fails_with(Errc::invalid)) << "what was synced is lost";
  EXPECT_NE(forgetful.status.error().message().find("needs ro"), std::string::npos);
  EXPECT_EQ(device.position(), 0U);
  Mounted writable(device);
  ASSERT_TRUE(writable.status.ok());
  EXPECT_TRUE(good(compare(writable.fixture, crash.last())));
}

// How fsck looks at an unclean image: recovered in memory, proved by the checker, unchanged below.
TEST(Hazards, H45_recovery_onto_an_overlay_leaves_the_image_alone) {
  Unclean crash(kSyncedSteps);
  CrashDevice below(*crash.image);
  io::OverlayDevice overlay(below);
  {
    Mounted mounted(overlay);
    ASSERT_TRUE(mounted.status.ok());
    ASSERT_TRUE(mounted.fixture.unmount().ok());
  }
  EXPECT_TRUE(good(check_image(overlay)));
  EXPECT_EQ(below.position(), 0U);
}

// Any one block of the metadata or the log spoilt: a promised state, an error, or a refusal; never a wrong answer.
TEST(Damage, a_flipped_bit_anywhere_is_never_believed) {
  Unclean crash("write /a 0 30000 1; fsync /a; mkdir /d 0755; create /d/x 0644; setxattr /d/x user.k 50 2 set;"
                "checkpoint; write /b 0 9000 3; create /d/y 0644; fsync /b; rename /d/x /d/z move; fsync /d");
  const Snapshot expected = snapshot_of(crash.last());
  for (std::uint64_t block = 0; block < crash.image->geometry().blocks(); ++block) {
    const auto bytes = block_at(*crash.image, BlockAddr{block});
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; })) continue;
    const auto image = crash.image->snapshot();
    flip_bit(*image, BlockAddr{block}, block * 2477 % (kBlockSize * 8));
    Mounted mounted(*image);
    if (!mounted.status.ok()) continue;
    const Snapshot found = snapshot_of(mounted.fixture);
    if (!found.error.empty()) continue;
    std::size_t state = 0;
    const std::pair<std::size_t, std::size_t> any{0, crash.recording.states().size() - 1};
    EXPECT_TRUE(good(crash.recording.find(found, any, state))) << "block " << block;
  }
}

// Of a chunk that was written so: its checksum is right. A crash leaves none like it, so that nothing is cut off for it; a repair cuts
// there, and keeps what comes before.
TEST(Damage, records_that_are_not_understood_are_no_end_of_the_log) {
  Unclean crash(kSyncedSteps);
  const auto chain = chain_of(*crash.image);
  ASSERT_GE(chain.size(), 3U);
  const format::ChunkHeader& last = chain.back().header;
  std::vector<std::byte> blocks(last.header_blocks * kBlockSize);
  ASSERT_TRUE(crash.image->read(last.address.v << kBlockShift, blocks).ok());
  const auto read = format::decode_chunk(blocks);
  ASSERT_TRUE(read.ok());
  format::Bytes records(read->records.begin(), read->records.end());
  records.front() = std::byte{99};  // a kind that there is not
  format::encode_chunk(last, records, blocks);
  ASSERT_TRUE(crash.image->write(last.address.v << kBlockShift, blocks).ok());
  io::OverlayDevice overlay(*crash.image);
  Mounted strict(overlay);
  EXPECT_TRUE(strict.status.fails_with(Errc::needs_fsck)) << strict.status.error().message();
  Mounted tolerant(*crash.image, [](fs::Options& o) { o.accept_log_damage = true; });
  ASSERT_TRUE(tolerant.status.ok()) << tolerant.status.error().message();
  EXPECT_EQ(tolerant.fixture.store().counters().replayed_chunks, chain.size() - 1);
}

}  // namespace
}  // namespace varve::test

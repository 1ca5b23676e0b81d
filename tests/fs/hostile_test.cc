// Images that somebody has made to do harm: all checksums are right, and what they say is not.
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "check/image_builder.h"
#include "cleaner/file_layout.h"
#include "format/chunk.h"
#include "format/record.h"
#include "fs/engine.h"
#include "log/log.h"
#include "segments/log_clock.h"
#include "store/store.h"
#include "support/fs_fixture.h"

namespace varve::fs {
namespace {

using check::test::ImageBuilder;
using check::test::Items;
using format::ItemKind;
using test::FsFixture;

struct Mounted {
  explicit Mounted(ImageBuilder& builder, bool read_only = false) : Mounted(builder.build(), read_only) {}
  Mounted(std::unique_ptr<io::MemDevice> image, bool read_only) : device(std::move(image)), fixture(*device, options(read_only)) {
    status = fixture.mount();
  }

  Options options(bool read_only) {
    clock.set_elapsed(9'000'000'000'000);
    Options result = test::test_options(clock, random);
    result.read_only = read_only;
    return result;
  }
  Status checkpoint() {
    return fixture.checkpoint();
  }
  Status rename(std::string_view from, Ino to, std::string_view name) {
    return fixture.call([&](Operation& op) { return fixture.fs().rename(op, kRootIno, from, to, name, 0); });
  }

  std::unique_ptr<io::MemDevice> device;
  test::ManualClock clock;
  SeededRandom random{4711};
  FsFixture fixture;
  Status status;
};

// --- addresses --------------------------------------------------------------------------------------------------------

constexpr std::uint64_t kExtentBlocks = 8;

BlockAddr end_of_segments(const format::Superblock& super) { return super.first_segment + super.segments * super.segment_blocks; }

// Outside the segments with the first block, or only with the last.
std::vector<BlockAddr> places_outside(const format::Superblock& super) {
  const BlockAddr end = end_of_segments(super);
  return {BlockAddr{1}, BlockAddr{super.first_segment.v - 1}, BlockAddr{end.v - 1}, end, end + 100'000, BlockAddr{(1ULL << 48) - 100}};
}

struct Misplaced {
  explicit Misplaced(std::size_t which) {
    place = places_outside(builder.super())[which];
    builder.change_items = [this](Items& items) {
      format::Bytes& value = items.at({file, ItemKind::extent, 0});
      format::Extent extent = *format::decode_extent(value);
      extent.address = place;
      value.clear();
      format::encode_extent(extent, value);
    };
  }
  ImageBuilder builder{4096};
  Ino file = builder.add_file(kRootIno, "file", 3 * kExtentBlocks, kExtentBlocks);
  BlockAddr place;
};
constexpr std::size_t kPlaces = 6;

TEST(Hostile, an_extent_outside_the_segments_is_not_overwritten) {
  for (std::size_t which = 0; which < kPlaces; ++which) {
    Misplaced image(which);
    Mounted mounted(image.builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    // Aligned and whole: nothing is read, so no checksum tells, and nobody may have to look where it was.
    const std::vector<std::byte> block(kBlockSize);
    const Status written = mounted.fixture.write(image.file, (kExtentBlocks - 1) * kBlockSize, block);
    EXPECT_TRUE(written.ok() || written.fails_with(Errc::corrupt)) << image.place.v;
    EXPECT_TRUE(mounted.fixture.read(image.file, 0, kBlockSize).fails_with(Errc::corrupt)) << image.place.v;
    EXPECT_TRUE(mounted.fixture.write(image.file, kExtentBlocks * kBlockSize, block).ok()) << "the next extent is right";
    EXPECT_TRUE(!written.ok() || mounted.checkpoint().fails_with(Errc::corrupt)) << image.place.v;
    mounted.fixture.crash();
  }
}

TEST(Hostile, an_extent_outside_the_segments_is_not_moved) {
  for (std::size_t which = 0; which < kPlaces; ++which) {
    Misplaced image(which);
    Mounted mounted(image.builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    store::Store& store = mounted.fixture.store();
    EXPECT_TRUE(cleaner::read_layout(store, image.file, 0, 100).fails_with(Errc::corrupt)) << image.place.v;
    EXPECT_TRUE(cleaner::read_layout(store, image.file, kExtentBlocks, 100).ok()) << image.place.v;
  }
}

TEST(Hostile, an_extent_outside_the_segments_is_not_freed) {
  for (std::size_t which = 0; which < kPlaces; ++which) {
    Misplaced image(which);
    Mounted mounted(image.builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    ASSERT_TRUE(mounted.fixture.call([&](Operation& op) { return mounted.fixture.fs().unlink(op, kRootIno, "file"); }).ok());
    EXPECT_TRUE(mounted.checkpoint().fails_with(Errc::corrupt)) << image.place.v;
    mounted.fixture.crash();
  }
}

// --- the log ----------------------------------------------------------------------------------------------------------

struct Log {
  Log() : dir(builder.add_directory(kRootIno, "dir")) {
    builder.change_image = [](format::Superblock& s) { s.clean = false; };
    device = builder.build();
    next.identity = builder.super().identity;
    next.epoch = builder.super().epoch;
    next.lsn = builder.super().lsn;
    next.header_blocks = 1;
    next.clock = builder.super().clock;
    next.next_ino = builder.super().next_ino;
    next.run = builder.super().chain;
    next.next_run = builder.super().next_run;
    next.address = next.run.start;
  }
  // As `next` says, but for what follows from the chunk before it.
  void put(const format::Bytes& records = {}) {
    ++next.lsn;
    next.previous_crc = crc;
    next.record_bytes = static_cast<std::uint32_t>(records.size());
    next.durable = Lsn{next.lsn.v - 1};
    std::array<std::byte, kBlockSize> block;
    crc = format::encode_chunk(next, records, block);
    device->poke(next.address.v * kBlockSize, block);
  }

  ImageBuilder builder{4096};
  Ino dir;
  std::unique_ptr<io::MemDevice> device;
  format::ChunkHeader next;
  std::uint32_t crc = 0;
};

TEST(Hostile, a_chunk_outside_the_segments_is_no_part_of_the_log) {
  for (const bool read_only : {false, true}) {
    for (const format::Run run : {format::Run{BlockAddr{1}, 8}, format::Run{BlockAddr{end_of_segments(Log().builder.super()).v - 1}, 8}}) {
      Log log;
      log.next.next_run = run;
      log.put();
      log.next.run = run;
      log.next.address = run.start;
      log.next.next_run = {};
      log.next.payload_blocks = 1;
      log.put();
      Mounted mounted(std::move(log.device), read_only);
      EXPECT_TRUE(mounted.status.fails_with(Errc::corrupt)) << run.start.v;
    }
  }
}

// --- loops ------------------------------------------------------------------------------------------------------------

void change_attributes(Items& items, Ino ino, const std::function<void(format::Attributes&)>& change) {
  format::Bytes& value = items.at({ino, ItemKind::attributes, 0});
  format::Attributes attributes = *format::decode_attributes(value);
  change(attributes);
  value.clear();
  format::encode_attributes(attributes, value);
}

struct Cookies {
  explicit Cookies(std::uint64_t next) {
    builder.change_items = [this, next](Items& items) {
      change_attributes(items, dir, [&](format::Attributes& a) { a.next_cookie = next; });
    };
  }
  ImageBuilder builder{4096};
  Ino dir = builder.add_directory(kRootIno, "dir");
  Ino file = builder.add_file(kRootIno, "file", 1);
};

TEST(Hostile, a_directory_with_impossible_cookies_is_corrupt) {
  for (const std::uint64_t next : {format::kCookieLimit + 1, ~std::uint64_t{0}}) {
    Cookies image(next);
    Mounted mounted(image.builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(mounted.fixture.getattr(image.dir).fails_with(Errc::corrupt)) << next;
    EXPECT_TRUE(mounted.rename("file", image.dir, "x").fails_with(Errc::corrupt)) << next;
    EXPECT_TRUE(mounted.checkpoint().ok());
  }
}

TEST(Hostile, a_directory_that_is_out_of_cookies_takes_no_more_entries) {
  Cookies image(format::kCookieLimit - 2);
  Mounted mounted(image.builder);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  FsFixture& fixture = mounted.fixture;
  ASSERT_TRUE(fixture.make("/dir/last", S_IFREG | 0644).ok());
  ASSERT_TRUE(mounted.checkpoint().ok());
  EXPECT_TRUE(fixture.make("/dir/more", S_IFREG | 0644).fails_with(Errc::no_space));
  EXPECT_TRUE(fixture.call([&](Operation& op) { return fixture.fs().link(op, image.file, image.dir, "more"); }).fails_with(Errc::no_space));
  EXPECT_TRUE(mounted.rename("file", image.dir, "more").fails_with(Errc::no_space));
  EXPECT_TRUE(mounted.rename("file", image.dir, "last").fails_with(Errc::no_space)) << "it takes a cookie that a name leads elsewhere, too";
  auto out = [&](unsigned flags) {
    return fixture.call([&](Operation& op) { return fixture.fs().rename(op, image.dir, "last", kRootIno, "file", flags); });
  };
  EXPECT_TRUE(out(kRenameExchange).fails_with(Errc::no_space));
  EXPECT_TRUE(out(kRenameWhiteout).fails_with(Errc::no_space));
  EXPECT_TRUE(out(0).ok());
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(fixture.mount().ok());
  EXPECT_EQ(fixture.list(image.dir)->size(), 2U);
}

TEST(Hostile, no_rename_takes_more_cookies_than_there_are) {
  for (std::uint64_t left = 0; left <= 8; ++left) {
    for (const unsigned flags : {0U, unsigned{kRenameExchange}, unsigned{kRenameWhiteout}}) {
      Cookies image(format::kCookieLimit - left);
      for (const char* name : {"other", "one"}) image.builder.add_file(image.dir, name, 1);
      Mounted mounted(image.builder);
      ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
      FsFixture& fixture = mounted.fixture;
      static_cast<void>(fixture.call([&](Operation& op) { return fixture.fs().rename(op, image.dir, "one", image.dir, "other", flags); }));
      ASSERT_TRUE(mounted.checkpoint().ok());
      ASSERT_TRUE(fixture.unmount().ok());
      ASSERT_TRUE(fixture.mount().ok());
      EXPECT_TRUE(fixture.list(image.dir).ok()) << left << " left, flags " << flags;
      EXPECT_TRUE(fixture.call([&](Operation& op) { return fixture.fs().unlink(op, image.dir, "other"); }).ok());
    }
  }
}

// The highest key of all, which no limit is above.
TEST(Hostile, an_entry_with_the_highest_cookie_can_go) {
  constexpr std::uint64_t kHighest = ~std::uint64_t{0};
  ImageBuilder builder{4096};
  const Ino dir = builder.add_directory(kRootIno, "dir");
  builder.add_file(dir, "file", 1);
  builder.change_items = [&](Items& items) {
    auto entry = items.extract({dir, ItemKind::dirent, 3});
    entry.key() = {dir, ItemKind::dirent, kHighest};
    items.insert(std::move(entry));
    format::Bytes& cookies = items.at({dir, ItemKind::name_hash, format::name_hash("file", builder.super().hash_key)});
    cookies.clear();
    format::encode_cookies(std::array{kHighest}, cookies);
  };
  Mounted mounted(builder);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  const Ino other = mounted.fixture.make("/other", S_IFREG | 0644)->ino;
  ASSERT_TRUE(mounted.rename("other", dir, "file").ok());
  ASSERT_TRUE(mounted.checkpoint().ok());
  EXPECT_EQ(mounted.fixture.lookup(dir, "file")->ino, other);
  ASSERT_TRUE(mounted.fixture.call([&](Operation& op) { return mounted.fixture.fs().unlink(op, dir, "file"); }).ok());
  ASSERT_TRUE(mounted.checkpoint().ok());
  EXPECT_TRUE(mounted.fixture.lookup(dir, "file").fails_with(Errc::not_found));
}

TEST(Hostile, the_log_may_name_the_highest_cookie) {
  Log log;
  format::Bytes records;
  format::encode_record(format::SetDirent{log.dir, ~0ULL, {kRootIno, S_IFDIR >> 12, "x"}}, records);
  log.put(records);
  Mounted mounted(std::move(log.device), false);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  EXPECT_TRUE(mounted.fixture.lookup(log.dir, "x").ok());
}

// --- numbers of inodes --------------------------------------------------------------------------------------------------

TEST(Hostile, numbers_of_inodes_do_not_begin_anew) {
  ImageBuilder builder{4096};
  builder.change_image = [](format::Superblock& s) { s.next_ino = ~std::uint64_t{0}; };
  EXPECT_TRUE(Mounted(builder).status.fails_with(Errc::needs_fsck));
  Log log;
  log.next.next_ino = ~std::uint64_t{0};
  log.put();
  Mounted mounted(std::move(log.device), false);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  EXPECT_LT(mounted.fixture.make("/new", S_IFREG | 0644)->ino.v, 100U) << "no chunk of ours";
}

TEST(Hostile, numbers_of_inodes_have_an_end) {
  ImageBuilder builder{4096};
  const Ino file = builder.add_file(kRootIno, "file", 1);
  builder.change_image = [](format::Superblock& s) { s.next_ino = format::kInoLimit - 1; };
  Mounted mounted(builder);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  EXPECT_TRUE(mounted.fixture.make("/last", S_IFREG | 0644).ok());
  EXPECT_TRUE(mounted.fixture.make("/one more", S_IFREG | 0644).fails_with(Errc::no_space));
  EXPECT_TRUE(mounted.fixture.write(file, 0, std::vector<std::byte>(kBlockSize)).ok());
  ASSERT_TRUE(mounted.fixture.unmount().ok());
  ASSERT_TRUE(mounted.fixture.mount().ok());
  EXPECT_TRUE(mounted.fixture.resolve("/last").ok());
}

// --- counters -----------------------------------------------------------------------------------------------------------

using Counter = void (*)(format::Superblock&, std::uint64_t);
constexpr Counter kCounters[] = {[](format::Superblock& s, std::uint64_t value) { s.serial = Serial{value}; },
                                 [](format::Superblock& s, std::uint64_t value) { s.lsn = Lsn{value}; },
                                 [](format::Superblock& s, std::uint64_t value) { s.clock = value; }};

TEST(Hostile, counters_do_not_begin_anew) {
  for (const Counter set : kCounters) {
    ImageBuilder builder{4096};
    builder.change_image = [&](format::Superblock& s) { set(s, ~std::uint64_t{0}); };
    EXPECT_TRUE(Mounted(builder).status.fails_with(Errc::needs_fsck));
  }
  Log log;
  log.next.clock = ~std::uint64_t{0};
  log.put();
  Mounted mounted(std::move(log.device), false);
  ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
  EXPECT_LT(mounted.fixture.store().log_clock().now(), 1'000'000U) << "no chunk of ours";
}

TEST(Hostile, counters_that_are_used_up_are_read_only) {
  for (const Counter set : kCounters) {
    ImageBuilder builder{4096};
    const Ino file = builder.add_file(kRootIno, "file", 1);
    builder.change_image = [&](format::Superblock& s) { set(s, format::kMostCount + 1); };
    EXPECT_TRUE(Mounted(builder).status.fails_with(Errc::out_of_range));
    Mounted mounted(builder, true);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    EXPECT_TRUE(mounted.fixture.read(file, 0, 1).ok());
  }
}

TEST(Hostile, counters_go_on_before_their_end) {
  for (const Counter set : kCounters) {
    ImageBuilder builder{4096};
    const Ino file = builder.add_file(kRootIno, "file", 1);
    builder.change_image = [&](format::Superblock& s) { set(s, format::kMostCount - 100); };
    Mounted mounted(builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(mounted.fixture.write(file, 0, std::vector<std::byte>(kBlockSize, std::byte(i))).ok());
      ASSERT_TRUE(mounted.fixture.call([&](Operation& op) { return mounted.fixture.fs().fsync(op, file); }).ok());
      mounted.fixture.crash();
      ASSERT_TRUE(mounted.fixture.mount().ok());
      EXPECT_EQ(mounted.fixture.read(file, 0, 1)->front(), std::byte(i));
    }
    ASSERT_TRUE(mounted.fixture.unmount().ok());
  }
}

TEST(Hostile, directories_below_each_other_do_not_hold_up_a_rename) {
  for (const bool itself : {false, true}) {
    ImageBuilder builder{4096};
    const Ino one = builder.add_directory(kRootIno, "one"), two = builder.add_directory(one, "two");
    const Ino third = builder.add_directory(two, "third");
    builder.add_directory(kRootIno, "moved");
    builder.change_items = [&](Items& items) {
      change_attributes(items, one, [&](format::Attributes& a) { a.parent = itself ? one : third; });
    };
    Mounted mounted(builder);
    ASSERT_TRUE(mounted.status.ok()) << mounted.status.error().message();
    for (const Ino to : {one, two, third}) EXPECT_TRUE(mounted.rename("moved", to, "x").fails_with(Errc::corrupt)) << to.v;
  }
}

}  // namespace
}  // namespace varve::fs

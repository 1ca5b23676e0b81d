// Files whose last partial block stands beside their inode, as bytes: in memory, in the log, in the trees, and on the way between these.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "check/check.h"
#include "changes/staging.h"
#include "checkpoint/superblock_keeper.h"
#include "compare/kept_file.h"
#include "device/io_context.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/mounted_test.h"
#include "support/pattern.h"

namespace varve::fs {
namespace {

constexpr std::uint32_t kKept = 1000;

// Where the content of a file is when the next thing happens to it.
enum class State { unsealed, sealed, in_trees, remounted, recovered };
constexpr State kStates[] = {State::unsealed, State::sealed, State::in_trees, State::remounted, State::recovered};

class Tails : public test::MountedTest {
 protected:
  void SetUp() override {
    image_.tails = kKept;
    test::MountedTest::SetUp();
  }

  void bring_to(State state) {
    switch (state) {
      case State::unsealed: return;
      case State::sealed: EXPECT_TRUE(sync().ok()); return;
      case State::in_trees: EXPECT_TRUE(fixture_.checkpoint().ok()); return;
      case State::remounted: return remount();
      case State::recovered: return recover();
    }
  }
  void recover() {
    ASSERT_TRUE(sync().ok());
    fixture_.crash();
    ASSERT_TRUE(fixture_.mount().ok());
  }
  Status sync() {
    return fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); });
  }

  Ino make(const std::string& path, std::uint64_t bytes, unsigned seed = 1) {
    const Ino file = fixture_.make(path, S_IFREG | 0644)->ino;
    if (bytes) put(file, 0, bytes, seed);
    return file;
  }
  void put(Ino file, std::uint64_t at, std::uint64_t bytes, unsigned seed) {
    EXPECT_TRUE(fixture_.write(file, at, test::pattern_bytes(seed, at, bytes)).ok());
  }
  std::uint64_t owned(Ino file) { return fixture_.getattr(file)->blocks; }
  Status set_size(Ino file, std::uint64_t size) {
    AttrChange change;
    change.size = size;
    return fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok() ? Status() : Status(Errc::invalid);
  }
  Status shape(Ino file, FallocateMode mode, std::uint64_t at, std::uint64_t bytes) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().fallocate(op, file, mode, at, bytes); });
  }
  std::vector<std::byte> read(Ino file) { return *fixture_.read(file, 0, 64 * kBlockSize); }
  static std::vector<std::byte> content(std::uint64_t bytes, unsigned seed = 1) { return test::pattern_bytes(seed, 0, bytes); }

  // As it stands and after each way to another mount, and for the checker.
  void expect(Ino file, const std::vector<std::byte>& content, const std::string& what = {}) {
    EXPECT_EQ(read(file), content) << what;
    recover();
    EXPECT_EQ(read(file), content) << what << ", after a crash";
    expect_sound(what);
    EXPECT_EQ(read(file), content) << what << ", mounted again";
  }
  void expect_sound(const std::string& what = {}) {
    ASSERT_TRUE(fixture_.unmount().ok()) << what;
    const auto report = check::check(device_, {.verify_data = true});
    ASSERT_TRUE(report.ok()) << what;
    EXPECT_EQ(report->errors() + report->warnings(), 0U) << what;
    ASSERT_TRUE(fixture_.mount().ok()) << what;
  }
  // Longer or shorter, a bit more, a bit less, and longer again; with the file brought to that state between each two.
  void expect_resized(std::uint64_t bytes, std::uint64_t size, State state) {
    const std::string what = fmt::format("{} to {} in state {}", bytes, size, static_cast<int>(state));
    const Ino file = make("/" + what, bytes);
    bring_to(state);
    ASSERT_TRUE(set_size(file, size).ok());
    std::vector<std::byte> wanted = content(bytes);
    wanted.resize(size);
    EXPECT_EQ(read(file), wanted) << what;
    bring_to(state);
    EXPECT_EQ(read(file), wanted) << what;
    put(file, size, 50, 1);
    const auto more = test::pattern_bytes(1, size, 50);
    wanted.insert(wanted.end(), more.begin(), more.end());
    EXPECT_EQ(read(file), wanted) << what;
    bring_to(state);
    for (const std::uint64_t next : {200U, 2000U}) {
      ASSERT_TRUE(set_size(file, next).ok());
      wanted.resize(next);
      EXPECT_EQ(read(file), wanted) << what;
    }
    expect(file, wanted, what);
  }
  std::uint64_t written_bytes() { return fixture_.store().io().counts()[io::IoKind::write].bytes; }
  std::uint64_t data_blocks() { return fixture_.store().superblocks().written().data_blocks; }
};

TEST_F(Tails, a_small_file_owns_no_block) {
  const Ino file = make("/small", 100);
  expect(file, content(100));
  EXPECT_EQ(data_blocks(), 0U);
  EXPECT_EQ(owned(file), 1U) << "or tar -S would take it for a hole";
  EXPECT_TRUE(fixture_.store().superblocks().written().features.incompat & format::kIncompatTails);
}

TEST_F(Tails, each_length_comes_back) {
  for (const std::uint64_t blocks : {0U, 1U, 3U})
    for (const std::uint64_t rest : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{kKept - 1}, std::uint64_t{kKept},
                                     std::uint64_t{kKept + 1}, kBlockSize - 1}) {
      const std::uint64_t bytes = blocks * kBlockSize + rest;
      const std::string name = fmt::format("{}", bytes);
      const Ino file = make("/" + name, bytes);
      expect(file, content(bytes), name);
      EXPECT_EQ(std::max<std::uint64_t>(owned(file), 1), std::max<std::uint64_t>(blocks + (rest > kKept), 1)) << name;
    }
}

TEST_F(Tails, a_synced_small_file_is_one_block_for_the_device) {
  make("/first", 100);
  ASSERT_TRUE(sync().ok());  // with which the superblocks of this mount are written
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = written_bytes();
    make(fmt::format("/{}", i), 700);
    ASSERT_TRUE(sync().ok());
    EXPECT_EQ(written_bytes() - before, kBlockSize);
  }
}

TEST_F(Tails, synced_lines_are_one_block_each_for_the_device) {
  const Ino file = make("/log", 0);
  put(file, 0, 100, 1);
  ASSERT_TRUE(sync().ok());
  for (std::uint64_t size = 200; size <= 12'000; size += 100) {
    const std::uint64_t before = written_bytes();
    put(file, size - 100, 100, 1);
    ASSERT_TRUE(sync().ok());
    const bool is_tail = size % kBlockSize >= 100 && size % kBlockSize <= format::kUsualLoggedTail;  // else a block is full, or nearly so
    EXPECT_EQ(written_bytes() - before, is_tail ? kBlockSize : 2 * kBlockSize) << size;
  }
  expect(file, content(12'000));
}

TEST_F(Tails, H61_no_more_of_the_longer_ones_wait_than_a_checkpoint_has_blocks_for) {
  constexpr unsigned kFiles = 100;
  std::vector<Ino> files;
  for (unsigned i = 0; i < kFiles; ++i) {
    files.push_back(make(fmt::format("/{}", i), 2000, i));
    ASSERT_TRUE(sync().ok());
  }
  EXPECT_EQ(fixture_.store().staging().unsealed().logged(), changes::Unsealed::kMostLogged);
  for (unsigned i = 0; i < kFiles; ++i) EXPECT_EQ(read(files[i]), content(2000, i)) << i;
  recover();
  EXPECT_EQ(data_blocks(), kFiles);
  for (unsigned i = 0; i < kFiles; ++i) EXPECT_EQ(read(files[i]), content(2000, i)) << i;
  expect_sound();
}

TEST_F(Tails, appended_lines_leave_the_tree_when_they_are_a_block) {
  const Ino file = make("/log", 0);
  std::uint64_t size = 0;
  for (int i = 0; size < 3 * kBlockSize; ++i, size += 100) {
    put(file, size, 100, 1);
    if (i % 3 == 0) bring_to(State::sealed);
    if (i % 20 == 7) recover();
    if (i % 20 == 13) bring_to(State::in_trees);
    if (i % 20 == 18) {
      ASSERT_EQ(read(file), content(size + 100)) << size;
    }
  }
  expect(file, content(size));
}

TEST_F(Tails, H61_a_file_that_goes_on_elsewhere_has_a_block_there) {
  for (const std::uint64_t bytes : {300U, 2000U})
    for (const State state : kStates) {
      const std::string what = fmt::format("{} in state {}", bytes, static_cast<int>(state));
      const Ino file = make("/" + what, bytes);
      bring_to(state);
      put(file, 5 * kBlockSize, 200, 1);
      std::vector<std::byte> wanted = content(5 * kBlockSize + 200);
      std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(bytes), wanted.begin() + 5 * kBlockSize, std::byte{0});
      expect(file, wanted, what);
      EXPECT_EQ(owned(file), 1U);
    }
}

TEST_F(Tails, H61_a_file_becomes_longer_and_shorter) {
  for (const std::uint64_t bytes : {300U, 2000U})
    for (const State state : kStates)
      for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{250}, std::uint64_t{900}, std::uint64_t{3000}, kBlockSize,
                                       kBlockSize + 1, 3 * kBlockSize + 5})
        expect_resized(bytes, size, state);
}

TEST_F(Tails, H61_room_that_is_set_aside_stays_so) {
  for (const State state : kStates)
    for (const auto mode : {FallocateMode::allocate, FallocateMode::allocate_keep_size}) {
      const Ino file = make(fmt::format("/{}-{}", static_cast<int>(state), static_cast<int>(mode)), 300);
      bring_to(state);
      ASSERT_TRUE(shape(file, mode, 0, 4 * kBlockSize).ok());
      std::vector<std::byte> wanted = content(300);
      if (mode == FallocateMode::allocate) wanted.resize(4 * kBlockSize);
      expect(file, wanted);
      EXPECT_EQ(owned(file), 4U);
      put(file, 100, 300, 1);
      bring_to(state);
      EXPECT_EQ(owned(file), 4U) << "what has been promised is not given up for a tail";
      put(file, kBlockSize, 100, 1);
      bring_to(State::in_trees);
      EXPECT_EQ(owned(file), 4U);
    }
  expect_sound();
}

TEST_F(Tails, holes_and_zeros) {
  struct Case {
    FallocateMode mode;
    std::uint64_t at, bytes, size;
  };
  const Case cases[] = {{FallocateMode::punch_hole, 100, 50, 300},
                        {FallocateMode::punch_hole, 0, kBlockSize, 300},
                        {FallocateMode::zero_range, 100, 50, 300},
                        {FallocateMode::zero_range, 200, 5 * kBlockSize, 200 + 5 * kBlockSize},
                        {FallocateMode::zero_range, 400, 5 * kBlockSize, 400 + 5 * kBlockSize},
                        {FallocateMode::zero_range, 3 * kBlockSize, 10, 3 * kBlockSize + 10},
                        {FallocateMode::zero_range_keep_size, 0, 3 * kBlockSize, 300}};
  for (const State state : kStates)
    for (const Case& one : cases) {
      const std::string what = fmt::format("{}: mode {} at {}, {}", static_cast<int>(state), static_cast<int>(one.mode), one.at,
                                           counted(one.bytes, "byte"));
      const Ino file = make("/" + what, 300);
      bring_to(state);
      ASSERT_TRUE(shape(file, one.mode, one.at, one.bytes).ok()) << what;
      std::vector<std::byte> wanted = content(300);
      for (std::uint64_t i = one.at; i < std::min<std::uint64_t>(300, one.at + one.bytes); ++i) wanted[i] = std::byte{0};
      wanted.resize(one.size);
      expect(file, wanted, what);
    }
}

TEST_F(Tails, data_are_where_they_are) {
  for (const State state : kStates) {
    const Ino file = make(fmt::format("/{}", static_cast<int>(state)), 0);
    put(file, 2 * kBlockSize, kBlockSize, 1);
    put(file, 4 * kBlockSize, 100, 1);
    bring_to(state);
    const auto seek = [&](std::uint64_t from, SeekKind kind) {
      return *fixture_.call([&](Operation& op) { return fixture_.fs().seek(op, file, from, kind); });
    };
    EXPECT_EQ(seek(0, SeekKind::data), 2 * kBlockSize);
    EXPECT_EQ(seek(2 * kBlockSize, SeekKind::hole), 3 * kBlockSize);
    EXPECT_EQ(seek(3 * kBlockSize, SeekKind::data), 4 * kBlockSize);
    EXPECT_EQ(seek(4 * kBlockSize, SeekKind::hole), 4 * kBlockSize + 100);
  }
}

TEST_F(Tails, a_file_goes_with_its_tail) {
  for (const State state : kStates) {
    const std::string name = fmt::format("{}", static_cast<int>(state));
    make("/" + name, 300);
    bring_to(state);
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, name); }).ok());
    recover();
    expect_sound(name);
    EXPECT_EQ(fixture_.list(kRootIno)->size(), 2U);
  }
}

TEST_F(Tails, a_snapshot_has_the_one_of_its_time) {
  const Ino file = make("/file", 300), same = make("/same", 300), longer = make("/longer", 300), gone = make("/gone", 5000);
  ASSERT_TRUE(fixture_.snapshot({snapshots::SnapshotChange::Kind::create, "one", {}}).ok());
  put(file, 0, 250, 2);
  put(longer, 300, 3000, 1);
  put(same, 0, 300, 1);
  ASSERT_TRUE(set_size(gone, 0).ok());
  ASSERT_TRUE(fixture_.snapshot({snapshots::SnapshotChange::Kind::create, "two", {}}).ok());
  ASSERT_TRUE(fixture_.clean("copying").ok());
  const auto snapshots = fixture_.fs().snapshots().snapshots;
  ASSERT_EQ(snapshots.size(), 2U);
  const Serial one{snapshots[0].serial}, two{snapshots[1].serial};
  fixture_.show(one);
  EXPECT_EQ(read(file), content(300));
  EXPECT_EQ(read(longer), content(300));
  EXPECT_EQ(read(gone), content(5000));
  fixture_.show({});
  EXPECT_NE(read(file), content(300));
  const auto files_of = [&](Serial serial) {
    std::vector<std::vector<std::byte>> found;
    const Ino asked[] = {file, same, longer, gone};
    EXPECT_TRUE(compare::ask_files(test::asking(fixture_.fs()), serial, asked, compare::With::data, [&](compare::KeptFile&& kept) {
                  found.emplace_back(kept.data.begin(), kept.data.end());
                  return Status();
                }).ok());
    return found;
  };
  EXPECT_EQ(files_of(one), (std::vector{content(300), content(300), content(300), content(5000)}));
  EXPECT_EQ(files_of(two).at(2), content(3300));
  expect_sound();
}

TEST_F(Tails, without_the_option_there_are_no_new_ones) {
  const Ino file = make("/before", 300), over = make("/over", 300);
  ASSERT_TRUE(fixture_.unmount().ok());
  fixture_.options().tails = 0;
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(read(file), content(300));
  put(over, 100, 100, 1);
  make("/new", 300);
  ASSERT_TRUE(fixture_.checkpoint().ok());
  EXPECT_EQ(data_blocks(), 2U);
  expect_sound();
  EXPECT_EQ(read(file), content(300));
  EXPECT_EQ(read(over), content(300));
}

class TailsOfAnOldFilesystem : public Tails {
 protected:
  void SetUp() override { test::MountedTest::SetUp(); }
  bool has_bit() { return fixture_.store().superblocks().written().features.incompat & format::kIncompatTails; }
};

TEST_F(TailsOfAnOldFilesystem, H61_come_with_the_option_and_a_checkpoint) {
  if (has_bit()) GTEST_SKIP() << "VARVE_TEST_TAILS";
  const Ino before = make("/before", 300);
  ASSERT_TRUE(fixture_.unmount().ok());
  fixture_.options().tails = kKept;
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_FALSE(has_bit());
  const Ino early = make("/early", 300);
  expect(early, content(300));
  EXPECT_TRUE(has_bit());
  EXPECT_EQ(data_blocks(), 2U) << "a block stays one";
  const Ino later = make("/later", 300);
  expect(later, content(300));
  EXPECT_EQ(data_blocks(), 2U);
  expect(before, content(300));
  fixture_.options().tails = format::kMaxTail + 1;
  ASSERT_TRUE(fixture_.unmount().ok());
  EXPECT_TRUE(fixture_.mount().fails_with(Errc::invalid));
  fixture_.options().tails.reset();
  ASSERT_TRUE(fixture_.mount().ok());
}

TEST_F(Tails, are_read_by_who_does_not_write) {
  const Ino file = make("/in trees", 300);
  ASSERT_TRUE(fixture_.checkpoint().ok());
  const Ino logged = make("/in the log", 300);
  ASSERT_TRUE(sync().ok());
  fixture_.crash();
  fixture_.options().read_only = true;
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(read(file), content(300));
  EXPECT_EQ(read(logged), content(300));
  fixture_.crash();
  fixture_.options().read_only = false;
  ASSERT_TRUE(fixture_.mount().ok());
}

TEST_F(Tails, many_of_them_are_told_from_each_other) {
  std::vector<Ino> files;
  for (unsigned i = 0; i < 500; ++i) files.push_back(make(fmt::format("/{}", i), 20 + i, i));
  const auto expect_all = [&] {
    for (unsigned i = 0; i < 500; ++i) ASSERT_EQ(read(files[i]), content(20 + i, i)) << i;
  };
  expect_all();
  recover();
  expect_all();
  for (unsigned i = 0; i < 500; i += 7) put(files[i], 0, 20 + i, i);
  expect_sound();
  expect_all();
}

}  // namespace
}  // namespace varve::fs

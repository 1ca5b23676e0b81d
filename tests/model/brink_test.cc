// Work at the brink of a full device: whatever is let in can be sealed and merged. A seal or a checkpoint that finds no
// clean segment would turn the filesystem read-only with acknowledged work in memory (H39).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/buffer.h"
#include "base/types.h"
#include "cleaner/registry.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "log/log.h"
#include "segments/segment_table.h"
#include "space/demand.h"
#include "space/space.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

std::string text(const Status& status) { return status.ok() ? "" : status.error().message(); }

// A small device without a model beside it: what operations answer counts, and what the checker finds at the end.
class Brink : public ::testing::Test {
 protected:
  void make(std::uint64_t bytes, std::uint32_t segment_blocks = 0) {
    device_ = std::make_unique<io::MemDevice>(bytes);
    ASSERT_TRUE(good(text(make_image(*device_, {.segment_blocks = segment_blocks}))));
    fixture_ = std::make_unique<FsFixture>(*device_, test_options(clock_, random_));
    fixture_->options().count_references = false;
    fixture_->options().placement = placement_;
    ASSERT_TRUE(good(text(fixture_->mount())));
  }
  // With the engine's threads, and a kernel that holds every inode until it is forgotten.
  void mount_with_threads() {
    ASSERT_TRUE(good(text(fixture_->unmount())));
    fixture_->options().background = true;
    fixture_->options().count_references = true;
    ASSERT_TRUE(good(text(fixture_->mount())));
  }

  // No operation may fail but for want of space.
  template <class Function>
  bool refused(Function&& function) {
    auto result = fixture_->call(std::forward<Function>(function));
    if (result.ok()) return false;
    EXPECT_TRUE(result.fails_with(Errc::no_space)) << result.error().message();
    return true;
  }

  bool create_refused(const std::string& name, const std::string& symlink = "") {
    return refused([&](fs::Operation& op) {
      fs::NewNode node;
      node.mode = symlink.empty() ? S_IFREG | 0644 : S_IFLNK | 0777;
      node.symlink = symlink;
      return fixture_->fs().make(op, kRootIno, name, node);
    });
  }
  Ino ino_of(const std::string& name) {
    auto found = fixture_->lookup(kRootIno, name);
    EXPECT_TRUE(found.ok()) << name;
    return found.ok() ? found->ino : Ino{};
  }
  bool unlink_refused(const std::string& name) {
    return refused([&](fs::Operation& op) { return fixture_->fs().unlink(op, kRootIno, name); });
  }
  bool rename_refused(const std::string& from, const std::string& to) {
    return refused([&](fs::Operation& op) { return fixture_->fs().rename(op, kRootIno, from, kRootIno, to, 0); });
  }
  bool write_refused(Ino ino, std::uint64_t offset, std::uint64_t bytes) {
    AlignedBuffer data(bytes);
    std::memset(data.data(), static_cast<int>(random_.next() % 256), bytes);
    return refused([&](fs::Operation& op) { return fixture_->fs().write(op, ino, offset, data.span(), {}); });
  }
  bool sync_refused() {
    return refused([&](fs::Operation& op) { return fixture_->fs().sync(op); });
  }

  // As many files as the device takes, with the longest names there are; all but a few of its blocks are tree nodes.
  static std::string name_of(std::size_t i) { return fmt::format("{:0>250}", i * 7919 % 100'003); }
  std::vector<std::size_t> fill_with_names(std::size_t at_least = 10'000) {
    std::vector<std::size_t> files;
    while (!create_refused(name_of(files.size()))) files.push_back(files.size());
    EXPECT_GE(files.size(), at_least);
    std::shuffle(files.begin(), files.end(), std::mt19937_64(first_seed()));
    return files;
  }
  void overwrite(const std::vector<std::pair<Ino, std::uint64_t>>& files, unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      const auto& [ino, bytes] = files[random_.next() % files.size()];
      const std::uint64_t length = random_.next() % 4 ? 4096 : kMiB;
      const std::uint64_t offset = random_.next() % (bytes - length + 1) / 4096 * 4096;
      ASSERT_FALSE(write_refused(ino, offset, length)) << i;
      if (i % 16 == 0) { ASSERT_FALSE(sync_refused()); }
    }
  }
  // Files of up to 4 MiB; returns their numbers and sizes.
  std::vector<std::pair<Ino, std::uint64_t>> fill_with_data() {
    std::vector<std::pair<Ino, std::uint64_t>> files;
    for (bool full = false; !full;) {
      const std::string name = fmt::format("file{}", files.size());
      if (create_refused(name)) break;
      std::uint64_t bytes = 0;
      while (!full && bytes < 4 * kMiB) {
        full = write_refused(ino_of(name), bytes, kMiB);
        if (!full) bytes += kMiB;
      }
      if (bytes) files.emplace_back(ino_of(name), bytes);
    }
    return files;
  }

  void crash() {
    fixture_->crash();
    ASSERT_TRUE(good(text(fixture_->mount())));
  }
  void finish() {
    EXPECT_TRUE(good(foresight(*fixture_)));
    ASSERT_TRUE(good(text(fixture_->unmount())));
    EXPECT_EQ(check_image(*device_, false), "");
  }

  std::string placement_ = fs::Options{}.placement;
  std::unique_ptr<io::MemDevice> device_;
  ManualClock clock_;
  SeededRandom random_{first_seed()};
  std::unique_ptr<FsFixture> fixture_;
};

// In random order they dirty every node before they free any: many times what the reserve could take at once.
TEST_F(Brink, every_other_file_of_a_device_full_of_names_is_deleted) {
  make(16 * kMiB);
  const std::vector<std::size_t> files = fill_with_names();
  for (std::size_t i = 0; i < files.size(); i += 2) ASSERT_FALSE(unlink_refused(name_of(files[i]))) << i;
  finish();
}

TEST_F(Brink, files_of_a_device_full_of_names_are_renamed) {
  make(16 * kMiB);
  const std::vector<std::size_t> files = fill_with_names();
  const std::size_t count = files.size() / 16;
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_FALSE(rename_refused(name_of(files[i]), "x" + name_of(files[i]))) << i;
  }
  for (std::size_t i = 0; i < count; ++i) ASSERT_FALSE(unlink_refused("x" + name_of(files[i]))) << i;
  finish();
}

// An operation that finds no room for freeing an inode leaves that to the thread that makes the checkpoints, which cannot wait for one.
TEST_F(Brink, files_without_names_are_freed_when_they_are_forgotten) {
  make(16 * kMiB);
  const std::vector<std::size_t> files = fill_with_names();
  mount_with_threads();
  std::vector<Ino> inodes;
  for (std::size_t i = 0; i < files.size(); i += 2) {
    inodes.push_back(ino_of(name_of(files[i])));
    fixture_->fs().count_reference(inodes.back());
    ASSERT_FALSE(unlink_refused(name_of(files[i]))) << i;
  }
  for (Ino ino : inodes) fixture_->fs().forget(ino, 1);
  finish();
}

// What lies beside an inode takes room, too.
TEST_F(Brink, symbolic_links_fill_the_device) {
  make(16 * kMiB);
  const std::string target(4000, 'x');
  unsigned links = 0;
  while (!create_refused(fmt::format("link{}", links), target)) ++links;
  EXPECT_GT(links, 2000U);
  for (unsigned i = 0; i < links; ++i) ASSERT_FALSE(unlink_refused(fmt::format("link{}", i))) << i;
  ASSERT_FALSE(create_refused("again", target));
  finish();
}

TEST_F(Brink, extended_attributes_fill_the_device) {
  make(16 * kMiB);
  const std::vector<std::byte> value(60'000);
  auto set_refused = [&](const std::string& name) {
    const Ino ino = ino_of(name);
    return refused([&](fs::Operation& op) { return fixture_->fs().setxattr(op, ino, "user.a", value, 0); });
  };
  unsigned files = 0;
  for (;; ++files) {
    const std::string name = fmt::format("file{}", files);
    if (create_refused(name) || set_refused(name)) break;
  }
  EXPECT_GT(files, 100U);
  for (unsigned i = 0; i < files; ++i) ASSERT_FALSE(unlink_refused(fmt::format("file{}", i))) << i;
  finish();
}

// Each write takes several of the smallest segments.
TEST_F(Brink, large_overwrites_on_small_segments) {
  make(64 * kMiB);
  overwrite(fill_with_data(), 2000);
  finish();
}

// What deletes may have of the clean segments is promised to one of them; only the cleaner's are left.
class Promised : public Brink {
 protected:
  void SetUp() override {
    placement_ = "none";
    make(64 * kMiB);
  }
  void TearDown() override {
    const Gate::Pass pass(store().gate());
    store().space().withdraw(claim_);
  }
  store::Store& store() { return fixture_->store(); }
  void promise_all() {
    const Gate::Pass pass(store().gate());
    for (claim_.payload = store().segments().clean() * 64; store().space().admit(claim_) != space::Space::Room::granted;)
      --claim_.payload;
  }
  bool may_move_to_group_0(std::uint64_t blocks) {
    const Gate::Pass pass(store().gate());
    return store().space().may_move(space::demand_of_moves(blocks, 1));
  }
  unsigned head_for(unsigned group) {
    const Gate::Pass pass(store().gate());
    return store().space().head_for(group);
  }
  std::uint64_t rest_of_group_0() {
    const Gate::Pass pass(store().gate());
    return store().log().heads().rests()[0].blocks;
  }
  space::Demand claim_{.frees = true};
};

TEST_F(Promised, segments_are_not_for_heads_of_groups) {
  EXPECT_EQ(head_for(3), 3U);
  promise_all();
  EXPECT_GT(claim_.payload, 100U * 64);
  EXPECT_EQ(head_for(3), 0U);
}

// Room at group 0's head is promised as well.
TEST_F(Promised, segments_are_not_for_moved_blocks) {
  ASSERT_FALSE(create_refused("file"));
  ASSERT_FALSE(write_refused(ino_of("file"), 0, 20 * 4096));
  ASSERT_FALSE(sync_refused());
  ASSERT_GT(rest_of_group_0(), 0U);
  EXPECT_TRUE(may_move_to_group_0(4 * 64));
  promise_all();
  EXPECT_TRUE(may_move_to_group_0(2 * 64));
  EXPECT_FALSE(may_move_to_group_0(3 * 64 + 1));
}

// As many heads as there can be, none for longer than the next few blocks: a segment for each would be more than the
// device can spare.
class Scattered final : public cleaner::Placement {
 public:
  std::string_view name() const override { return "scattered"; }
  unsigned groups() const override { return format::kMaxGroups; }
  std::uint8_t place(const cleaner::WrittenBlock&) const override { return next(); }
  std::uint8_t place(const cleaner::MovedBlock&) const override { return next(); }

 private:
  std::uint8_t next() const { return static_cast<std::uint8_t>(turn_.fetch_add(1) % format::kMaxGroups); }
  mutable std::atomic<unsigned> turn_{0};
};

class ManyHeads : public Brink {
 protected:
  void SetUp() override {
    placement_ = "scattered";
    (void)cleaner::registry().placements.add("scattered", "", [](const cleaner::Parameters&, const cleaner::PlacementScale&) {
      return std::make_unique<Scattered>();
    });
  }
};

TEST_F(ManyHeads, take_no_segment_that_is_promised) {
  make(64 * kMiB);
  overwrite(fill_with_data(), 2000);
  finish();
}

TEST_F(ManyHeads, take_no_segment_that_deletes_need) {
  make(16 * kMiB);
  auto files = fill_with_data();
  const std::vector<std::size_t> names = fill_with_names(0);
  for (std::size_t i = 0; i < names.size(); i += 2) ASSERT_FALSE(unlink_refused(name_of(names[i]))) << i;
  overwrite(files, 500);
  finish();
}

TEST_F(ManyHeads, crash_again_and_again) {
  make(16 * kMiB);
  const auto files = fill_with_data();
  for (unsigned i = 0; i < 60; ++i) {
    overwrite(files, 20);
    if (i % 2 == 0) crash();
    if (HasFatalFailure()) return;
  }
  finish();
}

// A recovery needs segments of its own before it gets any back.
TEST_F(Brink, crashes_again_and_again) {
  make(16 * kMiB);
  const auto files = fill_with_data();
  for (unsigned i = 0; i < 200; ++i) create_refused(name_of(i));
  for (unsigned i = 0; i < 1500; ++i) {
    const auto& [ino, bytes] = files[random_.next() % files.size()];
    const std::uint64_t length = random_.next() % 8 ? 4096 : 256 * 1024;
    ASSERT_FALSE(write_refused(ino, random_.next() % (bytes - length + 1) / 4096 * 4096, length)) << i;
    if (i % 4 == 0) { ASSERT_FALSE(sync_refused()); }
    if (random_.next() % 16 == 0) crash();
    if (HasFatalFailure()) return;
  }
  finish();
}

// What a sparse file owns cannot be told from its counts: on a full device it is looked up before it is refused.
TEST_F(Brink, owned_blocks_of_a_sparse_file_are_overwritten_when_full) {
  make(16 * kMiB);
  ASSERT_FALSE(create_refused("sparse"));
  const Ino sparse = ino_of("sparse");
  for (std::uint64_t at : {0, 8, 40}) ASSERT_FALSE(write_refused(sparse, at * kMiB, 3 * kBlockSize));
  fill_with_data();
  for (std::uint64_t at = 1; !write_refused(sparse, at * kMiB / 8, kBlockSize); at += 2) ASSERT_LT(at, 10'000U);
  ASSERT_TRUE(good(text(fixture_->unmount())));
  ASSERT_TRUE(good(text(fixture_->mount())));
  for (std::uint64_t at : {0, 8, 40}) {
    EXPECT_FALSE(write_refused(sparse, at * kMiB, 3 * kBlockSize)) << at;
    EXPECT_FALSE(write_refused(sparse, at * kMiB + 100, 5000)) << at;
    EXPECT_TRUE(write_refused(sparse, at * kMiB + 2 * kBlockSize, 2 * kBlockSize)) << at;
  }
  EXPECT_FALSE(sync_refused());
  finish();
}

}  // namespace
}  // namespace varve::test

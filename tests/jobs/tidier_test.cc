// What puts files together by itself: where, how much, and that it comes to rest.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cleaner/file_layout.h"
#include "cleaner/strategy/power_source.h"
#include "cleaner/workbench.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "io/batch.h"
#include "io/mem_device.h"
#include "jobs/jobs.h"
#include "jobs/read_probe.h"
#include "operation/operations.h"
#include "segments/segment_table.h"
#include "space/admission.h"
#include "space/space.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/timed_device.h"
#include "support/waiting.h"

namespace varve::jobs {
namespace {

// So long a request takes beside its transfer, if it does not go on where the last one ended; and each block of it.
struct Speeds {
  std::uint64_t elsewhere_ns, block_ns;
};
constexpr Speeds kDisk{12'000'000, 60'000}, kCard{700'000, 200'000}, kVirtual{80'000, 2'000};

class OneArm {
 public:
  explicit OneArm(const Speeds& speeds) : speeds_(speeds) {}
  std::uint64_t operator()(const io::IoRequest& request) {
    const bool goes_on = end_->exchange(request.offset + request.length) == request.offset;
    return (goes_on ? 0 : speeds_.elsewhere_ns) + (request.length >> kBlockShift) * speeds_.block_ns;
  }

 private:
  Speeds speeds_;
  std::shared_ptr<std::atomic<std::uint64_t>> end_ = std::make_shared<std::atomic<std::uint64_t>>(0);  // threads may share it
};

class TidierTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 4096;  // of the file

  void SetUp() override {
    if (cleaner::read_power() == cleaner::Power::battery) GTEST_SKIP() << "on battery nothing is tidied";
  }

  void mount(const Speeds& speeds, bool rotational = true, bool background = false, std::size_t memory = 256u << 20) {
    device_.emplace(memory_, clock_, rotational, [this, arm = OneArm(speeds)](const io::IoRequest& request) mutable {
      if (on_request_) on_request_(request);
      return arm(request);
    });
    ASSERT_TRUE(test::make_image(*device_, {}).ok());
    fixture_.emplace(*device_, test::test_options(clock_, random_));
    fixture_->options().background = background;
    fixture_->options().memory_bytes = memory;
    ASSERT_TRUE(fixture_->mount().ok());
    file_ = fixture_->make("/file", S_IFREG | 0644)->ino;
    ASSERT_TRUE(fixture_->write(file_, 0, std::vector<std::byte>(kBlocks * kBlockSize, std::byte{1})).ok());
    ASSERT_TRUE(fixture_->checkpoint().ok());
  }
  // So many blocks here and there, as far as they go in lots of a few.
  void write_over(std::uint64_t blocks, std::uint64_t within = kBlocks) {
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = chosen_.next() % within;
      written_[block] = static_cast<std::byte>(2 + i % 200);
      ASSERT_TRUE(fixture_->write(file_, block * kBlockSize, std::vector<std::byte>(kBlockSize, written_[block])).ok());
      const bool is_lot = i % 8 == 7;
      ASSERT_TRUE(!is_lot || fixture_->call([&](fs::Operation& op) { return fixture_->fs().fsync(op, file_); }).ok());
    }
    ASSERT_TRUE(fixture_->checkpoint().ok());
  }
  std::uint64_t fragments() {
    EXPECT_TRUE(fixture_->checkpoint().ok());
    return cleaner::count_fragments(cleaner::read_layout(fixture_->store(), file_, 0, kBlocks)->blocks);
  }
  operation::FileNotes& notes() { return fixture_->fs().operations().file_notes(); }
  Tidier& tidier() { return fixture_->fs().engine().jobs().tidier(); }
  std::uint64_t tidy() {
    const std::uint64_t before = tidier().moved();
    tidier().step([] { return false; });
    return tidier().moved() - before;
  }
  void read_in_a_row() {
    for (std::uint64_t at = 0; at < kBlocks; at += 256) ASSERT_TRUE(fixture_->read(file_, at * kBlockSize, 256 * kBlockSize).ok());
  }
  // As written: nothing has become of another block's content.
  void expect_content() {
    const auto read = fixture_->read(file_, 0, kBlocks * kBlockSize);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->size(), kBlocks * kBlockSize);
    for (std::uint64_t i = 0; i < kBlocks; ++i)
      ASSERT_EQ((*read)[i * kBlockSize], written_[i]) << i;
  }

  io::MemDevice memory_{256u << 20};
  test::ManualClock clock_;
  SeededRandom random_{7}, chosen_{3};
  std::optional<test::TimedDevice> device_;
  std::optional<test::FsFixture> fixture_;
  std::function<void(const io::IoRequest&)> on_request_;
  std::vector<std::byte> written_ = std::vector<std::byte>(kBlocks, std::byte{1});
  Ino file_;
};

TEST_F(TidierTest, puts_together_what_was_written_over_and_comes_to_rest) {
  mount(kDisk);
  write_over(5000);
  const std::uint64_t before = fragments();
  ASSERT_GT(before, 1000u);
  ASSERT_TRUE(notes().any());
  EXPECT_EQ(tidy(), kBlocks);
  EXPECT_LE(fragments(), before / 20);
  expect_content();
  EXPECT_FALSE(notes().any());
  read_in_a_row();
  EXPECT_FALSE(notes().any()) << "it is found in few pieces";
  EXPECT_EQ(tidy(), 0u);
}

// Of a part that does not fit into memory, what is read together is written together: the others follow it.
TEST_F(TidierTest, little_memory_makes_no_pieces) {
  mount(kDisk, true, false, 32u << 20);
  write_over(5000);
  ASSERT_TRUE(fixture_->clean("defragmenting").ok());
  EXPECT_LE(fragments(), 80u);
  expect_content();
}

TEST_F(TidierTest, leaves_alone_what_reads_fast) {
  mount(kDisk);
  write_over(5000, 14);  // there is a budget
  const std::uint64_t seek_blocks = kDisk.elsewhere_ns / kDisk.block_ns, before = fragments();
  ASSERT_GT(before, 8u);
  ASSERT_LT(before * seek_blocks, kBlocks) << "less than the rest of it takes to read";
  EXPECT_EQ(tidy(), 0u);
  EXPECT_EQ(fragments(), before);
  EXPECT_FALSE(notes().any());
}

TEST_F(TidierTest, does_nothing_on_a_card_that_calls_itself_a_disk) {
  mount(kCard);
  write_over(5000);
  EXPECT_EQ(tidy(), 0u);
}

TEST_F(TidierTest, does_nothing_on_a_virtual_disk) {
  mount(kVirtual);
  write_over(5000);
  EXPECT_EQ(tidy(), 0u);
}

TEST_F(TidierTest, is_off_where_nothing_turns) {
  mount(kDisk, false);
  write_over(100);
  EXPECT_FALSE(notes().is_on());
  EXPECT_FALSE(notes().any());
}

TEST_F(TidierTest, writes_no_more_than_users_have) {
  mount(kDisk);
  write_over(5000);
  ASSERT_TRUE(fixture_->unmount().ok());
  ASSERT_TRUE(fixture_->mount().ok());
  write_over(100);
  EXPECT_LE(tidy(), 100u);
  read_in_a_row();  // and found in pieces: that is worth as much again
  ASSERT_TRUE(notes().any());
  EXPECT_GT(tidy(), kBlocks / 2);
  EXPECT_LE(tidier().moved(), kBlocks + 100);
  expect_content();
}

TEST_F(TidierTest, stops_when_somebody_comes_and_goes_on_later) {
  mount(kDisk);
  write_over(5000);
  tidier().step([] { return true; });
  EXPECT_EQ(tidier().moved(), 0u);
  EXPECT_TRUE(notes().any());
  EXPECT_EQ(tidy(), kBlocks);
}

// In the middle of a sweep over thousands of blocks: what is on its way is all that the operation waits for.
TEST_F(TidierTest, gives_way_to_an_operation_at_once) {
  mount(kDisk);
  write_over(5000);
  unsigned requests = 0, after = 0;
  on_request_ = [&](const io::IoRequest& request) {
    if (request.kind != io::IoKind::read) return;
    if (++requests == 200) notes().note_use();
    after += requests > 200;
  };
  EXPECT_EQ(tidy(), 0u);
  EXPECT_GE(requests, 200u);
  EXPECT_LE(after, io::BatchLimits{}.rotational);
  on_request_ = {};
  ASSERT_TRUE(notes().any());
  EXPECT_EQ(tidy(), kBlocks);
  EXPECT_LE(fragments(), 40u);
}

TEST_F(TidierTest, is_off_on_a_read_only_mount) {
  mount(kDisk);
  write_over(5000);
  ASSERT_TRUE(fixture_->unmount().ok());
  fixture_->options().read_only = true;
  ASSERT_TRUE(fixture_->mount().ok());
  EXPECT_FALSE(notes().is_on());
  read_in_a_row();
  EXPECT_FALSE(notes().any());
}

TEST_F(TidierTest, writes_nothing_once_the_filesystem_is_read_only) {
  mount(kDisk);
  write_over(5000);
  fixture_->store().faults().go_read_only(Error(Errc::io, "for a test"));
  unsigned writes = 0;
  on_request_ = [&](const io::IoRequest& request) { writes += request.kind == io::IoKind::write; };
  EXPECT_EQ(tidy(), 0u);
  EXPECT_EQ(writes, 0u);
}

// By the thread that makes checkpoints, when the clock says that the filesystem has not been used; then it is unmounted.
TEST_F(TidierTest, tidies_in_the_background) {
  mount(kDisk, true, true);
  write_over(5000);
  test::wait_until([&] {
    clock_.advance(1'000'000'000);
    return tidier().moved() >= kBlocks;
  });
  EXPECT_EQ(tidier().moved(), kBlocks);
  ASSERT_TRUE(fixture_->unmount().ok());
  fixture_->options().background = false;
  ASSERT_TRUE(fixture_->mount().ok());
  EXPECT_LE(fragments(), 40u);
  expect_content();
}

TEST_F(TidierTest, lets_itself_be_unmounted) {
  mount(kDisk, true, true);
  write_over(5000);
  std::atomic<unsigned> reads{0}, after{0};
  std::atomic<bool> unmounting{false}, waited_for{false};
  const pid_t unmounts = ::gettid();
  on_request_ = [&](const io::IoRequest& request) {
    if (request.kind != io::IoKind::read) return;
    after += waited_for;
    if (++reads != 200) return;
    test::wait_until([&] { return unmounting.load(); });
    test::SleepWatch watch;
    test::wait_until([&] { return watch.is_asleep_for_good(unmounts); });
    waited_for = true;
  };
  test::wait_until([&] {
    clock_.advance(1'000'000'000);
    return reads >= 200;
  });
  unmounting = true;
  ASSERT_TRUE(fixture_->unmount().ok());
  EXPECT_LT(after, 200u) << "of thousands";
  on_request_ = {};
  fixture_->options().background = false;
  ASSERT_TRUE(fixture_->mount().ok());
  expect_content();
}

TEST_F(TidierTest, takes_no_room_that_users_or_the_cleaner_need) {
  mount(kDisk);
  const Ino other = fixture_->make("/other", S_IFREG | 0644)->ino;
  store::Store& store = fixture_->store();
  const std::uint64_t enough = store.space().low_water() + 2 * cleaner::segments_ahead(store);
  const auto fill = [&](std::uint64_t clean) {
    for (std::uint64_t at = fixture_->getattr(other)->size; store.segments().clean() > clean; at += 1u << 20)
      ASSERT_TRUE(fixture_->write(other, at, std::vector<std::byte>(1u << 20, std::byte{3})).ok());
  };
  write_over(1000);
  fill(enough + 4);
  read_in_a_row();  // there is a budget
  std::uint64_t fewest = ~0ULL;
  on_request_ = [&](const io::IoRequest&) { fewest = std::min(fewest, store.segments().clean()); };
  EXPECT_GT(tidy(), 0u);
  EXPECT_GE(fewest, enough - 2) << "nodes of its checkpoints";
  on_request_ = {};
  expect_content();

  write_over(1000);
  fill(enough - 1);
  read_in_a_row();
  ASSERT_TRUE(notes().any());
  EXPECT_EQ(tidy(), 0u);
  EXPECT_FALSE(notes().any()) << "it is not tried again and again";
}

TEST_F(TidierTest, is_due_when_nobody_has_used_it_for_a_while) {
  mount(kDisk);
  write_over(100);
  std::uint64_t now = 1;
  EXPECT_FALSE(tidier().is_due(now));
  EXPECT_FALSE(tidier().is_due(now += Tidier::kIdleNs - 1));
  ASSERT_TRUE(fixture_->getattr(file_).ok());  // from memory, as tools do that look at a mount now and then
  EXPECT_TRUE(tidier().is_due(now += 1));
  ASSERT_TRUE(fixture_->read(file_, 0, kBlockSize).ok());
  EXPECT_FALSE(tidier().is_due(now += 1));
  EXPECT_TRUE(tidier().is_due(now + Tidier::kIdleNs));
}

TEST(ReadProbe, tells_disks_from_others) {
  io::MemDevice memory(64u << 20);
  test::ManualClock clock;
  SeededRandom random(1);
  const auto cost = [&](const Speeds& speeds) {
    test::TimedDevice device(memory, clock, true, OneArm(speeds));
    return probe_reads(device, clock, random);
  };
  EXPECT_TRUE(cost(kDisk).seeks());
  EXPECT_NEAR(static_cast<double>(cost(kDisk).seek_blocks()), 200, 5);
  EXPECT_FALSE(cost(kCard).seeks());
  EXPECT_FALSE(cost(kVirtual).seeks());
}

}  // namespace
}  // namespace varve::jobs

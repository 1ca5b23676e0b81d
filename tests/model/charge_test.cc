// What files and metadata are charged while the trees do not know yet: what others were promised is kept, and nobody is
// refused although there is room.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/types.h"
#include "changes/changes.h"
#include "checkpoint/checkpoints.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "log/log.h"
#include "operation/wait.h"
#include "snapshots/snapshot_change.h"
#include "space/charge.h"
#include "space/demand.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/stalling_device.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

using Bytes = std::vector<std::byte>;

Bytes blocks_of(std::uint64_t count, char content) { return Bytes(count * kBlockSize, std::byte(content)); }

// A thread of which one wants to know that it has come to wait for something.
class Watched {
 public:
  ~Watched() { join(); }
  void start(std::function<void()> work) {
    thread_ = std::thread([this, work = std::move(work)] {
      work();
      tell(State::ended);
    });
  }
  // Is it this that an operation of the thread is about to wait for?
  void note(bool waits) {
    if (waits) tell(State::waits);
  }
  bool comes_to_wait() {
    state_.wait(State::runs);
    return state_ == State::waits;
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  enum class State : std::uint8_t { runs, waits, ended };
  void tell(State state) {
    State runs = State::runs;
    if (state_.compare_exchange_strong(runs, state)) state_.notify_all();
  }

  std::atomic<State> state_{State::runs};
  std::thread thread_;
};

class Charge : public ::testing::Test {
 protected:
  // Memory 0: as much as there is by default.
  void make(io::BlockDevice& device, std::uint64_t memory) {
    ASSERT_TRUE(make_image(memory_, {}).ok());
    fs::Options options = test_options(clock_, random_);
    if (memory) options.memory_bytes = memory;
    fixture_ = std::make_unique<FsFixture>(device, options);
  }
  void start(io::BlockDevice& device, std::uint64_t memory = 0) {
    make(device, memory);
    ASSERT_TRUE(fixture_->mount().ok());
  }
  void remount_with_threads() {
    ASSERT_TRUE(fixture_->unmount().ok());
    fixture_->options().background = true;
    ASSERT_TRUE(fixture_->mount().ok());
    ASSERT_TRUE(fixture_->make("/first", S_IFREG | 0644).ok());
  }
  // It outlives the filesystem.
  template <class... More>
  StallingDevice& stall(More... more) {
    return *(stalling_ = std::make_unique<StallingDevice>(memory_, more...));
  }
  store::Store& store() { return fixture_->store(); }
  Ino file(const std::string& path) { return fixture_->make(path, S_IFREG | 0644)->ino; }
  Status checkpoint() {
    return fixture_->checkpoint();
  }
  // By whatever thread.
  void expect_checkpoint() {
    const Status made = store().checkpoints().make({});
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  std::uint64_t charged() {
    const Gate::Pass pass(store().gate());
    return store().charge().blocks();
  }
  bool can_charge(std::uint64_t blocks) {
    const Gate::Pass pass(store().gate());
    return store().charge().fits({.new_blocks = blocks});
  }
  // A file of which nothing is in memory, dense or with a hole, and an empty one.
  enum class Cold { dense, sparse };
  void start_with_cold_file(Cold kind = Cold::dense) {
    start(memory_);
    cold_ = file("/cold");
    fresh_ = file("/new");
    for (std::uint64_t at = 0; at < 130 * kMiB; at += kMiB) ASSERT_TRUE(fixture_->write(cold_, at, blocks_of(256, 'x')).ok());
    if (kind == Cold::sparse) {
      ASSERT_TRUE(fixture_->write(cold_, 200 * kMiB, blocks_of(1, 'x')).ok());
    }
    ASSERT_TRUE(fixture_->unmount().ok() && fixture_->mount().ok());
  }
  // So that nobody knows what was there.
  void overwrite_unseen(std::uint64_t first, std::uint64_t blocks) {
    constexpr std::uint64_t kStep = 64;
    for (std::uint64_t at = first; at < first + blocks; at += kStep) {
      store().trees().cache().clear();
      ASSERT_TRUE(fixture_->write(cold_, at * kBlockSize, blocks_of(kStep, 'y')).ok());
    }
  }
  // For the empty file. Waits for all but checkpoints: then it would block.
  Status allocate(fs::Operation& op, std::uint64_t blocks) {
    for (;;) {
      const Status done = fixture_->fs().fallocate(op, fresh_, fs::FallocateMode::allocate_keep_size, 0, blocks * kBlockSize);
      if (!done.fails_with(Errc::would_block) || std::exchange(op.wait().for_settled, false)) return done;
      op.block();
    }
  }
  // What is to be allocated would find room, if the checkpoint counted that it waits for, but each time more has been overwritten.
  void expect_that_allocating_waits_until_nothing_is_overwritten() {
    constexpr std::uint64_t kLeft = 2000, kOverwritten = 4096;
    const std::uint64_t wanted = *fixture_->available_bytes() / kBlockSize - kLeft;
    fs::Operation op(fixture_->fs().operations(), {});
    for (std::uint64_t turn = 0; turn < 4; ++turn) {
      ASSERT_NO_FATAL_FAILURE(overwrite_unseen(turn * kOverwritten, kOverwritten));
      ASSERT_FALSE(can_charge(wanted));
      ASSERT_TRUE(allocate(op, wanted).fails_with(Errc::would_block)) << "turn " << turn;
      ASSERT_TRUE(checkpoint().ok());
    }
    EXPECT_TRUE(allocate(op, wanted).ok());
  }

  io::MemDevice memory_{256 * kMiB};
  ManualClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StallingDevice> stalling_;
  std::unique_ptr<FsFixture> fixture_;
  Ino cold_, fresh_;
};

TEST_F(Charge, AnAppendToADenseFileCounts) {
  start(memory_);
  const Ino dense = file("/f");
  ASSERT_TRUE(fixture_->write(dense, 0, blocks_of(1, 'x')).ok());
  ASSERT_TRUE(checkpoint().ok());
  const std::uint64_t before = charged();
  ASSERT_TRUE(fixture_->write(dense, kBlockSize, blocks_of(256, 'x')).ok());
  for (const char* when : {"before a checkpoint", "after it"}) {
    EXPECT_GE(charged(), before + 256) << when;
    EXPECT_EQ(fixture_->getattr(dense)->blocks, 257U) << when;
    ASSERT_TRUE(checkpoint().ok());
  }
}

// The cleaner has moved it since the last checkpoint. The snapshot has it where it was.
TEST_F(Charge, WhatASnapshotHasCountsAlsoWhereItHasBeenMoved) {
  start(memory_);
  const Ino one = file("/f");
  ASSERT_TRUE(fixture_->write(one, 0, blocks_of(512, 'x')).ok());
  ASSERT_TRUE(checkpoint().ok());
  ASSERT_TRUE(fixture_->snapshot({snapshots::SnapshotChange::Kind::create, "kept", {}}).ok());
  for (std::uint64_t nth = 0; nth < 8; ++nth) ASSERT_TRUE(fixture_->move(nth).ok());
  ASSERT_TRUE(fixture_->write(one, 0, blocks_of(512, 'y')).ok());
  const std::uint64_t before = charged();
  ASSERT_TRUE(checkpoint().ok());
  constexpr std::uint64_t kNodes = 64;  // that come with it, at most
  EXPECT_GE(before + kNodes, charged());
}

TEST_F(Charge, AppendsDoNotTakeWhatFallocateWasPromised) {
  start(memory_);
  std::vector<Ino> files;
  for (int i = 0; i < 60; ++i) {
    files.push_back(file(fmt::format("/f{}", i)));
    ASSERT_TRUE(fixture_->write(files.back(), 0, blocks_of(1, 'x')).ok());
  }
  const Ino kept = file("/kept");
  ASSERT_TRUE(checkpoint().ok());
  const Serial settled = store().checkpoints().settled();
  for (Ino dense : files) ASSERT_TRUE(fixture_->write(dense, kBlockSize, blocks_of(256, 'x')).ok());
  const std::uint64_t wanted = (*fixture_->available_bytes() - 2 * kMiB) / kMiB * kMiB;
  ASSERT_TRUE(fixture_->call([&](fs::Operation& op) {
    return fixture_->fs().fallocate(op, kept, fs::FallocateMode::allocate_keep_size, 0, wanted);
  }).ok());
  ASSERT_EQ(store().checkpoints().settled(), settled) << "a checkpoint has counted";
  ASSERT_TRUE(checkpoint().ok());
  for (std::uint64_t at = 0; at < wanted; at += kMiB)
    ASSERT_TRUE(fixture_->write(kept, at, blocks_of(256, 'y')).ok()) << "at " << at;
}

// A file is overwritten whose leaves are not in memory, during a checkpoint, until the worst case leaves no room. What is new
// then has to wait for the checkpoint after that one, which counts.
TEST_F(Charge, NewDataWaitsForTheCheckpointThatCounts) {
  constexpr std::uint64_t kDense = 130 * kMiB, kNew = 40 * kMiB, kRoom = 4500;
  StallingDevice& device = stall();
  start(device, 256 * kMiB);
  const Ino dense = file("/dense"), fresh = file("/new");
  for (std::uint64_t at = 0; at < kDense; at += kMiB) ASSERT_TRUE(fixture_->write(dense, at, blocks_of(256, 'x')).ok());
  remount_with_threads();
  ASSERT_NO_FATAL_FAILURE(expect_checkpoint());
  file("/second");

  device.hold(true);
  std::thread checkpoint([&] { expect_checkpoint(); });
  device.wait_until_caught();  // by then it has frozen and merged
  for (std::uint64_t at = 0; at < kDense && can_charge(kRoom); at += kMiB / 4) {
    store().trees().cache().clear();
    ASSERT_TRUE(fixture_->write(dense, at, blocks_of(64, 'y')).ok());
  }
  ASSERT_FALSE(can_charge(kRoom));
  Watched writer;
  fixture_->watch_waits([&](const operation::Wait& wait) { writer.note(wait.recount.checkpoint.has_value()); });
  Status written;
  writer.start([&] {
    for (std::uint64_t at = 0; at < kNew && written.ok(); at += kMiB) written = fixture_->write(fresh, at, blocks_of(256, 'z'));
  });
  EXPECT_TRUE(writer.comes_to_wait()) << "for the count, while the checkpoint that counts is not there";
  device.hold(false);
  writer.join();
  checkpoint.join();
  EXPECT_TRUE(written.ok()) << written.error().message();
  ASSERT_TRUE(fixture_->unmount().ok());
}

// The checkpoint that counts is there, but by then so much more has been written over that the next worst case leaves no room.
TEST_F(Charge, NewDataWaitsAgainForWhatWasOverwrittenMeanwhile) {
  start_with_cold_file();
  expect_that_allocating_waits_until_nothing_is_overwritten();
}

// The same where each block counts as a new one, since there may have been none.
TEST_F(Charge, NewDataWaitsAgainForWhatWasOverwrittenInASparseFile) {
  start_with_cold_file(Cold::sparse);
  expect_that_allocating_waits_until_nothing_is_overwritten();
}

// Somebody overwrites for ever, or it does not fit however it is counted.
TEST_F(Charge, ThereIsAnEndToWaitingForWhatIsOverwritten) {
  constexpr std::uint64_t kOverwritten = 1024;
  start_with_cold_file();
  const std::uint64_t there = *fixture_->available_bytes() / kBlockSize;
  for (const auto& [wanted, expected] : {std::pair(there - 100, 5U), std::pair(there + 10000, 1U)}) {
    fs::Operation op(fixture_->fs().operations(), {});
    unsigned waits = 0;
    for (;; ++waits) {
      ASSERT_NO_FATAL_FAILURE(overwrite_unseen(waits * kOverwritten, kOverwritten));
      const Status allocated = allocate(op, wanted);
      ASSERT_TRUE(checkpoint().ok());
      if (allocated.fails_with(Errc::no_space)) break;
      ASSERT_TRUE(allocated.fails_with(Errc::would_block));
    }
    EXPECT_EQ(waits, expected);
  }
}

// Of a sparse file nobody knows what it has, so overwriting counts as new. A checkpoint counts while the file's blocks go.
class ChargeOfSparse : public Charge {
 protected:
  static constexpr std::uint64_t kPiece = 64, kPieces = 64;  // blocks; with a hole of that length behind each
  void write_pieces(char content) {
    for (std::uint64_t i = 0; i < kPieces; ++i) {
      store().trees().cache().clear();
      ASSERT_TRUE(fixture_->write(sparse_, 2 * i * kPiece * kBlockSize, blocks_of(kPiece, content)).ok());
    }
  }
  void start_sparse(StallingDevice& device) {
    start(device);
    const Ino other = file("/other");  // or the charge could not fall too low
    for (std::uint64_t at = 0; at < 32 * kMiB; at += kMiB) ASSERT_TRUE(fixture_->write(other, at, blocks_of(256, 'x')).ok());
    sparse_ = file("/sparse");
    write_pieces('x');
    remount_with_threads();
    ASSERT_NO_FATAL_FAILURE(expect_checkpoint());
    const std::uint64_t before = charged();
    write_pieces('y');
    ASSERT_GE(charged(), before + kPiece * kPieces) << "overwriting was not cold";
  }
  void during_checkpoint(StallingDevice& device, const std::function<void()>& change) {
    device.hold(true);
    std::thread checkpoint([&] { expect_checkpoint(); });
    auto is_frozen = [&] { return store().checkpoints().running() && !store().changes().count_records(); };
    while (!is_frozen() && !store().faults().read_only()) std::this_thread::yield();
    change();
    device.hold(false);
    checkpoint.join();
  }
  // What it was before the trees knew all of it was neither too little nor, by more than was estimated, too much.
  void expect_enough_charged() {
    constexpr std::uint64_t kNodes = 128;  // and their share in what is estimated
    const std::uint64_t before = charged();
    ASSERT_NO_FATAL_FAILURE(expect_checkpoint());
    EXPECT_GE(before + kNodes, charged());
    EXPECT_LE(before, charged() + kPiece * kPieces * 9 / 8 + kNodes);
  }
  bool cut() {
    fs::AttrChange change;
    change.size = 0;
    return fixture_->call([&](fs::Operation& op) { return fixture_->fs().setattr(op, sparse_, change); }).ok();
  }
  std::uint64_t inodes() {
    const Gate::Pass pass(store().gate());
    return store().charge().inodes();
  }
  Ino sparse_;
};

TEST_F(ChargeOfSparse, DoesNotFallTooLowWhenItIsRemoved) {
  StallingDevice& device = stall();
  start_sparse(device);
  during_checkpoint(device, [&] {
    const std::uint64_t before = inodes();
    const auto removed = fixture_->call([&](fs::Operation& op) { return fixture_->fs().unlink(op, kRootIno, "sparse"); });
    EXPECT_TRUE(removed.ok());
    while (inodes() == before) std::this_thread::yield();
  });
  expect_enough_charged();
}

TEST_F(ChargeOfSparse, DoesNotFallTooLowWhenItIsCut) {
  StallingDevice& device = stall();
  start_sparse(device);
  during_checkpoint(device, [&] {
    ASSERT_TRUE(cut());
    EXPECT_EQ(fixture_->getattr(sparse_)->blocks, 0U);
    ASSERT_TRUE(fixture_->write(sparse_, 0, blocks_of(kPiece, 'z')).ok());
    EXPECT_EQ(fixture_->getattr(sparse_)->blocks, kPiece);
  });
  EXPECT_EQ(fixture_->getattr(sparse_)->blocks, kPiece);
  expect_enough_charged();
  EXPECT_EQ(fixture_->getattr(sparse_)->blocks, kPiece);
}

// Each time as much as before is given back.
TEST_F(ChargeOfSparse, DoesNotGrowWhenItIsCutAgainAndAgain) {
  StallingDevice& device = stall();
  start_sparse(device);
  during_checkpoint(device, [&] {
    ASSERT_TRUE(cut());
    const std::uint64_t before = charged();
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(fixture_->write(sparse_, 0, blocks_of(kPiece, 'z')).ok());
      ASSERT_TRUE(cut());
    }
    EXPECT_LE(charged(), before + kPiece);
  });
  expect_enough_charged();
}

// The first superblock takes its time, chunks wait for it until no more may be in flight, and then it cannot be written.
TEST_F(Charge, WhoWaitsForLessInFlightHearsThatTheFirstSuperblockFailed) {
  StallingDevice& device = stall(is_superblock_write, EIO);
  make(device, 16 * kMiB);
  fixture_->options().background = true;
  device.hold(true);
  ASSERT_TRUE(fixture_->mount().ok());
  const Ino ino = file("/f");
  for (std::uint64_t i = 0; i < 400 && !store().log().flow().is_full(); ++i) {
    ASSERT_TRUE(fixture_->write(ino, i * 2 * kBlockSize, blocks_of(1, 'x')).ok());
    fs::Operation sync(fixture_->fs().operations(), {});
    ASSERT_TRUE(fixture_->fs().sync(sync).fails_with(Errc::would_block));
  }
  ASSERT_TRUE(store().log().flow().is_full());
  Watched writer;
  fixture_->watch_waits([&](const operation::Wait& wait) { writer.note(wait.for_room); });
  writer.start([&] { EXPECT_FALSE(fixture_->write(ino, 0, blocks_of(1, 'y')).ok()); });
  EXPECT_TRUE(writer.comes_to_wait());
  device.hold(false);
  writer.join();  // or the test's limit of time ends it
  EXPECT_TRUE(store().faults().read_only());
  fixture_.reset();  // before its device
}

}  // namespace
}  // namespace varve::test

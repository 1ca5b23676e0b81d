// What happens at the very moment at which the filesystem finds that it can no longer write: to threads that sync then, wait
// then, or unmount.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "base/wait_list.h"
#include "device/faults.h"
#include "format/node.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "jobs/resize_job.h"
#include "store/store.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/manual_clock.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

using namespace std::chrono_literals;

// While it lives, the test is called when something is logged.
class LogListener {
 public:
  explicit LogListener(std::function<void(std::string_view)> heard) : sink_(std::make_shared<Sink>(std::move(heard))) {
    logger_->sinks().push_back(sink_);
    logger_->set_level(spdlog::level::err);
  }
  ~LogListener() {
    std::erase(logger_->sinks(), sink_);
    logger_->set_level(level_);
  }

 private:
  class Sink : public spdlog::sinks::base_sink<std::mutex> {
   public:
    explicit Sink(std::function<void(std::string_view)> heard) : heard_(std::move(heard)) {}

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      heard_({message.payload.data(), message.payload.size()});
    }
    void flush_() override {}
    std::function<void(std::string_view)> heard_;
  };
  std::shared_ptr<spdlog::sinks::sink> sink_;
  const std::shared_ptr<spdlog::logger> logger_ = spdlog::default_logger();
  const spdlog::level::level_enum level_ = logger_->level();
};

class Failing : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(memory_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }
  store::Store& store() { return fixture_.store(); }
  Status sync() {
    return fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); });
  }
  Status checkpoint() {
    return fixture_.checkpoint();
  }
  void make(const std::string& path) { ASSERT_TRUE(fixture_.make(path, S_IFREG | 0644).ok()); }

  io::MemDevice memory_{16u << 20};
  FaultDevice device_{memory_};
  ManualClock clock_;
  SeededRandom random_{3};
  FsFixture fixture_{device_, test_options(clock_, random_)};
};

// It is read-only already, and the waiters have not been told why yet.
TEST_F(Failing, H15_a_sync_while_it_becomes_read_only_fails) {
  make("/a");
  ASSERT_TRUE(sync().ok());
  std::optional<bool> synced;
  const LogListener listener([&](std::string_view text) {
    if (!synced && text.find("read-only from now on") != text.npos) synced = sync().ok();
  });
  make("/b");
  store().faults().go_read_only(Error(Errc::io, "a test"));
  ASSERT_TRUE(synced);
  EXPECT_FALSE(*synced);
  EXPECT_FALSE(sync().ok());
}

TEST_F(Failing, whoever_waits_for_a_checkpoint_is_told) {
  int told = 0;
  store().waiters().add([&] { ++told; });
  store().faults().go_read_only(Error(Errc::io, "a test"));
  EXPECT_EQ(told, 1) << "there will be no checkpoint";
  store().waiters().add([&] { ++told; });
  EXPECT_EQ(told, 2);
}

// It can be copied from the mount, which is read-only by then.
TEST_F(Failing, what_could_not_be_written_can_still_be_read) {
  const Ino file = fixture_.make("/a", S_IFREG | 0644)->ino;
  ASSERT_TRUE(sync().ok());
  const auto bytes = pattern_bytes(7, 0, 300'000);
  ASSERT_TRUE(fixture_.write(file, 0, bytes).ok());
  Fault fault;
  fault.kind = io::IoKind::write;
  fault.times = Fault::kForEver;
  device_.add(fault);
  EXPECT_FALSE(sync().ok());
  EXPECT_FALSE(fixture_.write(file, 0, bytes).ok());
  const auto read = fixture_.read(file, 0, bytes.size());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read, bytes);
}

// The device tells of lost data once: to the flush of the resize, and not to the fsync after it.
TEST_F(Failing, H15_a_flush_that_fails_while_it_grows_is_heard_by_those_who_sync) {
  const Ino file = fixture_.make("/a", S_IFREG | 0644)->ino;
  ASSERT_TRUE(fixture_.write(file, 0, pattern_bytes(7, 0, 300'000)).ok());
  ASSERT_TRUE(fixture_.seal().ok());
  device_.add({.kind = io::IoKind::flush});
  ASSERT_TRUE(fixture_.fs().start_resize({32u << 20}).ok());
  EXPECT_EQ(fixture_.fs().resize_state().phase, jobs::ResizeState::Phase::failed);
  EXPECT_FALSE(sync().ok());
}

// A path fails over, for as long as some reads take.
TEST_F(Failing, errors_that_pass_do_not_end_a_checkpoint) {
  for (int i = 0; i < 300; ++i) make(fmt::format("/file-with-a-longer-name-{}", i));
  ASSERT_TRUE(checkpoint().ok());
  make("/late");
  store().trees().cache().clear();
  Fault fault;
  fault.kind = io::IoKind::read;
  fault.times = 2;
  device_.add(fault);
  EXPECT_TRUE(checkpoint().ok());
  EXPECT_FALSE(store().faults().read_only());
}

// The checkpoint of a recovery must change a leaf that has rotted since: then what the log has is shown, read-only, and stays in the log.
TEST_F(Failing, a_rotten_leaf_that_the_log_changes_leaves_the_filesystem_readable) {
  const Ino file = fixture_.make("/a", S_IFREG | 0644)->ino;
  for (std::uint64_t i = 0; i < 1500; ++i) ASSERT_TRUE(fixture_.write(file, i * 2 * kBlockSize, pattern_bytes(i, 0, kBlockSize)).ok());
  make("/early");
  ASSERT_TRUE(checkpoint().ok());
  make("/late");
  ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, "a"); }).ok());
  ASSERT_TRUE(sync().ok());
  fixture_.crash();
  unsigned rotten = 0;
  std::vector<std::byte> block(kBlockSize);
  for (std::uint64_t at = 0; at < memory_.geometry().blocks(); ++at) {
    ASSERT_TRUE(memory_.read(at << kBlockShift, block).ok());
    const auto header = format::decode_node_header(block);
    const bool is_one = header.ok() && header->tree == format::TreeId::inode_file && header->level == 0 && header->first.ino == file &&
                        header->first.kind == format::ItemKind::extent;
    if (!is_one || ++rotten > 1) continue;
    block[2000] ^= std::byte{1};
    ASSERT_TRUE(memory_.write(at << kBlockShift, block).ok());
  }
  ASSERT_GT(rotten, 1U) << "leaves of the file's extents alone";
  for (int i = 0; i < 2; ++i) {
    const Status mounted = fixture_.mount();
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    EXPECT_TRUE(store().faults().read_only());
    EXPECT_TRUE(fixture_.resolve("/early").ok() && fixture_.resolve("/late").ok());
    EXPECT_FALSE(fixture_.resolve("/a").ok());
    EXPECT_FALSE(fixture_.make("/more", S_IFREG | 0644).ok());
    fixture_.crash();
  }
}

// The tree cannot be read, so there is neither a scan for orphans nor a checkpoint; the log can still be written.
TEST_F(Failing, an_unmount_keeps_what_it_can) {
  make("/early");
  ASSERT_TRUE(checkpoint().ok());
  make("/late");
  Fault fault;
  fault.kind = io::IoKind::read;
  fault.times = Fault::kForEver;
  device_.add(fault);
  store().trees().cache().clear();
  EXPECT_FALSE(fixture_.unmount().ok());
  device_.heal();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_TRUE(fixture_.resolve("/early").ok());
  EXPECT_TRUE(fixture_.resolve("/late").ok());
}

// For every write of a device that fills up: no operation waits for a checkpoint that never comes.
TEST(FailingFull, no_operation_waits_for_ever) {
  for (std::uint64_t n = 1; n < 120; n += 3) {
    io::MemDevice memory(8u << 20);
    ASSERT_TRUE(make_image(memory, {}).ok());
    FaultDevice device(memory);
    ManualClock clock;
    SeededRandom random(n);
    FsFixture fixture(device, test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
    Fault fault;
    fault.kind = io::IoKind::write;
    fault.nth = n;
    fault.times = Fault::kForEver;
    device.add(fault);
    Status status;
    for (std::uint64_t i = 0; i < 400 && status.ok(); ++i)
      status = fixture.write(file, i % 80 * 65536, pattern_bytes(i, 0, 65536));
    EXPECT_FALSE(status.ok()) << "write " << n << " failed";
    fixture.crash();
  }
}

// --- flushes ----------------------------------------------------------------------------------------------------------

// A flush that fails, and takes so long that somebody else could have flushed meanwhile: the kernel, or a disk, tells of what
// was lost only once.
class FailingFlush : public io::MemDevice {
 public:
  using io::MemDevice::MemDevice;
  void fail_next(std::function<void()> meanwhile) {
    std::lock_guard lock(mutex_);
    meanwhile_ = std::move(meanwhile);
  }
  int execute(io::IoRequest& request) override {
    std::function<void()> meanwhile;
    if (request.kind == io::IoKind::flush) {
      std::lock_guard lock(mutex_);
      meanwhile = std::exchange(meanwhile_, {});
    }
    if (!meanwhile) return io::MemDevice::execute(request);
    meanwhile();
    return EIO;
  }

 private:
  std::mutex mutex_;
  std::function<void()> meanwhile_;
};

TEST(FailingFlushes, H15_no_sync_succeeds_beside_a_flush_that_fails) {
  FailingFlush device(16u << 20);
  ASSERT_TRUE(make_image(device, {}).ok());
  ManualClock clock;
  SeededRandom random(4);
  fs::Options options = test_options(clock, random);
  options.background = true;
  FsFixture fixture(device, options);
  ASSERT_TRUE(fixture.mount().ok());
  auto sync = [&] { return fixture.call([&](fs::Operation& op) { return fixture.fs().sync(op); }).ok(); };
  ASSERT_TRUE(fixture.make("/early", S_IFREG | 0644).ok());
  ASSERT_TRUE(sync());  // so that the next flush is the checkpoint's own
  std::future<bool> beside;
  device.fail_next([&] {
    beside = std::async(std::launch::async, [&] { return fixture.make("/late", S_IFREG | 0644).ok() && sync(); });
    beside.wait_for(300ms);  // if nothing holds it up
  });
  EXPECT_FALSE(fixture.checkpoint().ok());
  EXPECT_FALSE(beside.get()) << "what it had written may be what was lost";
}

}  // namespace
}  // namespace varve::test

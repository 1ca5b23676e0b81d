// FITRIM on a device that takes its time: nobody else waits for it.
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "io/reactor.h"
#include "jobs/jobs.h"
#include "operation/wait.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/fs_fixture.h"

namespace varve::operation {
namespace {

using test::FsFixture;

// Discards nothing before it is told to go on.
class SlowDiscards : public io::BlockDevice {
 public:
  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return false; }
  void submit(io::Reactor& reactor, io::IoRequest& request) override {
    if (request.kind != io::IoKind::discard) return below_.submit(reactor, request);
    reactor.begin(request);
    held_.push_back({&reactor, &request});
    if (!holds_) go_on();
  }
  int execute(io::IoRequest& request) override {
    waited_for_ += request.kind == io::IoKind::discard;
    return below_.execute(request);
  }

  void hold() { holds_ = true; }
  void go_on() {
    holds_ = false;
    for (const auto& [reactor, request] : std::exchange(held_, {})) {
      discarded_ += request->length;
      reactor->finish_later(*request, below_.execute(*request));
    }
  }
  std::size_t held() const { return held_.size(); }
  std::size_t waited_for() const { return waited_for_; }  // by a thread that does nothing else meanwhile
  std::uint64_t discarded() const { return discarded_; }  // bytes

 private:
  io::MemDevice below_{512u << 20};
  bool holds_ = false;
  std::vector<std::pair<io::Reactor*, io::IoRequest*>> held_;
  std::size_t waited_for_ = 0;
  std::uint64_t discarded_ = 0;
};

class TrimTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }

  // What is asked for in the background, with its own operation.
  struct Asked {
    Asked(Operations& operations, io::Reactor& reactor) : operation(operations, {}, &reactor) {}
    Operation operation;
    std::optional<Result<std::uint64_t>> trimmed;
  };
  void start(Asked& asked) {
    run(asked.operation, [this, &asked] { return fixture_.fs().trim(asked.operation, 0, ~0ULL, 0); },
        [&asked](Result<std::uint64_t> result) { asked.trimmed = std::move(result); });
  }
  void pump() {
    for (int i = 0; i < 1000; ++i) {
      while (store().io().pump()) {}
      reactor_->poll();
    }
  }

  store::Store& store() { return fixture_.store(); }
  segments::SegmentTable& segments() { return store().segments(); }

  SlowDiscards device_;
  test::ManualClock clock_;
  SeededRandom random_{7};
  FsFixture fixture_{device_, test::test_options(clock_, random_)};
  std::unique_ptr<io::Reactor> reactor_ = io::Reactor::make();
};

TEST(Trim, others_go_on_while_the_device_discards) {
  SlowDiscards device;
  test::ManualClock clock;
  SeededRandom random{7};
  ASSERT_TRUE(test::make_image(device, {}).ok());
  FsFixture fixture(device, test::test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
  store::Store& store = fixture.store();
  const std::uint64_t clean = store.segments().clean();

  const auto reactor = io::Reactor::make();
  Operation operation(fixture.fs().operations(), {}, reactor.get());
  const auto trim = [&] { return fixture.fs().trim(operation, 0, ~0ULL, 0); };
  unsigned waits = 0;
  auto trimmed = trim();
  for (; trimmed.fails_with(Errc::would_block); trimmed = trim()) {
    const auto& steps = operation.wait().steps;
    if (!steps || !steps->trim.count) {  // for its checkpoint
      operation.block();
      continue;
    }
    ++waits;
    device.hold();
    bool ready = false;
    operation.resume([&] { ready = true; });
    EXPECT_EQ(device.held(), 1u);
    ASSERT_TRUE(fixture.write(file, 0, std::vector<std::byte>(5000, std::byte{'x'})).ok());
    ASSERT_TRUE(fixture.call([&](Operation& op) { return fixture.fs().fsync(op, file); }).ok());
    reactor->poll();
    EXPECT_FALSE(ready);
    device.go_on();
    while (store.io().pump()) {}
    reactor->poll();
    ASSERT_TRUE(ready);
  }
  ASSERT_TRUE(trimmed.ok()) << trimmed.error().message();
  EXPECT_EQ(device.waited_for(), 0u);
  EXPECT_GT(waits, 1u);
  EXPECT_EQ(*trimmed, device.discarded());
  EXPECT_GT(*trimmed, 400u << 20);
  EXPECT_GE(store.segments().clean() + 4, clean) << "they are back";
}

// Else they would find too little each, and users would not find any.
TEST_F(TrimTest, several_take_no_more_than_one) {
  const std::uint64_t clean = segments().clean();
  device_.hold();
  std::list<Asked> all;
  for (int i = 0; i < 20; ++i) start(all.emplace_back(fixture_.fs().operations(), *reactor_));
  fixture_.fs().engine().jobs().maintenance().work(false);  // their checkpoint
  pump();
  EXPECT_EQ(device_.held(), 1u);
  EXPECT_GE(segments().clean(), clean * 3 / 4);

  device_.go_on();
  pump();
  for (const Asked& asked : all) {
    ASSERT_TRUE(asked.trimmed.has_value());
    ASSERT_TRUE(asked.trimmed->ok()) << asked.trimmed->error().message();
    EXPECT_GT(**asked.trimmed, 400u << 20);
  }
  EXPECT_GE(segments().clean() + 4, clean) << "they are back";
}

TEST_F(TrimTest, what_a_checkpoint_was_promised_is_left) {
  device_.hold();
  Asked asked(fixture_.fs().operations(), *reactor_);
  asked.operation.wait().checkpoint = store().checkpoints().settled();  // it needs none of its own
  const std::uint64_t promised = segments().clean() - 12;
  segments().promise(promised);
  start(asked);
  EXPECT_GE(segments().clean(), promised);
  segments().promise(0);
  device_.go_on();
  pump();
  EXPECT_TRUE(asked.trimmed && asked.trimmed->ok());
}

}  // namespace
}  // namespace varve::operation

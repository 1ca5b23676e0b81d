// FITRIM on a device that takes its time: nobody else waits for it.
#include <gtest/gtest.h>

#include <vector>

#include "fs/engine.h"
#include "io/forwarding_queue.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::fs {
namespace {

using test::FsFixture;

// Discards nothing before it is told to go on.
class SlowDiscards : public io::BlockDevice {
 public:
  const io::Geometry& geometry() const override { return below_.geometry(); }
  const std::string& name() const override { return below_.name(); }
  bool read_only() const override { return false; }
  std::unique_ptr<io::IoQueue> make_queue() override { return std::make_unique<Queue>(*this); }
  int execute(io::IoRequest& request) override {
    waited_for_ += request.kind == io::IoKind::discard;
    return below_.execute(request);
  }

  void hold() { holds_ = true; }
  void go_on() { holds_ = false; }
  std::size_t held() const { return held_; }
  std::size_t waited_for() const { return waited_for_; }  // by a thread that does nothing else meanwhile
  std::uint64_t discarded() const { return discarded_; }  // bytes

 private:
  class Queue : public io::ForwardingQueue {
   public:
    explicit Queue(SlowDiscards& device) : ForwardingQueue(device.below_.make_queue()), device_(device) {}
    void submit(io::IoRequest& request) override {
      if (request.kind != io::IoKind::discard) return ForwardingQueue::submit(request);
      waiting_.push_back(&request);
      ++device_.held_;
    }
    unsigned poll() override {
      for (; !device_.holds_ && !waiting_.empty(); waiting_.pop_back(), --device_.held_) {
        device_.discarded_ += waiting_.back()->length;
        ForwardingQueue::submit(*waiting_.back());
      }
      return ForwardingQueue::poll();
    }

   private:
    SlowDiscards& device_;
    std::vector<io::IoRequest*> waiting_;
  };

  io::MemDevice below_{512u << 20};
  bool holds_ = false;
  std::size_t held_ = 0, waited_for_ = 0;
  std::uint64_t discarded_ = 0;
};

TEST(Trim, others_go_on_while_the_device_discards) {
  SlowDiscards device;
  test::ManualClock clock;
  SeededRandom random{7};
  ASSERT_TRUE(test::make_image(device, {}).ok());
  FsFixture fixture(device, test::test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino file = fixture.make("/f", S_IFREG | 0644)->ino;
  meta::Store& store = fixture.fs().engine().store();
  const std::uint64_t clean = store.segments().clean();

  Operation operation(fixture.fs().engine(), {});
  const auto trim = [&] { return fixture.fs().trim(operation, 0, ~0ULL, 0); };
  auto queue = device.make_queue();
  unsigned waits = 0;
  auto trimmed = trim();
  for (; trimmed.fails_with(Errc::would_block); trimmed = trim()) {
    if (!operation.wait().trim.count) {  // for its checkpoint
      operation.block();
      continue;
    }
    ++waits;
    device.hold();
    bool ready = false;
    operation.resume(*queue, [&] { ready = true; });
    EXPECT_EQ(device.held(), 1u);
    ASSERT_TRUE(fixture.write(file, 0, std::vector<std::byte>(5000, std::byte{'x'})).ok());
    ASSERT_TRUE(fixture.call([&](Operation& op) { return fixture.fs().fsync(op, file); }).ok());
    queue->poll();
    EXPECT_FALSE(ready);
    device.go_on();
    while (store.io().pump()) {}
    queue->poll();
    ASSERT_TRUE(ready);
  }
  ASSERT_TRUE(trimmed.ok()) << trimmed.error().message();
  EXPECT_EQ(device.waited_for(), 0u);
  EXPECT_GT(waits, 1u);
  EXPECT_EQ(*trimmed, device.discarded());
  EXPECT_GT(*trimmed, 400u << 20);
  EXPECT_GE(store.segments().clean() + 4, clean) << "they are back";
}

}  // namespace
}  // namespace varve::fs

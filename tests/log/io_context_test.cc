#include "device/io_context.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include "io/mem_device.h"

namespace varve::device {
namespace {

// A discard of one block that tells what became of it and goes.
io::IoRequest& discard(std::function<void(int)> tell) {
  auto* request = new io::IoRequest;
  request->kind = io::IoKind::discard;
  request->length = kBlockSize;
  request->done = [tell = std::move(tell)](io::IoRequest& done) {
    tell(done.error);
    delete &done;
  };
  request->abandoned = [](io::IoRequest& given_up) { delete &given_up; };
  return *request;
}

TEST(IoContext, DrainsWhatNobodyWaitsFor) {
  io::MemDevice device(1u << 20);
  IoContext io(device, false);
  int done = 0;
  for (int i = 0; i < 3; ++i) io.start(discard([&](int error) { done += error == 0; }));
  io.drain();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(io.counts()[io::IoKind::discard].requests, 3U);
}

TEST(IoContext, GivesUpWhatIsInFlight) {
  io::MemDevice device(1u << 20);
  bool heard = false;
  const auto content = std::make_shared<int>(5);
  {
    IoContext io(device, false);
    io.start(discard([&heard, content](int) { heard = true; }));
    EXPECT_EQ(content.use_count(), 2);
  }
  EXPECT_FALSE(heard);
  EXPECT_EQ(content.use_count(), 1) << "what it needed is freed";
}

TEST(IoContext, AfterTheServiceHasEndedARequestFailsInsteadOfGettingLost) {
  io::MemDevice device(1u << 20);
  IoContext io(device, true);
  io::Reactor& reactor = io.open_service();
  int first = -1, second = -1;
  io.start(discard([&](int error) { first = error; }));
  io.end_service();
  io.start(discard([&](int error) { second = error; }));
  EXPECT_EQ(second, ECANCELED);
  for (reactor.poll(); reactor.in_flight();) reactor.wait(-1);
  EXPECT_EQ(first, 0) << "handed over before the end";
}

}  // namespace
}  // namespace varve::device

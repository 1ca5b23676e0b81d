#include "log/io_context.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "io/mem_device.h"

namespace varve::log {
namespace {

std::unique_ptr<io::IoRequest> discard_of_a_block() {
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::discard;
  request->length = kBlockSize;
  return request;
}

TEST(IoContext, DrainsWhatNobodyWaitsFor) {
  io::MemDevice device(1u << 20);
  IoContext io(device, false);
  int done = 0;
  for (int i = 0; i < 3; ++i) io.start(discard_of_a_block(), [&](int error) { done += error == 0; });
  io.drain();
  EXPECT_EQ(done, 3);
  EXPECT_EQ(io.counters().discards, 3U);
}

TEST(IoContext, GivesUpWhatIsInFlight) {
  io::MemDevice device(1u << 20);
  bool heard = false;
  const auto content = std::make_shared<int>(5);
  {
    IoContext io(device, false);
    io.start(discard_of_a_block(), [&heard, content](int) { heard = true; });
    EXPECT_EQ(content.use_count(), 2);
  }
  EXPECT_FALSE(heard);
  EXPECT_EQ(content.use_count(), 1) << "what it needed is freed";
}

TEST(IoContext, AfterTheServiceHasEndedARequestFailsInsteadOfGettingLost) {
  io::MemDevice device(1u << 20);
  IoContext io(device, true);
  const auto queue = device.make_queue();
  io.set_service_queue(queue.get());
  int first = -1, second = -1;
  io.start(discard_of_a_block(), [&](int error) { first = error; });
  io.set_service_queue(nullptr);
  io.start(discard_of_a_block(), [&](int error) { second = error; });
  EXPECT_EQ(second, ECANCELED);
  for (queue->poll(); queue->in_flight();) queue->wait(-1);
  EXPECT_EQ(first, 0) << "handed over before the end";
}

}  // namespace
}  // namespace varve::log

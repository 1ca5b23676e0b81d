// Memory that is lacking when others have to be told, or flushed for.
#include <gtest/gtest.h>

#include <map>

#include "io/mem_device.h"
#include "log/durability.h"
#include "support/failing_allocations.h"

namespace varve::log {
namespace {

using test::FailingAllocations;

class LackOfMemoryForFlushes : public ::testing::TestWithParam<FailingAllocations::Which> {
 protected:
  // A chunk that is written, and somebody who waits for it while the nth allocation fails; false: none was left to fail.
  bool fails_a_flush(std::size_t nth) {
    Durability durability(io_);
    durability.start(Lsn{10});
    bool first = false, second = false, refused = false;
    durability.chunk_started(Lsn{11}, false, 11);
    durability.when_durable(Lsn{11}, [&first](const Status& status) { first = status.ok(); });
    durability.chunk_started(Lsn{12}, false, 12);
    FailingAllocations failing(nth, GetParam());
    durability.chunk_done(Lsn{11}, 0);
    try {
      durability.when_durable(Lsn{12}, [&second](const Status& status) { second = status.ok(); });
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    durability.chunk_done(Lsn{12}, 0);
    failing.end();
    io_.drain();
    EXPECT_TRUE(first);
    EXPECT_NE(second, refused);
    EXPECT_TRUE(refused || durability.is_durable(Lsn{12}));
    EXPECT_TRUE(durability.flush_now().ok());
    return failing.any_failed();
  }

  io::MemDevice device_{1u << 20};
  IoContext io_{device_, false};
};

TEST_P(LackOfMemoryForFlushes, KeepsNobodyWaiting) {
  std::size_t nth = 0;
  for (bool any_failed = true; any_failed && !HasFailure(); ++nth) {
    SCOPED_TRACE(nth);
    any_failed = fails_a_flush(nth);
  }
  EXPECT_GT(nth, 1U) << "the one that waits; a flush needs none";
}

INSTANTIATE_TEST_SUITE_P(Once, LackOfMemoryForFlushes, testing::Values(FailingAllocations::Which::one));
INSTANTIATE_TEST_SUITE_P(FromThenOn, LackOfMemoryForFlushes, testing::Values(FailingAllocations::Which::all_from_it));

}  // namespace
}  // namespace varve::log

// A thread that takes locks against their order ends the program, where that is checked (debug builds).
#include "base/lock_order.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/gate.h"
#include "base/mutex.h"

namespace varve {
namespace {

class LockOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kChecksLockOrder) GTEST_SKIP() << "this build does not check the order";
  }

  Mutex outer_{LockRank::unsealed}, inner_{LockRank::segments}, leaf_, other_leaf_, any_{LockRank::any}, other_any_{LockRank::any};
};
using LockOrderDeath = LockOrder;

TEST_F(LockOrder, downwards_and_again) {
  for (int round = 0; round < 2; ++round) {
    const Lock outer(outer_);
    const Lock inner(inner_);
    const Lock leaf(leaf_);
    const Lock any(any_);
    const Lock other(other_any_);
  }
}

TEST_F(LockOrderDeath, upwards) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wrong = [&] {
    const Lock inner(inner_);
    const Lock outer(outer_);
  };
  EXPECT_DEATH(wrong(), "not in the order of ranks: unsealed is taken under segments");
}

TEST_F(LockOrderDeath, two_leaves) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wrong = [&] {
    const Lock one(leaf_);
    const Lock two(other_leaf_);
  };
  EXPECT_DEATH(wrong(), "leaf is taken under leaf");
}

TEST_F(LockOrderDeath, the_same_again) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wrong = [&]() NO_THREAD_SAFETY_ANALYSIS {  // the compiler would see it, too
    const Lock one(any_);
    const Lock two(any_);
  };
  EXPECT_DEATH(wrong(), "a lock that this thread has");
}

TEST_F(LockOrder, what_is_let_go_counts_no_more) {
  Lock inner(inner_);
  inner.unlock();
  {
    const Lock outer(outer_);
    inner.lock();
  }
  inner.unlock();
  const Lock outer(outer_);
}

TEST_F(LockOrder, of_what_is_only_tried_any_order_is_good) {
  const Lock inner(inner_);
  ASSERT_TRUE(outer_.try_lock());
  outer_.unlock();
}

TEST_F(LockOrderDeath, what_was_tried_is_held) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wrong = [&]() NO_THREAD_SAFETY_ANALYSIS {  // one lock that is tried, and one of a scope
    if (!inner_.try_lock()) return;
    const Lock outer(outer_);
  };
  EXPECT_DEATH(wrong(), "unsealed is taken under segments");
}

TEST_F(LockOrder, other_threads_hold_locks_of_their_own) {
  const Lock inner(inner_);
  std::thread([&] { const Lock outer(outer_); }).join();
}

TEST_F(LockOrder, a_wait_keeps_the_lock) {
  Condition changed;
  Lock leaf(leaf_);
  changed.wait_for(leaf, std::chrono::milliseconds(1), [] { return false; });
  const Lock any(any_);
}

TEST_F(LockOrderDeath, the_gate_has_a_rank) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Gate gate;
  { const Gate::Closure closed(gate); }
  const auto wrong = [&] {
    const Lock outer(outer_);
    const Gate::Pass inside(gate);
  };
  EXPECT_DEATH(wrong(), "gate is taken under unsealed");
}

}  // namespace
}  // namespace varve

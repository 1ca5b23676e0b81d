#include "snapshots/snapshot_names.h"

#include <gtest/gtest.h>

#include <vector>

namespace varve::snapshots {
namespace {

SnapshotItem named(std::uint64_t serial, const std::string& name, bool deleting = false) {
  SnapshotItem item;
  item.serial = Serial{serial};
  item.name = name;
  item.deleting = deleting;
  return item;
}

class Named {
 public:
  void become(std::vector<SnapshotItem> items) {
    names.update(items_, items);
    items_ = std::move(items);
  }
  SnapshotNames names;

 private:
  std::vector<SnapshotItem> items_;
};

TEST(SnapshotNames, follow_what_comes_goes_and_is_renamed) {
  Named list;
  list.become({named(1, "a"), named(3, "b"), named(7, "c", true)});
  EXPECT_EQ(list.names.find("b"), Serial{3});
  EXPECT_FALSE(list.names.find("c")) << "it is being deleted";
  EXPECT_EQ(list.names.count(), 2U);
  list.become({named(3, "new"), named(8, "d")});
  EXPECT_FALSE(list.names.find("a"));
  EXPECT_FALSE(list.names.find("b"));
  EXPECT_EQ(list.names.find("new"), Serial{3});
  EXPECT_EQ(list.names.find("d"), Serial{8});
  EXPECT_EQ(list.names.count(), 2U);
  list.become({});
  EXPECT_EQ(list.names.count(), 0U);
}

TEST(SnapshotNames, may_be_handed_on) {
  Named list;
  list.become({named(1, "a"), named(2, "b"), named(3, "c")});
  list.become({named(1, "b"), named(2, "a"), named(3, "c", true), named(4, "c")});
  EXPECT_EQ(list.names.find("b"), Serial{1});
  EXPECT_EQ(list.names.find("a"), Serial{2});
  EXPECT_EQ(list.names.find("c"), Serial{4});
  list.become({named(1, "b"), named(2, "a"), named(4, "c")});
  EXPECT_EQ(list.names.find("c"), Serial{4}) << "the one that went had it before";
  EXPECT_EQ(list.names.count(), 3U);
}

}  // namespace
}  // namespace varve::snapshots

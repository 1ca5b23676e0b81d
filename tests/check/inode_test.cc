// Every item against its inode.
#include <sys/stat.h>

#include "checking.h"

namespace varve::check::test {
namespace {

using namespace format;

class Inodes : public testing::Test {
 protected:
  Inodes() {
    file_ = builder_.add_file(kRootIno, "file", 40);
    other_ = builder_.add_file(kRootIno, "other", 40);
    link_ = builder_.add_symlink(kRootIno, "link", "target");
  }

  std::set<Code> with_items(std::function<void(Items&)> change) {
    builder_.change_items = std::move(change);
    return codes(builder_);
  }
  std::set<Code> with_attributes(Ino ino, const std::function<void(Attributes&)>& change) {
    change(builder_.attributes()[ino]);
    return codes(builder_);
  }
  // Changes the extent at block 0 of `file_`.
  std::set<Code> with_extent(const std::function<void(Extent&)>& change) {
    return with_items([&](Items& items) {
      Bytes& value = items[{file_, ItemKind::extent, 0}];
      Extent extent = *decode_extent(value);
      change(extent);
      value.clear();
      encode_extent(extent, value);
    });
  }

  ImageBuilder builder_;
  Ino file_, other_, link_;
};

TEST_F(Inodes, AreFaultlessAtFirst) { EXPECT_EQ(codes(builder_), std::set<Code>{}); }

TEST_F(Inodes, WithoutAttributes) {
  EXPECT_THAT(with_items([&](Items& items) { items.erase({file_, ItemKind::attributes, 0}); }),
              testing::IsSupersetOf({Code::no_attributes, Code::entry_dangling, Code::count_wrong}));
}

TEST_F(Inodes, WithImpossibleValues) {
  EXPECT_THAT(with_items([&](Items& items) { items[{file_, ItemKind::attributes, 0}] = Bytes(3); }),
              testing::Contains(Code::value_damaged));
  EXPECT_THAT(with_items([&](Items& items) { items[{file_, ItemKind::extent, 0}] = Bytes(3); }),
              testing::Contains(Code::value_damaged));
  EXPECT_THAT(with_items([&](Items& items) { items[{file_, ItemKind::extent, kMaxFileBlocks}] = items[{file_, ItemKind::extent, 0}]; }),
              testing::Contains(Code::value_damaged));
  EXPECT_THAT(with_items([&](Items& items) { items[{file_, ItemKind::xattr, 0}] = Bytes(3, std::byte{9}); }),
              testing::Contains(Code::value_damaged));
}

TEST_F(Inodes, NotHandedOutYet) {
  builder_.change_image = [&](Superblock& s) { s.next_ino = link_.v; };
  EXPECT_EQ(codes(builder_), std::set{Code::inode_number_too_high});
}

TEST_F(Inodes, OverlappingExtents) {
  EXPECT_THAT(with_items([&](Items& items) {
                auto node = items.extract(Key{file_, ItemKind::extent, 16});
                node.key().offset = 15;
                items.insert(std::move(node));
              }),
              testing::Contains(Code::extents_overlap));
}

TEST_F(Inodes, SharedBlocks) {
  const auto found = with_items([&](Items& items) {
    items[{file_, ItemKind::extent, 0}] = items[{other_, ItemKind::extent, 0}];
  });
  EXPECT_THAT(found, testing::Contains(Code::claimed_twice));
  const auto device = builder_.build();
  const Report report = run(*device);
  for (const Problem& problem : report.problems.kept())
    if (problem.code == Code::claimed_twice) {
      EXPECT_THAT(problem.detail, testing::AllOf(testing::HasSubstr(fmt::format("inode {} block", file_)),
                                                 testing::HasSubstr(fmt::format("inode {} block", other_))));
    }
  EXPECT_EQ(report.problems.count(Code::claimed_twice), 16U);
}

TEST_F(Inodes, BlocksOutsideTheSegments) {
  EXPECT_THAT(with_extent([&](Extent& e) { e.address = BlockAddr{builder_.super().device_blocks - 8}; }),
              testing::Contains(Code::address_outside));
}

TEST_F(Inodes, BlocksFromTheFuture) {
  EXPECT_THAT(with_extent([](Extent& e) { e.clock = 100'000; }), testing::Contains(Code::clock_from_future));
}

TEST_F(Inodes, WrongNumberOfBlocks) {
  EXPECT_EQ(with_attributes(file_, [](Attributes& a) { ++a.blocks; }), std::set{Code::blocks_wrong});
}

TEST_F(Inodes, BlocksBehindTheEnd) {
  EXPECT_EQ(with_attributes(file_, [](Attributes& a) { a.size = 39 * kBlockSize; }), std::set{Code::extent_past_end});
  EXPECT_EQ(with_attributes(file_, [](Attributes& a) { a.size = 39 * kBlockSize + 1; }), std::set<Code>{});
  builder_.add_unwritten(file_, 100, 10);
  EXPECT_EQ(codes(builder_), std::set<Code>{}) << "fallocate may keep the size";
}

TEST_F(Inodes, BlocksInWhatIsNoFile) {
  EXPECT_THAT(with_attributes(file_, [](Attributes& a) { a.mode = S_IFIFO; }), testing::Contains(Code::item_misplaced));
}

TEST_F(Inodes, Pieces) {
  builder_.set_xattrs(file_, {{"user.big", Bytes(5000, std::byte{1})}});
  EXPECT_EQ(codes(builder_), std::set<Code>{});
  EXPECT_EQ(with_items([&](Items& items) { items.erase({file_, ItemKind::xattr, 1}); }), std::set{Code::pieces_missing});
  EXPECT_EQ(with_items([&](Items& items) { items.erase({file_, ItemKind::xattr, 4}); }), std::set{Code::value_damaged});
  EXPECT_EQ(with_items([&](Items& items) {
              auto node = items.extract(Key{link_, ItemKind::symlink, 0});
              node.key().offset = 1;
              items.insert(std::move(node));
            }),
            std::set{Code::pieces_missing});
}

TEST_F(Inodes, Symlinks) {
  EXPECT_EQ(with_items([&](Items& items) { items.erase({link_, ItemKind::symlink, 0}); }), std::set{Code::symlink_wrong});
  EXPECT_EQ(with_items([&](Items& items) { items[{link_, ItemKind::symlink, 0}].push_back(std::byte{'x'}); }),
            std::set{Code::symlink_wrong});
  EXPECT_EQ(with_items([&](Items& items) { items[{file_, ItemKind::symlink, 0}] = Bytes(1, std::byte{'x'}); }),
            std::set{Code::item_misplaced});
}

class Tails : public Inodes {
 protected:
  Tails() {
    builder_.change_image = builder_.change_super = [](Superblock& s) {
      s.features.incompat |= kIncompatTails;
      s.tails = {kMaxTail, 0};
    };
    builder_.attributes()[file_].size = 40 * kBlockSize + 100;
  }
  // A tail of so many bytes behind the blocks of `file_`, or elsewhere.
  std::set<Code> with_tail(std::size_t bytes, std::uint64_t block = 40) {
    return with_items([&](Items& items) { encode_tail(Bytes(bytes, std::byte{7}), items[{file_, ItemKind::extent, block}]); });
  }
};

TEST_F(Tails, EndWhereTheFileEnds) {
  EXPECT_EQ(with_tail(100), std::set<Code>{});
  EXPECT_EQ(with_tail(60), std::set<Code>{}) << "zeros follow";
  EXPECT_EQ(with_tail(101), std::set{Code::value_damaged}) << "bytes behind the end";
  builder_.attributes()[file_].size = 41 * kBlockSize + 1;
  EXPECT_EQ(with_tail(100), std::set{Code::value_damaged}) << "not the last block";
}

TEST_F(Tails, HaveOnePlaceAndOneFile) {
  EXPECT_THAT(with_tail(100, 3), testing::Contains(Code::extents_overlap));
  EXPECT_THAT(with_tail(100, kMaxFileBlocks), testing::Contains(Code::value_damaged));
  EXPECT_THAT(with_items([&](Items& items) {
                for (const std::uint64_t block : {40, 41}) encode_tail(Bytes(9), items[{file_, ItemKind::extent, block}]);
              }),
              testing::Contains(Code::value_damaged))
      << "a second one";
  EXPECT_THAT(with_items([&](Items& items) { encode_tail(Bytes(9), items[{link_, ItemKind::extent, 0}]); }),
              testing::Contains(Code::item_misplaced));
}

TEST_F(Tails, NeedTheirFeature) {
  builder_.change_image = builder_.change_super = nullptr;
  EXPECT_THAT(with_tail(100), testing::Contains(Code::value_damaged));
}

TEST_F(Inodes, AttributesAgainstTheType) {
  EXPECT_EQ(with_attributes(file_, [](Attributes& a) { a.rdev = 5; }), std::set{Code::attributes_wrong});
  EXPECT_EQ(with_attributes(other_, [](Attributes& a) { a.entries = 5; }), std::set{Code::attributes_wrong});
}

TEST_F(Inodes, LinkCounts) {
  EXPECT_EQ(with_attributes(file_, [](Attributes& a) { a.nlink = 2; }), std::set{Code::link_count_wrong});
}

TEST_F(Inodes, Orphans) {
  const Ino orphan = builder_.add_orphan();
  EXPECT_EQ(codes(builder_), std::set<Code>{});
  EXPECT_EQ(with_items([&](Items& items) { items.erase({kOrphanIno, ItemKind::orphan, orphan.v}); }),
            std::set{Code::not_in_orphans});
  EXPECT_EQ(with_items([&](Items& items) { items[{kOrphanIno, ItemKind::orphan, file_.v}]; }), std::set{Code::orphan_has_links});
  EXPECT_EQ(with_items([&](Items& items) { items[{kOrphanIno, ItemKind::orphan, 9999}]; }), std::set{Code::orphan_missing});
  EXPECT_EQ(with_items([&](Items& items) { items[{file_, ItemKind::orphan, 9}]; }), std::set{Code::item_misplaced});
  EXPECT_EQ(with_items([&](Items& items) { items[{kOrphanIno, ItemKind::xattr, 9}]; }), std::set{Code::item_misplaced});
}

}  // namespace
}  // namespace varve::check::test

// Directories, and how everything hangs together.
#include <dirent.h>
#include <sys/stat.h>

#include "checking.h"

namespace varve::check::test {
namespace {

using namespace format;

class Directories : public testing::Test {
 protected:
  Directories() {
    top_ = builder_.add_directory(kRootIno, "top");
    inner_ = builder_.add_directory(top_, "inner");
    file_ = builder_.add_file(inner_, "file", 2);
  }

  std::set<Code> with_items(std::function<void(Items&)> change) {
    builder_.change_items = std::move(change);
    return codes(builder_);
  }
  std::set<Code> with_attributes(Ino ino, const std::function<void(Attributes&)>& change) {
    change(builder_.attributes()[ino]);
    return codes(builder_);
  }
  // Replaces the entry "file" in `inner_`.
  std::set<Code> with_entry(const Dirent& entry) {
    return with_items([&, entry](Items& items) {
      Bytes& value = items[{inner_, ItemKind::dirent, 3}];
      value.clear();
      encode_dirent(entry, value);
    });
  }
  std::uint64_t hash(std::string_view name) const { return name_hash(name, builder_.super().hash_key); }

  ImageBuilder builder_;
  Ino top_, inner_, file_;
};

TEST_F(Directories, AreFaultlessAtFirst) { EXPECT_EQ(codes(builder_), std::set<Code>{}); }

TEST_F(Directories, NameIndex) {
  EXPECT_EQ(with_items([&](Items& items) { items.erase({inner_, ItemKind::name_hash, hash("file")}); }),
            std::set{Code::entry_not_indexed});
  EXPECT_EQ(with_items([&](Items& items) { encode_cookies(std::vector<std::uint64_t>{3}, items[{inner_, ItemKind::name_hash, 77}]); }),
            std::set{Code::index_without_entry});
  EXPECT_EQ(with_items([&](Items& items) {
              items[{inner_, ItemKind::name_hash, hash("file")}].clear();
              encode_cookies(std::vector<std::uint64_t>{3, 4}, items[{inner_, ItemKind::name_hash, hash("file")}]);
            }),
            std::set{Code::index_without_entry});
  EXPECT_EQ(with_entry({file_, DT_REG, "other name"}), (std::set{Code::entry_not_indexed, Code::index_without_entry}));
}

TEST_F(Directories, SameNameTwice) {
  builder_.add_link(inner_, "file", file_);
  EXPECT_EQ(codes(builder_), std::set{Code::name_twice});
}

TEST_F(Directories, Cookies) {
  EXPECT_EQ(with_attributes(inner_, [](Attributes& a) { a.next_cookie = 3; }), std::set{Code::cookie_wrong});
}

TEST_F(Directories, EntryCount) {
  EXPECT_EQ(with_attributes(inner_, [](Attributes& a) { a.entries = 2; }), std::set{Code::entry_count_wrong});
}

TEST_F(Directories, Entries) {
  EXPECT_THAT(with_entry({Ino{9999}, DT_REG, "file"}),
              testing::UnorderedElementsAre(Code::entry_dangling, Code::link_count_wrong));
  EXPECT_EQ(with_entry({file_, DT_FIFO, "file"}), std::set{Code::entry_type_wrong});
  EXPECT_THAT(with_items([&](Items& items) { items[{inner_, ItemKind::dirent, 3}] = Bytes(2); }),
              testing::Contains(Code::value_damaged));
  EXPECT_THAT(with_items([&](Items& items) { items[{file_, ItemKind::dirent, 3}] = items[{inner_, ItemKind::dirent, 3}]; }),
              testing::Contains(Code::item_misplaced));
}

TEST_F(Directories, Parents) {
  EXPECT_EQ(with_attributes(inner_, [](Attributes& a) { a.parent = kRootIno; }), std::set{Code::parent_wrong});
  EXPECT_EQ(with_attributes(inner_, [](Attributes& a) { a.parent = Ino{}; }),
            (std::set{Code::parent_wrong, Code::attributes_wrong, Code::unconnected}));
}

TEST_F(Directories, TwoNames) {
  builder_.add_link(kRootIno, "again", inner_);
  EXPECT_THAT(codes(builder_), testing::IsSupersetOf({Code::directory_twice, Code::parent_wrong}));
}

TEST_F(Directories, Loops) {
  // inner holds top, top holds inner, and nobody holds top from outside.
  const auto found = with_items([&](Items& items) {
    Bytes& value = items[{inner_, ItemKind::dirent, 3}];
    value.clear();
    encode_dirent({top_, DT_DIR, "file"}, value);
    items[{kRootIno, ItemKind::dirent, 3}].clear();
    encode_dirent({file_, DT_REG, "top"}, items[{kRootIno, ItemKind::dirent, 3}]);
    Attributes a = builder_.attributes()[top_];
    a.parent = inner_;
    items[{top_, ItemKind::attributes, 0}].clear();
    encode_attributes(a, items[{top_, ItemKind::attributes, 0}]);
  });
  EXPECT_EQ(found, (std::set{Code::unconnected, Code::link_count_wrong}));
}

TEST_F(Directories, LinkCounts) {
  EXPECT_EQ(with_attributes(top_, [](Attributes& a) { a.nlink = 2; }), std::set{Code::link_count_wrong});
}

TEST_F(Directories, Root) {
  EXPECT_THAT(with_attributes(kRootIno, [](Attributes& a) { a.mode = S_IFREG; }), testing::Contains(Code::no_root));
}

TEST_F(Directories, RootsParent) {
  EXPECT_EQ(with_attributes(kRootIno, [this](Attributes& a) { a.parent = top_; }), std::set{Code::parent_wrong});
}

}  // namespace
}  // namespace varve::check::test

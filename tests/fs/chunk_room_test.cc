// What one operation changes goes into one chunk, however large it is, and recovery believes no chunk with a larger header.
#include <gtest/gtest.h>

#include "format/chunk.h"
#include "format/codec.h"
#include "fs/acl.h"
#include "fs/inode_util.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

using Value = std::vector<std::byte>;

constexpr std::size_t kAclHeader = 4, kAclEntry = 8;

// An ACL of about so many bytes, not more: as many users as there is room for.
Value acl_of(std::size_t bytes) {
  constexpr std::uint16_t kOwner = 1, kUser = 2, kGroup = 4, kMask = 16, kOther = 32;
  const std::size_t entries = (bytes - kAclHeader) / kAclEntry;
  Value value(kAclHeader + kAclEntry * entries);
  format::Writer out(value);
  out.put<std::uint32_t>(2);
  const auto put = [&](std::uint16_t tag, std::uint32_t id) {
    out.put(tag);
    out.put<std::uint16_t>(7);
    out.put(id);
  };
  put(kOwner, ~0U);
  for (std::uint32_t user = 0; user < entries - 4; ++user) put(kUser, user);
  for (const std::uint16_t tag : {kGroup, kMask, kOther}) put(tag, ~0U);
  return value;
}

class ChunkRoom : public test::MountedTest {
 protected:
  Ino make(std::string_view path, std::uint32_t mode) {
    auto made = fixture_.make(path, mode);
    EXPECT_TRUE(made.ok()) << path << ": " << made.error().message();
    return made.ok() ? made->ino : Ino{};
  }
  Status set(Ino ino, std::string_view name, const Value& value) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().setxattr(op, ino, name, value, 0); });
  }
  Value get(Ino ino, std::string_view name) {
    auto value = fixture_.call([&](Operation& op) { return fixture_.fs().getxattr(op, ino, name); });
    return value.ok() ? *value : Value{};
  }
  void sync() {
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); }).ok());
  }
  void sync_and_crash() {
    sync();
    fixture_.crash();
    const Status mounted = fixture_.mount();
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
  }
  // As an image may have it from a Varve that did not look at the length.
  void set_unchecked(Ino ino, std::string_view name, const Value& value) {
    const Status set = fixture_.call([&](Operation& op) {
      return fixture_.fs().operations().attempt(op, [&](operation::Attempt& a) -> Status {
        const changes::InodePtr inode = TRY(a.inode(ino));
        WriteLock lock(inode->mutex);
        TRY(a.admit({.record_bytes = 512 + value.size(), .places = 8, .item_bytes = value.size()}));
        a.staging().set_xattr(*inode, name, value, value.size());
        return {};
      });
    });
    ASSERT_TRUE(set.ok()) << set.error().message();
  }
};

TEST_F(ChunkRoom, the_longest_default_acl_is_inherited_with_the_longest_name) {
  const Ino top = make("/d", S_IFDIR | 0755);
  EXPECT_TRUE(set(top, kDefaultAcl, acl_of(kMaxDefaultAcl + kAclEntry)).fails_with(Errc::argument_too_big));
  const Value longest = acl_of(kMaxDefaultAcl);
  ASSERT_TRUE(set(top, kDefaultAcl, longest).ok());
  const std::string path = "/d/" + std::string(format::kMaxName, 'n');
  const Ino below = make(path, S_IFDIR | 0777);
  sync_and_crash();
  EXPECT_EQ(*fixture_.resolve(path), below);
  EXPECT_EQ(get(below, kAccessAcl), longest);
  EXPECT_EQ(get(below, kDefaultAcl), longest);
}

TEST_F(ChunkRoom, a_directory_that_would_inherit_too_much_is_refused) {
  const Ino top = make("/d", S_IFDIR | 0755);
  const Value acl = acl_of(format::kMaxXattrValue);
  set_unchecked(top, kDefaultAcl, acl);
  sync();
  EXPECT_TRUE(fixture_.make("/d/below", S_IFDIR | 0777).fails_with(Errc::no_space));
  const Ino file = make("/d/f", S_IFREG | 0777);
  sync_and_crash();
  EXPECT_EQ(*fixture_.resolve("/d/f"), file);
  EXPECT_EQ(get(file, kAccessAcl), acl) << "a file has it once";
  EXPECT_TRUE(fixture_.resolve("/d/below").fails_with(Errc::not_found));
}

TEST_F(ChunkRoom, an_acl_that_changes_with_the_size_counts) {
  for (const std::uint64_t size : {std::uint64_t{10}, std::uint64_t{100'000}}) {
    const Ino file = make("/f" + std::to_string(size), S_IFREG | 0644), other = make("/o" + std::to_string(size), S_IFREG | 0644);
    ASSERT_TRUE(fixture_.write(file, 0, Value(5000)).ok());
    ASSERT_TRUE(set(file, kAccessAcl, acl_of(format::kMaxXattrValue)).ok());
    sync();
    const Value value(format::kMaxXattrValue, std::byte{1});
    ASSERT_TRUE(set(other, "user.x", value).ok());
    AttrChange change;
    change.mode = 0700;
    change.size = size;
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok());
    sync_and_crash();
    EXPECT_EQ(get(other, "user.x"), value);
    EXPECT_EQ(fixture_.getattr(file)->size, size);
    EXPECT_EQ(fixture_.getattr(file)->mode & 0777U, 0700U);
  }
}

}  // namespace
}  // namespace varve::fs

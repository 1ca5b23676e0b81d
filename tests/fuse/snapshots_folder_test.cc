// The folder of ten thousand snapshots: what is asked about one takes no walk over all of them. Work is counted, not time.
#include <optional>
#include <set>

#include "fuse/operations/kept_node.h"
#include "fuse/served_mount.h"
#include "support/fs_fixture.h"

namespace varve::fuse {
namespace {

constexpr std::uint64_t kMany = 10'000;

std::string name_of(std::uint64_t serial) { return "state " + std::to_string(serial); }

class ManySnapshots {
 public:
  ManySnapshots() {
    mount_.initialise();
    mount_.create(1, "file");
    many_.emplace(mount_.fs(), kMany);
  }

  FakeKernel& kernel() { return mount_.kernel(); }
  Reply look_up(const std::string& name) { return kernel().call(FUSE_LOOKUP, kSnapshotsFolder.v, name_bytes(name)); }

  // How many items of snapshots are copied meanwhile.
  template <class Ask>
  std::uint64_t work_of(Ask ask) {
    const std::uint64_t before = many_->copied();
    ask();
    return many_->copied() - before;
  }

  std::set<std::string> list(std::uint32_t opcode) {
    std::set<std::string> names;
    const std::size_t begin = opcode == FUSE_READDIRPLUS ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    for (std::uint64_t from = 0;;) {
      fuse_read_in in{};
      in.offset = from;
      in.size = 4096;
      const Reply reply = kernel().call(opcode, kSnapshotsFolder.v, bytes_of(in));
      EXPECT_EQ(reply.error, 0);
      bool any = false;
      for (std::size_t at = 0; at + begin <= reply.body.size(); any = true) {
        const auto entry = reply.as<fuse_dirent>(at + begin - FUSE_NAME_OFFSET);
        const auto* name = reinterpret_cast<const char*>(reply.body.data() + at + begin);
        names.emplace(name, entry.namelen);
        from = entry.off;
        at += FUSE_REC_ALIGN(begin + entry.namelen);
      }
      if (!any) return names;
    }
  }

 private:
  ServedMount mount_;
  std::optional<test::PretendedSnapshots> many_;
};

TEST(SnapshotsFolder, of_many_finds_one_without_a_walk) {
  ManySnapshots many;
  for (const std::uint64_t serial : {std::uint64_t{1}, kMany / 2, kMany}) {
    Reply reply;
    EXPECT_LE(many.work_of([&] { reply = many.look_up(name_of(serial)); }), 10U);
    ASSERT_EQ(reply.error, 0);
    EXPECT_EQ(KeptNode::decode(Ino{reply.as<fuse_entry_out>().nodeid}).snapshot, Serial{serial});
  }
  EXPECT_EQ(many.work_of([&] { EXPECT_EQ(many.look_up("none").error, ENOENT); }), 0U);
}

TEST(SnapshotsFolder, of_many_has_attributes_without_a_walk) {
  ManySnapshots many;
  int error = -1;
  const auto ask = [&] { error = many.kernel().call(FUSE_GETATTR, kSnapshotsFolder.v, bytes_of(fuse_getattr_in{})).error; };
  EXPECT_EQ(many.work_of(ask), 0U);
  EXPECT_EQ(error, 0);
}

TEST(SnapshotsFolder, of_many_is_listed_with_work_in_proportion) {
  ManySnapshots many;
  for (const std::uint32_t opcode : {FUSE_READDIR, FUSE_READDIRPLUS}) {
    std::set<std::string> names;
    EXPECT_LE(many.work_of([&] { names = many.list(opcode); }), 3 * kMany);
    EXPECT_EQ(names.size(), kMany + 2);
    EXPECT_TRUE(names.contains(name_of(1)) && names.contains(name_of(kMany)));
  }
}

}  // namespace
}  // namespace varve::fuse

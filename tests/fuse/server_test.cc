// Requests as the kernel sends them, served by real threads on a filesystem in memory.
#include "fuse/served_mount.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "base/json_text.h"
#include "control/control.h"
#include "control/older.h"
#include "fuse/protocol/privilege.h"

namespace varve::fuse {
namespace {

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override { mount.initialise(); }
  Reply call(std::uint32_t opcode, std::uint64_t node, const Bytes& body = {}) {
    return mount.kernel().call(opcode, node, body);
  }
  Reply write(std::uint64_t node, std::uint64_t offset, const Bytes& data) {
    fuse_write_in in{};
    in.offset = offset;
    in.size = static_cast<std::uint32_t>(data.size());
    return call(FUSE_WRITE, node, bytes_of(in) + data);
  }
  Reply read(std::uint64_t node, std::uint64_t offset, std::uint32_t size) {
    fuse_read_in in{};
    in.offset = offset;
    in.size = size;
    return call(FUSE_READ, node, bytes_of(in));
  }

  ServedMount mount;
};

TEST_F(ServerTest, MakesWritesReadsAndRemovesAFile) {
  const fuse_entry_out file = mount.create(1, "file");
  EXPECT_GT(file.nodeid, 1U);
  EXPECT_EQ(file.attr.mode, 0100644U);
  EXPECT_EQ(file.entry_valid, kForeverSeconds);
  const Bytes data(300'000, std::byte{0x5A});
  EXPECT_EQ(write(file.nodeid, 10, data).as<fuse_write_out>().size, data.size());
  const Reply back = read(file.nodeid, 0, 1 << 20);
  ASSERT_EQ(back.body.size(), data.size() + 10);
  EXPECT_EQ(back.body[9], std::byte{0});
  EXPECT_EQ(back.body[10], std::byte{0x5A});
  EXPECT_EQ(call(FUSE_FSYNC, file.nodeid, bytes_of(fuse_fsync_in{})).error, 0);
  EXPECT_EQ(call(FUSE_UNLINK, 1, name_bytes("file")).error, 0);
  const Reply gone = call(FUSE_LOOKUP, 1, name_bytes("file"));
  EXPECT_EQ(gone.error, 0);
  EXPECT_EQ(gone.as<fuse_entry_out>().nodeid, 0U) << "a name that the kernel may remember as absent";
  EXPECT_EQ(gone.as<fuse_entry_out>().entry_valid, kForeverSeconds);
}

// A short answer would be the end of the file for the kernel, and what is behind it zeros.
TEST_F(ServerTest, AReadOfMoreThanWasAgreedIsRefusedAndNotCut) {
  const auto file = mount.create(1, "file");
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(write(file.nodeid, i << 20, Bytes(1 << 20, std::byte{0x5A})).error, 0);
  EXPECT_EQ(read(file.nodeid, 0, 1 << 20).body.size(), 1U << 20);
  const Reply refused = read(file.nodeid, 0, (1 << 20) + 4096);
  EXPECT_EQ(refused.error, EIO);
  EXPECT_TRUE(refused.body.empty());
}

TEST_F(ServerTest, LeavesToTheKernelWhatItCanDoByItself) {
  for (const auto opcode :
       {FUSE_OPEN, FUSE_CREATE, FUSE_OPENDIR, FUSE_FLUSH, FUSE_ACCESS, FUSE_INTERRUPT, FUSE_GETLK, FUSE_POLL})
    EXPECT_EQ(call(opcode, 1, Bytes(64)).error, ENOSYS) << opcode;
  EXPECT_EQ(call(63, 1).error, ENOSYS);
  EXPECT_EQ(call(100'000, 1).error, ENOSYS);
}

TEST_F(ServerTest, SeekFindsHolesAndLetsTheKernelWriteBackFirst) {
  const auto file = mount.create(1, "f");
  ASSERT_EQ(write(file.nodeid, 1 << 20, Bytes(4096, std::byte{1})).error, 0);
  const auto seek = [&](std::uint64_t offset, int whence) {
    return call(FUSE_LSEEK, file.nodeid, bytes_of(fuse_lseek_in{0, offset, static_cast<std::uint32_t>(whence), 0}));
  };
  EXPECT_EQ(seek(1 << 20, SEEK_DATA).as<fuse_lseek_out>().offset, 1U << 20);
  EXPECT_EQ(mount.kernel().notifications(), 0U) << "data stays data";
  EXPECT_EQ(seek(0, SEEK_DATA).as<fuse_lseek_out>().offset, 1U << 20);
  EXPECT_EQ(mount.kernel().notifications(), 1U);
  EXPECT_EQ(seek(0, SEEK_HOLE).as<fuse_lseek_out>().offset, 0U);
  EXPECT_EQ(seek(1 << 20, SEEK_HOLE).as<fuse_lseek_out>().offset, (1U << 20) + 4096);
  EXPECT_EQ(mount.kernel().notifications(), 3U);
  EXPECT_EQ(seek(2 << 20, SEEK_DATA).error, ENXIO);
  EXPECT_EQ(seek(0, SEEK_CUR).error, EINVAL);
}

TEST_F(ServerTest, LongNamesAreRefusedInEveryOperation) {
  const Bytes name = name_bytes(std::string(256, 'n'));
  const auto file = mount.create(1, "f");
  EXPECT_EQ(call(FUSE_LOOKUP, 1, name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_UNLINK, 1, name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_RMDIR, 1, name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_MKDIR, 1, bytes_of(fuse_mkdir_in{}) + name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_MKNOD, 1, bytes_of(fuse_mknod_in{}) + name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_SYMLINK, 1, name + name_bytes("t")).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_LINK, 1, bytes_of(fuse_link_in{file.nodeid}) + name).error, ENAMETOOLONG);
  EXPECT_EQ(call(FUSE_RENAME2, 1, bytes_of(fuse_rename2_in{1, 0, 0}) + name_bytes("f") + name).error, ENAMETOOLONG);
}

TEST_F(ServerTest, ListsWithAndWithoutAttributes) {
  for (int i = 0; i < 50; ++i) mount.create(1, "file" + std::to_string(i));
  for (const auto opcode : {FUSE_READDIR, FUSE_READDIRPLUS}) {
    std::vector<std::string> names;
    fuse_read_in in{};
    in.size = 4096;
    for (;;) {
      const Reply reply = call(opcode, 1, bytes_of(in));
      ASSERT_EQ(reply.error, 0);
      if (reply.body.empty()) break;
      ASSERT_LE(reply.body.size(), 4096U);
      for (std::size_t at = 0; at < reply.body.size();) {
        const std::size_t head = opcode == FUSE_READDIRPLUS ? sizeof(fuse_entry_out) : 0;
        const auto entry = reply.as<fuse_dirent>(at + head);
        names.emplace_back(reinterpret_cast<const char*>(reply.body.data()) + at + head + FUSE_NAME_OFFSET,
                           entry.namelen);
        if (head) {
          EXPECT_EQ(reply.as<fuse_entry_out>(at).nodeid == 0, names.back()[0] == '.') << names.back();
        }
        in.offset = entry.off;
        at += FUSE_REC_ALIGN(head + FUSE_NAME_OFFSET + entry.namelen);
      }
    }
    EXPECT_EQ(names.size(), 52U) << "with . and ..";
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), 52U);
  }
}

TEST_F(ServerTest, AttributesChangeAsAsked) {
  const auto file = mount.create(1, "f");
  fuse_setattr_in in{};
  in.valid = FATTR_MODE | FATTR_SIZE | FATTR_MTIME;
  in.mode = 0100600;
  in.size = 12345;
  in.mtime = static_cast<std::uint64_t>(-5);
  in.mtimensec = 7;
  const auto out = call(FUSE_SETATTR, file.nodeid, bytes_of(in)).as<fuse_attr_out>();
  EXPECT_EQ(out.attr.mode, 0100600U);
  EXPECT_EQ(out.attr.size, 12345U);
  EXPECT_EQ(static_cast<std::int64_t>(out.attr.mtime), -5);
  EXPECT_EQ(out.attr.mtimensec, 7U);
  const auto statx = call(kOpStatx, file.nodeid, bytes_of(wire::StatxIn{})).as<wire::StatxOut>();
  EXPECT_EQ(statx.size, 12345U);
  EXPECT_EQ(statx.mtime.seconds, -5);
  EXPECT_GT(statx.btime.seconds, 0);
}

TEST_F(ServerTest, ExtendedAttributesTellTheirSize) {
  const auto file = mount.create(1, "f");
  const Bytes value = bytes_of(std::string("value"));
  const auto set = [&](const std::string& name) {
    fuse_setxattr_in in{};
    in.size = static_cast<std::uint32_t>(value.size());
    return call(FUSE_SETXATTR, file.nodeid, bytes_of(in) + name_bytes(name) + value).error;
  };
  EXPECT_EQ(set("user.a"), 0);
  EXPECT_EQ(set("trusted.b"), 0);
  EXPECT_EQ(set("nonsense"), EOPNOTSUPP);
  EXPECT_EQ(set("user."), EINVAL);
  const auto get = [&](std::uint32_t room) {
    return call(FUSE_GETXATTR, file.nodeid, bytes_of(fuse_getxattr_in{room, 0}) + name_bytes("user.a"));
  };
  EXPECT_EQ(get(0).as<fuse_getxattr_out>().size, value.size());
  EXPECT_EQ(get(4).error, ERANGE);
  EXPECT_EQ(get(100).body, value);
  const auto list = [&] { return call(FUSE_LISTXATTR, file.nodeid, bytes_of(fuse_getxattr_in{100, 0})).body; };
  const bool is_administrator = has_capability(static_cast<std::uint32_t>(::getpid()), CAP_SYS_ADMIN);
  EXPECT_EQ(list(), (is_administrator ? name_bytes("trusted.b") : Bytes()) + name_bytes("user.a"));
  mount.kernel().act_as(0, 0, 0);  // user 0, but no task of which a capability is known
  EXPECT_EQ(list(), name_bytes("user.a"));
  EXPECT_EQ(call(FUSE_REMOVEXATTR, file.nodeid, name_bytes("user.a")).error, 0);
  EXPECT_EQ(call(FUSE_REMOVEXATTR, file.nodeid, name_bytes("user.a")).error, ENODATA);
}

// Of an immutable file the kernel hears of a capability in any case, so that write(2) fails; but of the true one as it is.
TEST_F(ServerTest, ACapabilityOfAnImmutableFileHasItsSize) {
  const Ino with{mount.create(1, "with").nodeid}, without{mount.create(1, "without").nodeid};
  const Bytes value(20, std::byte{3});
  fuse_setxattr_in in{};
  in.size = static_cast<std::uint32_t>(value.size());
  ASSERT_EQ(call(FUSE_SETXATTR, with.v, bytes_of(in) + name_bytes("security.capability") + value).error, 0);
  const auto get = [&](Ino ino, std::uint32_t room) {
    return call(FUSE_GETXATTR, ino.v, bytes_of(fuse_getxattr_in{room, 0}) + name_bytes("security.capability"));
  };
  EXPECT_EQ(get(without, 0).error, ENODATA);
  for (const Ino ino : {with, without}) mount.set_flags(ino, FS_IMMUTABLE_FL);
  EXPECT_EQ(get(with, 0).as<fuse_getxattr_out>().size, value.size());
  EXPECT_EQ(get(with, 20).body, value);
  EXPECT_EQ(get(without, 0).as<fuse_getxattr_out>().size, 1U);
  EXPECT_EQ(get(without, 20).error, ENODATA);
}

// The kernel asks for that with any ACL that is set by somebody outside the group.
TEST_F(ServerTest, OnlyAnAccessAclTakesSetgidAway) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  Bytes acl = bytes_of(std::uint32_t{2});
  const Entry entries[] = {{1, 7, ~0U}, {2, 7, 9}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}};  // owner, user 9, group, mask, others
  for (const Entry& entry : entries) acl = acl + bytes_of(entry);
  const auto directory = call(FUSE_MKDIR, 1, bytes_of(fuse_mkdir_in{02755, 0}) + name_bytes("d")).as<fuse_entry_out>();
  const auto mode_after = [&](const std::string& name) {
    fuse_setxattr_in in{};
    in.size = static_cast<std::uint32_t>(acl.size());
    in.setxattr_flags = FUSE_SETXATTR_ACL_KILL_SGID;
    EXPECT_EQ(call(FUSE_SETXATTR, directory.nodeid, bytes_of(in) + name_bytes(name) + acl).error, 0);
    return call(FUSE_GETATTR, directory.nodeid, bytes_of(fuse_getattr_in{})).as<fuse_attr_out>().attr.mode;
  };
  EXPECT_EQ(mode_after("system.posix_acl_default"), S_IFDIR | 02755U);
  EXPECT_EQ(mode_after("system.posix_acl_access"), S_IFDIR | 0775U);
}

TEST_F(ServerTest, StatusComesInPieces) {
  fuse_ioctl_in in{};
  in.cmd = static_cast<std::uint32_t>(control::kStatusIoctl);
  in.in_size = in.out_size = sizeof(control::StatusPage);
  const Reply reply = call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(control::StatusPage{}));
  ASSERT_EQ(reply.error, 0);
  const auto page = reply.as<control::StatusPage>(sizeof(fuse_ioctl_out));
  ASSERT_LE(page.total, sizeof page.text);
  const auto json = nlohmann::json::parse(std::string(page.text, page.total));
  EXPECT_EQ(json["mount"]["requests"]["init"], 1);
  EXPECT_THAT(json["mount"]["features"], ::testing::Contains("handle_killpriv_v2"));
  in.cmd = 0x12345678;
  EXPECT_EQ(call(FUSE_IOCTL, 1, bytes_of(in) + Bytes(8192)).error, ENOTTY);
}

TEST(JsonText, PathsMayHoldAnyBytes) {
  const std::string text = json_text({{"device", "image-\xff"}});
  EXPECT_EQ(text, "{\"device\":\"image-\uFFFD\"}");
}

TEST_F(ServerTest, AScrubIsStartedStoppedAndReported) {
  if (::getuid() == 0 && !has_capability(static_cast<std::uint32_t>(::getpid()), CAP_SYS_ADMIN)) GTEST_SKIP() << "no CAP_SYS_ADMIN";
  const auto command = [&](const control::ScrubCommand& what) {
    fuse_ioctl_in in{};
    in.cmd = static_cast<std::uint32_t>(control::kScrubIoctl);
    in.in_size = sizeof what;
    return call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(what)).error;
  };
  const auto state = [&] {
    fuse_ioctl_in in{};
    in.cmd = static_cast<std::uint32_t>(control::kScrubReportIoctl);
    in.in_size = in.out_size = sizeof(control::StatusPage);
    const auto page = call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(control::StatusPage{})).as<control::StatusPage>(sizeof(fuse_ioctl_out));
    return nlohmann::json::parse(std::string(page.text, page.total));
  };
  EXPECT_EQ(state()["state"], "never");
  EXPECT_EQ(command({.command = control::ScrubCommand::kStop}), 0);
  EXPECT_EQ(state()["state"], "never");
  EXPECT_EQ(command({.command = 7}), EINVAL);
  EXPECT_EQ(command({.command = control::ScrubCommand::kStart, .flags = 2}), EINVAL);
  ASSERT_EQ(command({.command = control::ScrubCommand::kStart, .flags = 0, .bytes_per_second = 0}), 0);
  while (state()["state"] == "running") std::this_thread::yield();
  const auto end = state();
  EXPECT_EQ(end["state"], "finished");
  EXPECT_EQ(end["errors"], 0);
  EXPECT_TRUE(end["findings"].empty());
  EXPECT_GT(end["verified_blocks"], 0);
}

TEST_F(ServerTest, ManyRequestsAtOnceAllGetTheirOwnReply) {
  const auto file = mount.create(1, "f");
  ASSERT_EQ(write(file.nodeid, 0, Bytes(64 * 4096, std::byte{1})).error, 0);
  std::set<std::uint64_t> waiting;
  for (std::uint64_t i = 0; i < 64; ++i) {
    fuse_read_in in{};
    in.offset = i * 4096;
    in.size = 4096;
    waiting.insert(mount.kernel().send(FUSE_READ, file.nodeid, bytes_of(in)));
    waiting.insert(mount.kernel().send(FUSE_FSYNC, file.nodeid, bytes_of(fuse_fsync_in{})));
  }
  while (!waiting.empty()) {
    const auto reply = mount.kernel().receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error, 0);
    EXPECT_EQ(waiting.erase(reply->unique), 1U);
  }
}

TEST_F(ServerTest, ForgettingNeedsNoReply) {
  const auto file = mount.create(1, "f");
  mount.kernel().send(FUSE_FORGET, file.nodeid, bytes_of(fuse_forget_in{1}));
  mount.kernel().send(FUSE_BATCH_FORGET, 0, bytes_of(fuse_batch_forget_in{1000, 0}) + bytes_of(fuse_forget_one{77, 3}));
  EXPECT_EQ(call(FUSE_STATFS, 1).error, 0) << "the next reply belongs to the next request";
}

TEST_F(ServerTest, DestroyIsAnsweredByWhoeverEndsTheMount) {
  auto end = mount.end();
  const auto unique = mount.kernel().send(FUSE_DESTROY, 0, {});
  EXPECT_EQ(end.get(), 0);
  mount.server().stop();
  mount.session().answer_destroy(0);
  const auto reply = mount.kernel().receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->unique, unique);
  EXPECT_EQ(reply->error, 0);
}

TEST_F(ServerTest, TheEndOfTheConnectionEndsTheMount) {
  auto end = mount.end();
  mount.kernel().hang_up();
  EXPECT_EQ(end.get(), 0);
  mount.server().stop();
}

// Every opcode with bodies of every length and random content: errors perhaps, but it goes on serving.
TEST_F(ServerTest, MalformedMessagesHarmNothing) {
  std::mt19937 random(7);
  const auto file = mount.create(1, "victim");
  for (std::uint32_t opcode = 1; opcode < kOpcodes; ++opcode) {
    if (opcode == FUSE_DESTROY || opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET) continue;
    if (opcode == FUSE_NOTIFY_REPLY) continue;
    for (int round = 0; round < 40; ++round) {
      Bytes body(round < 20 ? static_cast<std::size_t>(round) * 7 : random() % 3000);
      for (std::byte& byte : body) byte = static_cast<std::byte>(round % 3 ? random() : 0);
      const std::uint64_t node = round % 2 ? file.nodeid : round % 5 ? 1 : random();
      const auto reply = call(opcode, node, body);
      ASSERT_NE(reply.error, -1) << "no reply to opcode " << opcode << " with " << body.size() << " bytes";
    }
  }
  EXPECT_EQ(call(FUSE_STATFS, 1).error, 0);
}

TEST_F(ServerTest, MessagesThatAreNoneAreDropped) {
  mount.kernel().send_raw(Bytes(10));
  fuse_in_header header{};
  header.len = 1000;  // more than there is
  header.opcode = FUSE_GETATTR;
  mount.kernel().send_raw(bytes_of(header));
  header.len = 3;
  mount.kernel().send_raw(bytes_of(header));
  EXPECT_EQ(call(FUSE_STATFS, 1).error, 0);
}

}  // namespace
}  // namespace varve::fuse

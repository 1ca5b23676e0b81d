// What kernels before Linux 6.1 leave to the filesystem, or understand in another way.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fuse/protocol/privilege.h"
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

constexpr std::uint32_t kAnn = 1234, kBob = 1235, kTeam = 77;

fuse_init_in offer_of(std::uint32_t minor) {
  fuse_init_in offer = offer_of_a_kernel();
  offer.minor = minor;
  return offer;
}

// A directory of Ann's that hands its group down.
class TeamDirectory {
 public:
  explicit TeamDirectory(std::uint32_t minor) {
    mount_.initialise(offer_of(minor));
    mount_.kernel().act_as(kAnn, kTeam, 0);
    directory_ = make(1, FUSE_MKDIR, "d", 02777).nodeid;
  }

  // The caller is no task here, so that it has no other groups, and no capabilities.
  std::uint32_t mode_made_by(std::uint32_t uid, std::uint32_t gid, std::uint32_t opcode, std::uint32_t mode) {
    mount_.kernel().act_as(uid, gid, 0);
    const fuse_entry_out made = make(directory_, opcode, "f" + std::to_string(++made_), mode);
    EXPECT_EQ(made.attr.gid, kTeam);
    return made.attr.mode & 07777;
  }

 private:
  fuse_entry_out make(std::uint64_t parent, std::uint32_t opcode, const std::string& name, std::uint32_t mode) {
    const Bytes in = opcode == FUSE_MKDIR ? bytes_of(fuse_mkdir_in{mode, 0}) : bytes_of(fuse_mknod_in{S_IFREG | mode, 0, 0, 0});
    const Reply reply = mount_.kernel().call(opcode, parent, in + name_bytes(name));
    EXPECT_EQ(reply.error, 0);
    return reply.as<fuse_entry_out>();
  }

  ServedMount mount_;
  std::uint64_t directory_ = 0;
  int made_ = 0;
};

TEST(OldKernels, LeaveSetgidToWhatSomebodyMakesForAnotherGroup) {
  TeamDirectory directory(36);
  EXPECT_EQ(directory.mode_made_by(kBob, kBob, FUSE_MKNOD, 02775), 0775U);
  EXPECT_EQ(directory.mode_made_by(kBob, kBob, FUSE_MKNOD, 06711), 04711U);
  EXPECT_EQ(directory.mode_made_by(kBob, kTeam, FUSE_MKNOD, 02775), 02775U) << "in the group";
  EXPECT_EQ(directory.mode_made_by(0, 0, FUSE_MKNOD, 02775), 02775U) << "root";
  EXPECT_EQ(directory.mode_made_by(kBob, kBob, FUSE_MKNOD, 02765), 02765U) << "not to be executed by the group";
  EXPECT_EQ(directory.mode_made_by(kBob, kBob, FUSE_MKDIR, 02775), 02775U) << "directories hand it on";
}

TEST(OldKernels, LaterOnesKnowTheGroupsOfTheirCallers) {
  TeamDirectory directory(37);
  EXPECT_EQ(directory.mode_made_by(kBob, kBob, FUSE_MKNOD, 02775), 02775U);
}

// Where FLUSH is not there, fuse_flush() before Linux 5.8 returns before it has written anything back.
TEST(OldKernels, AreAnsweredToFlushSoThatCloseTellsOfErrors) {
  for (const auto& [minor, error] : {std::pair{31U, 0}, std::pair{32U, ENOSYS}}) {
    ServedMount mount;
    mount.initialise(offer_of(minor));
    const auto file = mount.create(1, "f");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(mount.kernel().call(FUSE_FLUSH, file.nodeid, bytes_of(fuse_flush_in{})).error, error) << minor;
  }
}

TEST(Privilege, FurtherGroupsAreThoseOfTheTask) {
  std::vector<gid_t> own(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  ASSERT_EQ(::getgroups(static_cast<int>(own.size()), own.data()), static_cast<int>(own.size()));
  EXPECT_EQ(further_groups(static_cast<std::uint32_t>(::getpid())), std::vector<std::uint32_t>(own.begin(), own.end()));
  EXPECT_TRUE(further_groups(0).empty());
}

TEST(Privilege, CallersThatTheMessageDoesNotTellAreThoseOfTheTask) {
  const auto task = static_cast<std::uint32_t>(::getpid());
  const CallerIds found = caller_ids({kUntold, kUntold}, task);
  EXPECT_EQ(found.uid, ::geteuid());
  EXPECT_EQ(found.gid, ::getegid());
  EXPECT_EQ(caller_ids({7, 8}, task).uid, 7U);
  EXPECT_EQ(caller_ids({kUntold, kUntold}, 0).uid, kUntold) << "there is no such task";
}

}  // namespace
}  // namespace varve::fuse

// What is sent and received is the same: whole snapshots, and steps from one to another, forwards and backwards.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "compare/answer.h"
#include "compare/walked_state.h"
#include "send/receiver.h"
#include "send/sender.h"
#include "send/host_directory.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

// Of the host's filesystem nothing is asked that not all of them have: extended attributes of such sizes and on all kinds of files. That
// these arrive is a matter of a mounted Varve (tests/mount).
send::Bytes without_xattrs(const send::Bytes& stream) {
  send::StreamReader reader(reading(stream));
  send::Bytes bytes;
  send::StreamWriter writer(writing(bytes));
  EXPECT_TRUE(writer.begin(*reader.begin()).ok());
  for (;;) {
    auto record = reader.next();
    if (!record.ok()) ADD_FAILURE() << record.error().message();
    if (!record.ok() || !*record) break;
    if (auto* finish = std::get_if<send::Finish>(&**record)) {
      finish->xattrs.reset();
      finish->flags = 0;
    }
    EXPECT_TRUE(writer.add(**record).ok());
  }
  EXPECT_TRUE(writer.end().ok());
  return bytes;
}

Result<send::Bytes> stream_between(FsFixture& fixture, Serial before, Serial after) {
  send::Bytes bytes;
  const compare::Ask ask = compare::asking(fixture.fs());
  send::Begin begin{{"of a test", after.v, "after"}, {}};
  if (before) begin.base = send::State{"of a test", before.v, "before"};
  TRY(send::Sender(ask, before, after, writing(bytes)).send(begin));
  return bytes;
}

Status receive(const send::Bytes& stream, const std::string& directory) {
  send::StreamReader reader(reading(stream));
  TRY(reader.begin());
  send::Receiver receiver = TRY(send::Receiver::open(directory));
  TRY(receiver.receive(reader));
  return {};
}

// CRC of each block that is not all zeros.
std::map<std::uint64_t, std::uint32_t> blocks_of(const std::string& path, std::uint64_t size) {
  std::map<std::uint64_t, std::uint32_t> blocks;
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NOATIME);
  std::vector<std::byte> block(kBlockSize);
  for (off_t at = ::lseek(fd, 0, SEEK_DATA); at >= 0 && static_cast<std::uint64_t>(at) < size; at = ::lseek(fd, at, SEEK_DATA)) {
    at = at / static_cast<off_t>(kBlockSize) * static_cast<off_t>(kBlockSize);
    std::ranges::fill(block, std::byte{});
    if (::pread(fd, block.data(), block.size(), at) < 0) break;
    const bool is_hole = std::ranges::all_of(block, [](std::byte b) { return b == std::byte{}; });
    if (!is_hole) blocks[static_cast<std::uint64_t>(at) / kBlockSize] = crc32c(block);
    at += static_cast<off_t>(kBlockSize);
  }
  ::close(fd);
  return blocks;
}

// The host may know less of time than Varve.
bool is_usual(const Timestamp& time) { return time.seconds > -1'000'000'000 && time.seconds < 4'000'000'000; }
bool same_time(const Timestamp& time, const timespec& found) {
  return !is_usual(time) || (time.seconds == found.tv_sec && time.nanoseconds == found.tv_nsec);
}

std::string check_inode(const WalkedInode& inode, const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return "is not there";
  const fs::Attr& attr = inode.attr;
  if (status.st_mode != attr.mode && !S_ISLNK(attr.mode)) return fmt::format("mode is {:o}, not {:o}", status.st_mode, attr.mode);
  if (status.st_uid != attr.uid || status.st_gid != attr.gid) return "owner";
  if (!S_ISDIR(attr.mode) && status.st_nlink != inode.names.size())
    return fmt::format("{} links, not {}", status.st_nlink, inode.names.size());
  if ((S_ISCHR(attr.mode) || S_ISBLK(attr.mode)) && status.st_rdev != attr.rdev) return "device number";
  if (!same_time(attr.mtime, status.st_mtim)) return fmt::format("mtime {}, not {}", status.st_mtim.tv_sec, attr.mtime.seconds);
  // Looking at others changes theirs.
  if (S_ISREG(attr.mode) && !same_time(attr.atime, status.st_atim))
    return fmt::format("atime {}, not {}", status.st_atim.tv_sec, attr.atime.seconds);
  if (S_ISREG(attr.mode) && static_cast<std::uint64_t>(status.st_size) != attr.size) return "size";
  if (S_ISREG(attr.mode) && blocks_of(path, attr.size) != inode.blocks) return "content";
  if (S_ISLNK(attr.mode) && std::filesystem::read_symlink(path) != inode.target) return "target";
  return {};
}

std::string check_directory(const std::string& directory, const WalkedState& state) {
  std::map<Ino, ino_t> inodes;
  for (const auto& [path, ino] : state.paths) {
    const std::string here = directory + (path == "/" ? "" : path);
    if (std::string wrong = check_inode(state.inodes.at(ino), here); !wrong.empty()) return path + ": " + wrong;
    struct stat status {};
    ::lstat(here.c_str(), &status);
    if (inodes.emplace(ino, status.st_ino).first->second != status.st_ino) return path + ": is no link to the same file";
  }
  std::size_t found = 1;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) found += !entry.path().empty();
  return found == state.paths.size() ? "" : fmt::format("{} paths, not {}", found, state.paths.size());
}

std::vector<Serial> kept_serials(World& world) {
  std::vector<Serial> serials;
  for (const auto& one : world.fixture.fs().snapshots().snapshots) serials.emplace_back(one.serial);
  return serials;
}

std::string go(World& world, Serial before, Serial after, const std::string& directory) {
  const auto stream = stream_between(world.fixture, before, after);
  if (!stream.ok()) return stream.error().message();
  const auto state = walk(world.fixture, after);
  if (!state.ok()) return state.error().message();
  if (const Status received = receive(without_xattrs(*stream), directory); !received.ok()) return received.error().message();
  return check_directory(directory, *state);
}

TEST(SendAndReceive, follow_what_a_script_has_done) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners";
  World world({});
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("mkdir /d 0755; create /d/f 0644; write /d/f 0 100000 1; mkdir /d/e 0700; create /d/e/g 0600; link /d/e/g /h; symlink /s to; "
      "mkdir /gone 0755; create /gone/x 0644; keep a; pass 1000");
  run("rename /d/e /z move; rename /d /z/d move; unlink /gone/x; rmdir /gone; create /gone 0600; write /z/d/f 50000 100 2; link /z/g /i; "
      "unlink /h; rename /z/g /z/d/e move; truncate /z/d/f 90000; fallocate /z/d/f punch 8192 8192; keep b; pass 1000");
  run("unlink /i; unlink /z/d/e; rename /z/d /z2 move; rename /s /gone exchange; chmod /z2 0711; chown /z2/f 3 4; keep c");
  const auto serials = kept_serials(world);
  HostDirectory host;
  ASSERT_TRUE(good(go(world, {}, serials[0], host.path())));
  ASSERT_TRUE(good(go(world, serials[0], serials[1], host.path())));
  ASSERT_TRUE(good(go(world, serials[1], serials[2], host.path())));
  ASSERT_TRUE(good(go(world, serials[2], serials[0], host.path())));
  ASSERT_TRUE(good(go(world, serials[0], serials[2], host.path())));
}

// A path means another directory afterwards, with files that are new.
TEST(SendAndReceive, follow_directories_that_change_places) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners";
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("mkdir /a 0755; mkdir /b 0755; create /a/gone 0644; create /b/x 0644; "
                                                  "keep one; unlink /a/gone; rename /a /b exchange; create /a/new 0644; "
                                                  "create /b/new 0600; keep two"))));
  const auto serials = kept_serials(world);
  HostDirectory host;
  ASSERT_TRUE(good(go(world, {}, serials[0], host.path())));
  ASSERT_TRUE(good(go(world, serials[0], serials[1], host.path())));
  ASSERT_TRUE(good(go(world, serials[1], serials[0], host.path())));
}

// A program has a file open that has no name any more, or none yet; in another snapshot it has one.
TEST(SendAndReceive, know_files_without_a_name) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners";
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 50000 1; keep one; hold %1 /f; unlink /f; keep two; "
                                                  "tmpfile %2 / 0600; write %2 0 30000 2; keep three; link %2 /g; keep four"))));
  const auto serials = kept_serials(world);
  HostDirectory host;
  Serial at;
  for (const std::size_t next : {0U, 1U, 2U, 3U, 2U, 1U, 0U, 3U, 1U}) {
    ASSERT_TRUE(good(go(world, at, serials[next], host.path()))) << next;
    at = serials[next];
  }
}

TEST(SendAndReceive, take_as_much_as_has_changed) {
  World world({});
  ASSERT_TRUE(good(world.start()));
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(world.fixture.make(fmt::format("/f{}", i), S_IFREG | 0644).ok());
  ASSERT_TRUE(good(run_script(world.steps, script("create /big 0644; write /big 0 4000000 1; keep a; write /big 40960 8192 2; keep b"))));
  const auto serials = kept_serials(world);
  const auto all = stream_between(world.fixture, {}, serials[0]), change = stream_between(world.fixture, serials[0], serials[1]);
  ASSERT_TRUE(all.ok() && change.ok());
  EXPECT_GT(all->size(), 4'000'000U);
  EXPECT_LT(change->size(), 8192U + 1000U);
  EXPECT_GT(change->size(), 8192U);
}

TEST(SendAndReceive, lead_from_any_state_to_any_other) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners";
  const Budget budget(0.6);
  std::uint64_t runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    World world({});
    ASSERT_TRUE(good(world.start()));
    Dice dice(seed);
    ScriptProfile profile;
    profile.names_weight = 70;
    profile.far_percent = 0;  // more than the host may be able to hold
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 5; ++part) {
      for (std::uint64_t i = dice.between(1, 80); i > 0; --i)
        ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      ASSERT_TRUE(good(world.steps.run(step(fmt::format("keep k{}", part))))) << "seed " << seed;
    }
    const auto serials = kept_serials(world);
    HostDirectory host;
    Serial at;
    for (int turn = 0; turn < 6; ++turn) {
      const Serial next = dice.pick(serials);
      ASSERT_TRUE(good(go(world, at, next, host.path()))) << "seed " << seed << fmt::format(", from {} to {}", at, next);
      at = next;
    }
  }
}

}  // namespace
}  // namespace varve::test

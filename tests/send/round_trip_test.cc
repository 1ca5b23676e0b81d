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
#include "compare/walked_state.h"
#include "send/host_directory.h"
#include "send/receiver.h"
#include "send/sender.h"
#include "send/whole_sender.h"
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

Result<send::Bytes> stream_between(FsFixture& fixture, Serial before, Serial after, send::Position position = {}) {
  send::Bytes bytes;
  const compare::Ask ask = test::asking(fixture.fs());
  send::Begin begin{{"of a test", after.v, "after"}, {}};
  if (before) begin.base = send::State{"of a test", before.v, "before"};
  begin.position = position;
  if (before) TRY(send::Sender(ask, before, after, writing(bytes)).send(begin));
  else TRY(send::WholeSender(ask, after, writing(bytes)).send(begin));
  return bytes;
}

Status receive(send::Source source, const std::string& directory, std::uint64_t step = send::Receiver::kStep, bool goes_on = false) {
  send::StreamReader reader(std::move(source));
  const send::Begin begin = TRY(reader.begin());
  send::Receiver receiver = TRY(send::Receiver::open(directory, step));
  TRY(receiver.receive(reader, begin, goes_on ? TRY(receiver.interrupted()) : std::nullopt));
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
  for (const auto& one : world.fixture.fs().snapshots().snapshots) serials.push_back(Serial{one.serial});
  return serials;
}

std::string go(World& world, Serial before, Serial after, const std::string& directory) {
  const auto stream = stream_between(world.fixture, before, after);
  if (!stream.ok()) return stream.error().message();
  const auto state = walk(world.fixture, after);
  if (!state.ok()) return state.error().message();
  const send::Bytes stripped = without_xattrs(*stream);
  if (const Status received = receive(reading(stripped), directory); !received.ok()) return received.error().message();
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

// Its attributes are the same, so that they do not say that it has none: only its blocks differ.
TEST(SendAndReceive, know_files_without_a_name_that_only_their_blocks_tell_of) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners";
  WorldParameters parameters;
  parameters.lockstep.advance_clock = false;
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; create /g 0644; write /f 0 50000 1; write /g 0 50000 1; hold %1 /f; "
                                                  "unlink /f; keep one; write %1 0 20000 2; write /g 0 20000 2; keep two"))));
  const auto serials = kept_serials(world);
  const auto difference = compare::Difference::find(test::asking(world.fixture.fs()), serials[0], serials[1]);
  ASSERT_TRUE(difference.ok());
  for (const auto& [ino, change] : difference->inodes()) EXPECT_TRUE(!change.attributes_differ) << ino.v;
  HostDirectory host;
  ASSERT_TRUE(good(go(world, {}, serials[0], host.path())));
  ASSERT_TRUE(good(go(world, serials[0], serials[1], host.path())));
  ASSERT_TRUE(good(go(world, serials[1], serials[0], host.path())));
}

// Where each record of a stream ends.
std::vector<std::size_t> ends_of_records(const send::Bytes& stream) {
  std::vector<std::size_t> ends;
  std::size_t at = 0;
  send::StreamReader reader([&](std::span<std::byte> out) -> Status {
    std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
    at += out.size();
    return {};
  });
  EXPECT_TRUE(reader.begin().ok());
  for (bool more = true; more;) {
    more = reader.next()->has_value();
    if (more) ends.push_back(at);
  }
  return ends;
}

send::Bytes cut(const send::Bytes& stream, std::size_t length) {
  return {stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(length)};
}

// Interrupted behind each of its records, or in the middle of the next one, whatever was noted of it; it goes on with the same stream, or
// with one that begins where it was.
void interrupt_everywhere(World& world, Serial before, Serial after, std::uint64_t step) {
  const auto whole = before ? stream_between(world.fixture, {}, before) : Result<send::Bytes>(send::Bytes());
  const auto stream = stream_between(world.fixture, before, after);
  const auto state = walk(world.fixture, after);
  ASSERT_TRUE(whole.ok() && stream.ok() && state.ok());
  const std::vector<std::size_t> ends = ends_of_records(*stream);
  for (std::size_t i = 0; i < 2 * ends.size(); ++i) {
    HostDirectory host;
    if (before) {
      ASSERT_TRUE(receive(reading(*whole), host.path()).ok());
    }
    const send::Bytes part = cut(*stream, ends[i / 2] + (i % 2 ? 0 : 3));
    ASSERT_TRUE(receive(reading(part), host.path(), step).fails_with(Errc::corrupt)) << i;
    const auto interrupted = send::Receiver::open(host.path())->interrupted();
    ASSERT_TRUE(interrupted.ok() && *interrupted) << i;
    const send::Position position = (*interrupted)->begin.position;
    EXPECT_LE(position.records, i / 2 + 1);
    EXPECT_GT(position.records + step, i / 2);
    const auto rest = stream_between(world.fixture, before, after, position);
    ASSERT_TRUE(rest.ok()) << rest.error().message();
    EXPECT_LE(rest->size(), stream->size() + 16) << i;
    EXPECT_TRUE(position.records <= 5 || rest->size() < stream->size()) << i;
    const Status done = receive(reading(i % 3 ? *rest : *stream), host.path(), step, true);
    ASSERT_TRUE(done.ok()) << done.error().message() << ", interrupted behind " << i / 2 << " of " << ends.size();
    ASSERT_TRUE(good(check_directory(host.path(), *state))) << "interrupted behind " << i / 2 << " of " << ends.size();
  }
}

TEST(SendAndReceive, go_on_wherever_they_were_interrupted) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners and trusted attributes";
  World world({});
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("mkdir /d 0755; create /d/f 0644; write /d/f 0 400000 1; mkdir /d/e 0700; create /d/e/g 0600; link /d/e/g /h; symlink /s to; "
      "mkdir /gone 0755; create /gone/x 0644; create /gone/y 0644; create /p 0644; write /p 8192 100 1; link /p /d/p; link /p /d/e/p; "
      "mkdir /a 0755; mkdir /b 0755; create /a/1 0644; create /b/2 0600; keep a; pass 1000");
  run("rename /d /z move; rename /d /z/d move; unlink /gone/x; unlink /gone/y; rmdir /gone; create /gone 0600; write /z/d/f 50000 100 2; "
      "link /z/g /i; unlink /h; rename /z/g /z/d/e move; truncate /z/d/f 300000; fallocate /z/d/f punch 8192 8192; rename /a /b exchange; "
      "unlink /b/1; create /a/3 0644; write /a/3 0 9000 3; symlink /t to; link /a/3 /4; keep b");
  const auto serials = kept_serials(world);
  for (const std::uint64_t step : {1U, 4U, 1000U}) {
    interrupt_everywhere(world, {}, serials[0], step);
    interrupt_everywhere(world, {}, serials[1], step);
    interrupt_everywhere(world, serials[0], serials[1], step);
    interrupt_everywhere(world, serials[1], serials[0], step);
  }
}

TEST(SendAndReceive, go_on_after_any_number_of_interruptions) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets owners and trusted attributes";
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("mkdir /d 0755; create /d/f 0644; write /d/f 0 3000000 1; create /g 0600; keep a; "
                                                  "write /d/f 0 2000000 2; rename /g /h move; keep b"))));
  const auto serials = kept_serials(world);
  HostDirectory host;
  Serial before;
  for (const Serial after : serials) {
    const auto state = walk(world.fixture, after);
    send::Position position;
    bool is_done = false;
    for (std::size_t turn = 0; turn < 200 && !is_done; ++turn) {
      const auto stream = stream_between(world.fixture, before, after, turn % 2 ? position : send::Position());
      ASSERT_TRUE(stream.ok());
      const auto ends = ends_of_records(*stream);
      const std::size_t past = turn % 2 ? 0 : position.records;
      const bool is_last = ends.size() <= past + 2;
      is_done = receive(reading(is_last ? *stream : cut(*stream, ends[past + 2])), host.path(), 2, turn > 0).ok();
      ASSERT_EQ(is_done, is_last);
      if (!is_done) position = (*send::Receiver::open(host.path())->interrupted())->begin.position;
    }
    ASSERT_TRUE(is_done);
    ASSERT_TRUE(good(check_directory(host.path(), *state)));
    before = after;
  }
}

TEST(SendAndReceive, do_not_go_on_with_another_stream) {
  if (::geteuid() != 0) GTEST_SKIP() << "sets trusted attributes";
  World world({});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /a 0644; create /b 0644; keep a; create /c 0644; keep b"))));
  const auto serials = kept_serials(world);
  const auto one = stream_between(world.fixture, {}, serials[0]), other = stream_between(world.fixture, {}, serials[1]);
  HostDirectory host;
  ASSERT_FALSE(receive(reading(cut(*one, ends_of_records(*one)[2])), host.path(), 1).ok());
  const Status refused = receive(reading(*other), host.path(), 1, true);
  EXPECT_TRUE(refused.fails_with(Errc::invalid)) << refused.error().message();
  const auto ahead = stream_between(world.fixture, {}, serials[0], (*send::Receiver::open(host.path())->interrupted())->begin.position);
  HostDirectory fresh;
  EXPECT_TRUE(receive(reading(*ahead), fresh.path(), 1, true).fails_with(Errc::invalid));
  ASSERT_TRUE(receive(reading(*ahead), host.path(), 1, true).ok());
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

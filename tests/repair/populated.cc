#include "repair/populated.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "format/chunk.h"
#include "format/superblock.h"
#include "fs/engine.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/crash_scenario.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::repair::test {

using namespace varve::test;

namespace {

std::string start_steps(unsigned files) {
  std::string steps = "mkdir /a 0755; mkdir /a/b 0755; mkdir /many 0755; create /a/file 0644; write /a/file 0 200000 1; checkpoint;";
  for (unsigned i = 0; i < files; ++i) {
    steps += fmt::format("create /many/name-{} 0644; write /many/name-{} 0 {} {};", i, i, 1000 + i * 37, i + 10);
    if (i % (files / 3) == files / 3 - 1) steps += "checkpoint;";
  }
  steps += "write /a/file 50000 60000 2; symlink /link a/file; link /a/file /a/b/hard; setxattr /a/file user.k 2500 3 set; checkpoint;";
  for (unsigned i = 0; i < files; i += 5) steps += fmt::format("unlink /many/name-{};", i);
  return steps + "rename /many/name-1 /a/b/moved move; truncate /a/file 120001; checkpoint; create /late 0644; write /late 0 9000 4";
}

constexpr const char* kUncleanSteps =
    "create /u1 0644; write /u1 0 20000 5; fsync /u1; write /a/file 0 8192 6; mkdir /new 0755; create /new/x 0644;"
    "write /new/x 0 5000 7; fsync /new/x; unlink /many/name-7; rename /late /new/late move; fsync /new; write /u1 4096 4096 8; fsync /u1";

// std::vector compares std::byte one by one.
bool are_same(const std::vector<std::byte>& one, const std::vector<std::byte>& other) {
  return one.size() == other.size() && (one.empty() || std::memcmp(one.data(), other.data(), one.size()) == 0);
}

void read_file(FsFixture& fixture, Ino ino, SeenFile& file) {
  for (std::uint64_t at = 0; at < file.size; at += kBlockSize) {
    auto bytes = fixture.read(ino, at, kBlockSize);
    file.blocks.push_back(bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>{});
  }
}

void look(FsFixture& fixture, Ino directory, const std::string& path, Seen& seen, unsigned depth) {
  const auto entries = fixture.list(directory);
  if (!entries.ok() || depth > 20) {
    seen.error = path + ": " + (entries.ok() ? "too deep" : entries.error().message());
    return;
  }
  for (const ListedEntry& entry : *entries) {
    if (entry.name == "." || entry.name == "..") continue;
    const std::string name = path + "/" + entry.name;
    const auto attr = fixture.lookup(directory, entry.name);
    if (!attr.ok()) {
      seen.error = name + ": " + attr.error().message();
      return;
    }
    seen.paths[name] = attr->ino;
    const auto [at, fresh] = seen.inodes.try_emplace(attr->ino);
    at->second.mode = attr->mode;
    at->second.size = attr->size;
    if (fresh && S_ISREG(attr->mode)) read_file(fixture, attr->ino, at->second);
    if (S_ISDIR(attr->mode)) look(fixture, attr->ino, name, seen, depth + 1);
  }
}

bool is_zero(const std::vector<std::byte>& bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

std::string content_difference(const std::string& path, const SeenFile& expected, const SeenFile& found) {
  if (expected.mode != found.mode) return fmt::format("{}: mode {:o} instead of {:o}", path, found.mode, expected.mode);
  if (S_ISREG(expected.mode) && expected.size != found.size)
    return fmt::format("{}: size {} instead of {}", path, found.size, expected.size);
  for (std::size_t i = 0; i < expected.blocks.size(); ++i)
    if (!found.blocks[i].empty() && found.blocks[i] != expected.blocks[i])
      return fmt::format("{}: block {} has {} content", path, i, is_zero(found.blocks[i]) ? "no" : "other");
  return "";
}

struct Images {
  DurableState clean;
  std::unique_ptr<io::MemDevice> unclean;
};

Images make_images(unsigned files) {
  Images made{prepare({}, script(start_steps(files))), nullptr};
  Recording recording({}, made.clean, script(kUncleanSteps));
  if (!recording.failed().empty()) throw std::runtime_error(recording.failed());
  made.unclean = recording.device().image_now();
  return made;
}

}  // namespace

bool SeenFile::operator==(const SeenFile& other) const {
  return mode == other.mode && size == other.size && std::ranges::equal(blocks, other.blocks, are_same);
}

std::unique_ptr<io::MemDevice> populated_image(bool unclean, unsigned files) {
  static std::map<unsigned, Images> made;
  auto at = made.find(files);
  if (at == made.end()) at = made.emplace(files, make_images(files)).first;
  return unclean ? at->second.unclean->snapshot() : at->second.clean.image->snapshot();
}

Seen look_at(io::BlockDevice& device, const std::string& snapshot, bool read_only) {
  ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);
  SeededRandom random(4711);
  fs::Options options = test_options(clock, random);
  options.snapshot = snapshot;
  options.read_only = read_only || !snapshot.empty();
  FsFixture fixture(device, options);
  Seen seen;
  if (const Status mounted = fixture.mount(); !mounted.ok()) {
    seen.error = "mount: " + mounted.error().message();
    return seen;
  }
  look(fixture, kRootIno, "", seen, 0);
  return seen;
}

namespace {

using Change = snapshots::SnapshotChange;

std::unique_ptr<io::MemDevice> make_with_snapshots(bool unclean) {
  auto device = std::make_unique<io::MemDevice>(24U << 20);
  ManualClock clock;
  SeededRandom random(3);
  EXPECT_TRUE(make_image(*device, {.segment_blocks = 64}).ok());
  FsFixture fixture(*device, test_options(clock, random));
  EXPECT_TRUE(fixture.mount().ok());
  const auto path = [](unsigned directory, unsigned i) { return fmt::format("/d{}/file{}", directory, i); };
  const auto write = [&](unsigned directory, unsigned first, unsigned end, std::uint64_t state) {
    for (unsigned i = first; i < end; ++i) {
      if (!fixture.resolve(path(directory, i)).ok()) {
        EXPECT_TRUE(fixture.make(path(directory, i), 0100644).ok());
      }
      EXPECT_TRUE(fixture.write(*fixture.resolve(path(directory, i)), 0, pattern_bytes(100 * state + i, 0, 5 * kBlockSize)).ok());
    }
  };
  for (unsigned d = 0; d < 4; ++d) {
    EXPECT_TRUE(fixture.make(fmt::format("/d{}", d), 0040755).ok());
    write(d, 0, 30, 1 + d);
  }
  EXPECT_TRUE(fixture.snapshot({Change::Kind::create, "one", {}}).ok());
  for (unsigned i = 0; i < 30; ++i) {
    const Ino directory = *fixture.resolve("/d3");
    EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, directory, fmt::format("file{}", i)); }).ok());
  }
  write(0, 0, 20, 11);
  EXPECT_TRUE(fixture.snapshot({Change::Kind::create, "two", {}}).ok());
  EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().rmdir(op, kRootIno, "d3"); }).ok());
  write(0, 0, 10, 21);
  write(1, 20, 30, 22);
  EXPECT_TRUE(fixture.checkpoint().ok());
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(fixture.move(i).ok());
    EXPECT_TRUE(fixture.checkpoint().ok());
  }
  EXPECT_GT(fixture.store().trees().own_view().tables.places, 0U);
  if (!unclean) {
    EXPECT_TRUE(fixture.unmount().ok());
    return device;
  }
  write(2, 0, 5, 31);
  EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().sync(op); }).ok());
  fixture.crash();
  return device;
}

}  // namespace

std::unique_ptr<io::MemDevice> populated_with_snapshots(bool unclean) {
  static std::map<bool, std::unique_ptr<io::MemDevice>> made;
  auto& image = made[unclean];
  if (!image) image = make_with_snapshots(unclean);
  return image->snapshot();
}

std::vector<std::string> snapshot_names(io::BlockDevice& device) {
  ManualClock clock;
  SeededRandom random(4711);
  fs::Options options = test_options(clock, random);
  options.read_only = true;
  FsFixture fixture(device, options);
  std::vector<std::string> names;
  if (!fixture.mount().ok()) return names;
  for (const fs::SnapshotFacts& one : fixture.fs().snapshots().snapshots) names.push_back(one.name);
  return names;
}

std::vector<BlockAddr> metadata_blocks(const io::MemDevice& device) {
  std::vector<BlockAddr> found;
  std::array<std::byte, kBlockSize> block;
  for (std::uint64_t b = 0; b < device.geometry().blocks(); ++b) {
    device.peek(b * kBlockSize, block);
    if (format::decode_node_header(block).ok() || format::decode_superblock(block).ok() || format::peek_chunk(block).ok())
      found.push_back(BlockAddr{b});
  }
  return found;
}

std::optional<BlockAddr> first_difference(const io::MemDevice& one, const io::MemDevice& other) {
  std::array<std::byte, kBlockSize> a, b;
  for (BlockAddr at{0}; at.v < one.geometry().blocks(); ++at.v) {
    one.peek(at.v * kBlockSize, a);
    other.peek(at.v * kBlockSize, b);
    if (a != b) return at;
  }
  return std::nullopt;
}

bool is_chunk(const io::MemDevice& device, BlockAddr address) {
  std::array<std::byte, kBlockSize> block;
  device.peek(address.v * kBlockSize, block);
  return format::peek_chunk(block).ok();
}

Excuses::Excuses(const ActionLog& actions) {
  for (const Action& action : actions.kept()) {
    if (action.code == ActionCode::log_cut || action.code == ActionCode::superblock_found) all_ = true;
    if (safety_of(action.code) == Safety::lossy && action.ino) ranges_.emplace_back(action.ino, std::max(action.ino, action.last_ino));
    // A part that begins before the first inode.
    if (action.code == ActionCode::items_lost || action.code == ActionCode::old_copy_used)
      ranges_.emplace_back(action.ino, std::max(action.ino, action.last_ino));
  }
}

bool Excuses::cover(Ino ino) const {
  return all_ || std::ranges::any_of(ranges_, [&](const auto& range) { return ino >= range.first && ino <= range.second; });
}

std::string unexcused(const Seen& expected, const Seen& found, const ActionLog& actions) {
  const Excuses excuses(actions);
  if (!found.error.empty()) return found.error;
  for (const auto& [path, ino] : expected.paths) {
    if (excuses.cover(ino)) continue;
    const auto at = found.inodes.find(ino);
    if (at == found.inodes.end()) return fmt::format("{} (inode {}) is gone without a word", path, ino);
    if (auto text = content_difference(path, expected.inodes.at(ino), at->second); !text.empty()) return text;
  }
  for (const auto& [path, ino] : found.paths)
    if (!expected.inodes.contains(ino) && !excuses.cover(ino)) return fmt::format("{} (inode {}) comes from nowhere", path, ino);
  return "";
}

}  // namespace varve::repair::test

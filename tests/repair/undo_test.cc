// fsck.varve --undo-apply: all or nothing, and only where the repair was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "check/checking.h"
#include "remote/open_device.h"
#include "repair/fsck_image.h"
#include "repair/node_surgery.h"
#include "repair/populated.h"
#include "repair/undo.h"
#include "support/fault_device.h"

namespace varve::repair::test {
namespace {

namespace files = std::filesystem;

constexpr std::uint64_t kHeaderBytes = 32;
constexpr std::uint64_t kEndBytes = 32;  // the last record

class Undo : public testing::Test {
 protected:
  // A repair whose undo file has several records.
  Undo() {
    ImageBuilder builder;
    check::test::fill(builder);
    const auto device = builder.build();
    wipe(*device, node_of(builder, format::TreeId::reverse_map, 1));
    wipe(*device, BlockAddr{builder.super().device_blocks - 1});
    image_.save(*device);
    damaged_ = image_.bytes();
    EXPECT_EQ(image_.fsck({"-y", "--undo", undo()}), fsck::kCorrected) << image_.said();
    repaired_ = image_.bytes();
  }

  std::string undo() const { return image_.path("undo"); }

  std::vector<char> file() const {
    std::ifstream in(undo(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_file(const std::vector<char>& bytes) const {
    std::ofstream(undo(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Where the record stands.
  std::uint64_t record(unsigned number) const {
    const auto bytes = file();
    std::uint64_t at = kHeaderBytes;
    for (; number > 0; --number) {
      std::uint32_t blocks;
      std::memcpy(&blocks, bytes.data() + at + 8, sizeof(blocks));
      at += 24 + blocks * kBlockSize;
    }
    return at;
  }

  void expect_refused(const std::vector<std::string>& options, const char* why) {
    const auto before = image_.bytes();
    std::vector<std::string> arguments{"--undo-apply", undo()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(image_.fsck(arguments), fsck::kOperationalError) << image_.said();
    EXPECT_THAT(image_.said(), testing::HasSubstr(why));
    EXPECT_EQ(image_.bytes(), before);
  }

  FsckImage image_;
  std::vector<unsigned char> damaged_, repaired_;
};

TEST_F(Undo, BringsBackEveryByte) {
  EXPECT_NE(repaired_, damaged_);
  EXPECT_EQ(image_.fsck({"--undo-apply", undo()}), fsck::kClean) << image_.said();
  EXPECT_EQ(image_.bytes(), damaged_);
}

TEST_F(Undo, ADamagedFileChangesNothing) {
  const auto good = file();
  ASSERT_LT(record(3), good.size());
  // In the bytes of record 2, its address, its number of blocks, its sequence; in the header.
  for (const std::uint64_t at : {record(2) + 100, record(2), record(2) + 8, record(2) + 16, std::uint64_t{17}}) {
    auto bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(bytes);
    expect_refused({}, "damaged");
    expect_refused({"-f"}, "damaged");
  }
  write_file(std::vector<char>(100, 'x'));
  expect_refused({"-f"}, "not an undo file");
}

// What a repair leaves that was cut off. It can be used, but only if somebody says so.
TEST_F(Undo, AFileWithoutAnEndNeedsForce) {
  const auto good = file();
  for (const std::uint64_t size : {good.size() - 1, good.size() - kEndBytes, record(2) + 500}) {
    write_file(good);
    files::resize_file(undo(), size);
    expect_refused({}, "has no end");
  }
  write_file(good);
  files::resize_file(undo(), good.size() - kEndBytes);
  EXPECT_EQ(image_.fsck({"--undo-apply", undo(), "-f"}), fsck::kClean) << image_.said();
  EXPECT_THAT(image_.said(), testing::HasSubstr("no end"));
  EXPECT_EQ(image_.bytes(), damaged_);
}

TEST_F(Undo, AnotherFilesystemOfTheSameSizeIsRefused) {
  io::MemDevice other(damaged_.size());
  ASSERT_TRUE(varve::test::make_image(other, {.seed = 77}).ok());
  image_.save(other);
  expect_refused({}, "another filesystem");
  expect_refused({"-f"}, "another filesystem");
  image_.save(io::MemDevice(damaged_.size()));
  expect_refused({}, "not as the repair has left it");
}

TEST_F(Undo, WhatWasWrittenToSinceIsRefused) {
  {
    const auto device = remote::open_device(image_.path(), {});
    ASSERT_TRUE(device.ok());
    varve::test::ManualClock clock;
    SeededRandom random(5);
    varve::test::FsFixture fixture(**device, varve::test::test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    EXPECT_TRUE(fixture.make("/new", 0100644).ok());
    EXPECT_TRUE(fixture.unmount().ok());
  }
  expect_refused({}, "not as the repair has left it");
  EXPECT_EQ(image_.fsck({"--undo-apply", undo(), "-f"}), fsck::kClean) << image_.said();
}

// No file of the host may become larger than `bytes`, while this lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &old_), 0);
    const rlimit limit{bytes, old_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileLimit() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &old_), 0);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit old_{};
};

std::vector<std::byte> bytes_at(const io::MemDevice& device, std::uint64_t block) {
  std::vector<std::byte> bytes(kBlockSize);
  device.peek(block * kBlockSize, bytes);
  return bytes;
}

// Zeros that stand for what could not be read are not what was there.
TEST(UndoDevice, WhatCannotBeReadIsNotBroughtBackAsZeros) {
  const std::vector<std::byte> before(kBlockSize, std::byte{1}), after(3 * kBlockSize, std::byte{2});
  for (const std::uint64_t times : {std::uint64_t{4}, varve::test::Fault::kForEver}) {
    const bool passes = times == 4;
    const FsckImage folder;
    io::MemDevice device(16 * kBlockSize);
    for (const std::uint64_t block : {4U, 5U, 6U}) device.poke(block * kBlockSize, before);
    varve::test::FaultDevice faulty(device);
    faulty.add({.kind = io::IoKind::read, .times = times, .touches_block = 5});
    const auto undo = UndoDevice::create(faulty, folder.path("undo"));
    ASSERT_TRUE(undo.ok()) << undo.error().message();
    EXPECT_TRUE((*undo)->write(4 * kBlockSize, after).ok());
    EXPECT_TRUE((*undo)->finish().ok());
    EXPECT_EQ((*undo)->unreadable(), passes ? 0U : 1U);
    const auto applied = apply_undo(faulty, folder.path("undo"), false);
    ASSERT_TRUE(applied.ok()) << applied.error().message();
    EXPECT_EQ(applied->blocks, passes ? 3U : 2U);
    for (const std::uint64_t block : {4U, 6U}) EXPECT_EQ(bytes_at(device, block), before);
    EXPECT_EQ(bytes_at(device, 5), passes ? before : std::vector<std::byte>(kBlockSize, std::byte{2}));
  }
}

// The host takes no more, and then again: what is in the file up to there is good.
TEST(UndoDevice, ARecordThatIsCutShortSpoilsNothing) {
  const FsckImage folder;
  const std::string path = folder.path("undo");
  const std::vector<std::byte> before(kBlockSize, std::byte{1}), after(kBlockSize, std::byte{2});
  for (const bool goes_on : {false, true}) {
    io::MemDevice device(16 * kBlockSize);
    for (const std::uint64_t block : {3U, 5U, 7U}) device.poke(block * kBlockSize, before);
    const auto undo = UndoDevice::create(device, path);
    ASSERT_TRUE(undo.ok()) << undo.error().message();
    EXPECT_TRUE((*undo)->write(3 * kBlockSize, after).ok());
    {
      const FileLimit limit(files::file_size(path) + 100);
      EXPECT_FALSE((*undo)->write(5 * kBlockSize, after).ok());
    }
    EXPECT_TRUE((*undo)->write(7 * kBlockSize, after).ok());
    if (goes_on) {
      EXPECT_TRUE((*undo)->write(5 * kBlockSize, after).ok());
    }
    EXPECT_TRUE((*undo)->finish().ok());
    const auto applied = apply_undo(device, path, false);
    ASSERT_TRUE(applied.ok()) << applied.error().message();
    EXPECT_EQ(applied->blocks, goes_on ? 3U : 2U);
    std::vector<std::byte> found(kBlockSize);
    for (const std::uint64_t block : {3U, 5U, 7U}) {
      device.peek(block * kBlockSize, found);
      EXPECT_EQ(found, before) << "block " << block;
    }
    files::remove(path);
  }
}

}  // namespace
}  // namespace varve::repair::test

// Blocks that cannot be read, or are damaged: they pin their segments and nothing else. Cleaning goes on beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "base/buffer.h"
#include "cleaner/file_layout.h"
#include "cleaner/registry.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kDeviceBytes = 48u << 20;
constexpr std::uint32_t kSegmentBlocks = 64;
constexpr std::uint64_t kStretch = 60;   // blocks of the large file between two of those that stay
constexpr std::uint64_t kStretches = 80;
constexpr std::uint64_t kPieceBytes = 16 * kBlockSize;

// What is logged meanwhile, instead of being shown.
class Listener {
 public:
  Listener() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("heard", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
  }
  ~Listener() { spdlog::set_default_logger(before_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::size_t count(std::string_view words) const {
    const std::string text = text_.str();
    std::size_t found = 0;
    for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
    return found;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

// A file that is never written again has one block in each segment; all else is overwritten and so becomes garbage.
class BadBlocks : public ::testing::Test {
 protected:
  void SetUp() override { start("adaptive"); }
  void TearDown() override { fixture_.crash(); }

  void start(const std::string& strategy) {
    fixture_.crash();
    fixture_.options() = test_options(clock_, random_);
    fixture_.options().strategy = strategy;
    ASSERT_TRUE(make_image(memory_, {.segment_blocks = kSegmentBlocks}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
    auto cold = fixture_.make("/cold", 0100644), hot = fixture_.make("/hot", 0100644);
    ASSERT_TRUE(cold.ok() && hot.ok());
    cold_ = cold->ino;
    hot_ = hot->ino;
    for (std::uint64_t i = 0; i < kStretches; ++i) {
      ASSERT_TRUE(fixture_.write(cold_, i * kBlockSize, pattern_bytes(i + 1, 0, kBlockSize)).ok());
      for (std::uint64_t at = 0; at < kStretch * kBlockSize; at += 15 * kBlockSize)
        ASSERT_TRUE(write(i * kStretch * kBlockSize + at, 15 * kBlockSize));
      ASSERT_TRUE(fixture_.seal().ok());
    }
    ASSERT_TRUE(checkpoint());
  }
  fs::FilesystemStatus status() { return fixture_.fs().status(); }
  meta::Store& store() { return fixture_.fs().engine().store(); }
  bool checkpoint() {
    return fixture_.call([&](fs::Operation& op) { return fixture_.fs().checkpoint(op); }).ok();
  }

  // To the large file; what it says there is remembered by its number.
  bool write(std::uint64_t offset, std::uint64_t bytes) {
    const auto written = fixture_.write(hot_, offset, pattern_bytes(++writes_, 0, bytes));
    if (!written.ok()) failure_ = written.error().message();
    for (std::uint64_t at = 0; at < bytes; at += kBlockSize) content_[offset + at] = {writes_, at};
    return written.ok();
  }
  // Here and there, so many times the size of the device. Empty or the first error.
  std::string overwrite(unsigned times) {
    const std::uint64_t pieces = kStretches * kStretch * kBlockSize / kPieceBytes;
    for (std::uint64_t done = 0; done < times * kDeviceBytes; done += kPieceBytes)
      if (!write(random_.next() % pieces * kPieceBytes, kPieceBytes)) return fmt::format("after {} bytes: {}", done, failure_);
    return "";
  }
  // One block of the file that stays out of each of so many segments.
  std::map<std::uint64_t, BlockAddr> choose(std::size_t count) {
    std::map<std::uint64_t, BlockAddr> chosen;
    std::set<SegmentId> segments;
    const auto part = cleaner::read_layout(store(), cold_, 0, kStretches);
    EXPECT_TRUE(part.ok());
    for (const cleaner::LiveBlock& block : part->blocks)
      if (chosen.size() < count && segments.insert(store().segments().geometry().segment_of(block.address)).second)
        chosen[block.block] = block.address;
    EXPECT_EQ(chosen.size(), count);
    return chosen;
  }
  void make_unreadable(BlockAddr address) {
    faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = address.v});
  }
  void flip_a_bit(BlockAddr address) {
    AlignedBuffer block(kBlockSize);
    ASSERT_TRUE(memory_.read(address.v << kBlockShift, block.span()).ok());
    block.data()[100] ^= std::byte{4};
    ASSERT_TRUE(memory_.write(address.v << kBlockShift, block.span()).ok());
  }
  // The bad ones give errors, all else is as it was written.
  void expect_content(const std::map<std::uint64_t, BlockAddr>& bad) {
    for (std::uint64_t i = 0; i < kStretches; ++i) {
      const auto read = fixture_.read(cold_, i * kBlockSize, kBlockSize);
      EXPECT_EQ(read.ok(), !bad.contains(i)) << "block " << i;
      EXPECT_TRUE(!read.ok() || *read == pattern_bytes(i + 1, 0, kBlockSize)) << "block " << i;
    }
    for (const auto& [offset, what] : content_) {
      const auto read = fixture_.read(hot_, offset, kBlockSize);
      ASSERT_TRUE(read.ok() && *read == pattern_bytes(what.first, what.second, kBlockSize)) << "offset " << offset;
    }
  }

  io::MemDevice memory_{kDeviceBytes};
  FaultDevice faulty_{memory_};
  ManualClock clock_;
  SeededRandom random_{1};
  FsFixture fixture_{faulty_, {}};
  Ino cold_, hot_;
  std::uint64_t writes_ = 0;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> content_;  // by offset: number of the write, place in it
  std::string failure_;
};

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const auto& [name, help] : cleaner::registry().strategies.names()) names.push_back(name);
  names.push_back("threaded:small=compact");
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

class BesideBadBlocks : public BadBlocks, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { start(GetParam()); }
  // Eight times the size of the device is written.
  void expect_room(const std::map<std::uint64_t, BlockAddr>& bad) {
    const Listener heard;
    const std::uint64_t errors = status().lifetime.errors;
    EXPECT_EQ(overwrite(4), "");
    const bool threaded = GetParam().starts_with("threaded");  // needs no cleaning until holes run short
    EXPECT_TRUE(!threaded || fixture_.clean(GetParam()).ok());
    EXPECT_EQ(overwrite(4), "");
    EXPECT_GT(status().segments_cleaned, 10U);
    EXPECT_LE(status().lifetime.errors - errors, bad.size());
    EXPECT_TRUE(status().lifetime.errors > errors || threaded) << "no bad block was met";
    EXPECT_EQ(heard.count("stays where it is"), status().lifetime.errors - errors) << heard.text();
    EXPECT_LE(heard.count("\n"), bad.size() + 5) << heard.text();
    EXPECT_FALSE(status().read_only) << status().read_only_reason;
    expect_content(bad);
  }
};

TEST_P(BesideBadBlocks, one_that_cannot_be_read) {
  const auto bad = choose(1);
  make_unreadable(bad.begin()->second);
  expect_room(bad);
}

TEST_P(BesideBadBlocks, forty_that_are_damaged) {
  const auto bad = choose(40);
  for (const auto& [block, address] : bad) flip_a_bit(address);
  expect_room(bad);
}

TEST_P(BesideBadBlocks, forty_that_cannot_be_read) {
  const auto bad = choose(40);
  for (const auto& [block, address] : bad) make_unreadable(address);
  expect_room(bad);
}

INSTANTIATE_TEST_SUITE_P(All, BesideBadBlocks, ::testing::ValuesIn(strategies()), test_name);

// When it is overwritten, its segment is like any other: nothing of it is remembered.
TEST_F(BadBlocks, a_segment_is_cleaned_again_when_its_bad_block_is_gone) {
  const auto bad = choose(1);
  const SegmentId segment = store().segments().geometry().segment_of(bad.begin()->second);
  make_unreadable(bad.begin()->second);
  ASSERT_EQ(overwrite(2), "");
  EXPECT_GT(store().segments().info(segment).live(), 0U);
  faulty_.heal();
  ASSERT_TRUE(fixture_.write(cold_, bad.begin()->first * kBlockSize, pattern_bytes(bad.begin()->first + 1, 0, kBlockSize)).ok());
  std::set<std::uint64_t> touched{store().segments().info(segment).touched};
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(overwrite(1), "");
    touched.insert(store().segments().info(segment).touched);
  }
  EXPECT_GT(touched.size(), 3U) << "it is not used any more";
  expect_content({});
}

// There is an end to it, and a message.
TEST_F(BadBlocks, nobody_waits_for_ever_on_a_device_that_does_not_answer) {
  const Listener heard;
  faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver});
  EXPECT_NE(overwrite(8), "");
  EXPECT_GT(heard.count("read"), 0U);
  EXPECT_EQ(heard.count("stays where it is"), 0U) << heard.text();
}

// A device that answers nothing says nothing about single blocks: there is an error and an end, and nothing is remembered.
TEST_F(BadBlocks, a_device_that_does_not_answer_is_no_collection_of_bad_blocks) {
  for (const char* strategy : {"copying", "hole-plugging", "compacting"}) {
    start(strategy);
    const std::uint64_t errors = status().lifetime.errors;
    faulty_.add({.kind = io::IoKind::read, .times = Fault::kForEver});
    fs::CleanRequest request;
    request.strategy = strategy;
    for (std::uint64_t at = 0; at < kStretches * kStretch * kBlockSize / 2; at += kPieceBytes)
      if (!write(at, kPieceBytes)) break;
    (void)fixture_.fs().start_clean(request);
    EXPECT_EQ(fixture_.fs().clean_state().phase, fs::CleanState::Phase::failed) << fixture_.fs().clean_state().reason;
    EXPECT_LE(status().lifetime.errors, errors + 1);
    if (status().read_only) continue;  // a checkpoint could not read its nodes
    faulty_.heal();
    EXPECT_EQ(overwrite(2), "") << strategy;
    expect_content({});
  }
}

// What was asked for is done as far as it can be, and the report says why not all of it.
TEST_F(BadBlocks, cleaning_that_is_asked_for_says_what_it_has_left_alone) {
  for (const char* strategy : {"copying", "compacting", "hole-plugging"}) {
    start(strategy);
    for (std::uint64_t at = 0; at < kStretches * kStretch * kBlockSize; at += kPieceBytes) ASSERT_TRUE(write(at, kPieceBytes));
    ASSERT_TRUE(checkpoint());
    const auto bad = choose(2);
    make_unreadable(bad.begin()->second);
    flip_a_bit(std::next(bad.begin())->second);
    fs::CleanRequest request;
    request.strategy = strategy;
    std::uint64_t hits = 0;
    for (int turn = 0; turn < 2; ++turn) {
      ASSERT_TRUE(fixture_.fs().start_clean(request).ok());
      const fs::CleanState state = fixture_.fs().clean_state();
      EXPECT_EQ(state.phase, fs::CleanState::Phase::finished) << state.reason;
      EXPECT_TRUE(state.reason.ends_with("segments left alone because of bad blocks: 2")) << strategy << ": " << state.reason;
      if (turn == 0) hits = faulty_.hits();
      EXPECT_EQ(faulty_.hits(), hits) << strategy << ": it was read again";
    }
    const SegmentId segment = store().segments().geometry().segment_of(bad.begin()->second);
    EXPECT_LE(store().segments().info(segment).live(), 1U) << strategy << ": sound blocks were left there";
    faulty_.heal();
  }
}

}  // namespace
}  // namespace varve::test

// Random pairs of processes that open one image, each by one of its names, with locks or without any, as where they cannot see each
// other's: whatever the order, there is one history.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/buffer.h"
#include "format/make.h"
#include "io/mem_device.h"
#include "lease/leased_device.h"
#include "remote/open_device.h"

namespace varve::lease {
namespace {

constexpr std::uint64_t kImageBytes = 16u << 20;
constexpr std::uint64_t kPlace = 300 * kBlockSize;  // where the history is written
constexpr Times kQuick{.promise_ns = 2000 * kMillisecond,
                       .margin_ns = 1000 * kMillisecond,
                       .settle_ns = 4 * kMillisecond,
                       .look_ns = 20 * kMillisecond};

enum class End : int { refused, lost, released, crashed, violated, failed };

struct History {
  std::uint64_t length = 0, writer = 0;
  bool operator==(const History&) const = default;
};

// What one process tells its parent.
struct Told {
  End end = End::failed;
  std::uint64_t writes = 0;
};

Result<History> read_history(io::BlockDevice& device) {
  AlignedBuffer block(kBlockSize);
  TRY(device.read(kPlace, block.span()));
  History history;
  std::memcpy(&history, block.data(), sizeof history);
  return history;
}

Status write_history(io::BlockDevice& device, const History& history) {
  auto block = AlignedBuffer::zeroed(kBlockSize);
  std::memcpy(block.data(), &history, sizeof history);
  return device.write(kPlace, block.span());
}

class User {
 public:
  User(std::string path, std::uint64_t seed) : path_(std::move(path)), random_(seed), name_(seed) {}

  Told run() {
    rest(15 * kMillisecond);
    io::OpenOptions options;
    options.exclusive = random_.next() % 2 == 0;
    auto opened = remote::open_device(path_, options);
    if (!opened.ok()) return {opened.fails_with(Errc::in_use) ? End::refused : End::failed, 0};
    auto held = LeasedDevice::hold(std::move(opened).value(), {"pairs", ""}, kQuick);
    if (!held.ok()) return {held.fails_with(Errc::in_use) ? End::refused : End::failed, 0};
    const auto device = std::move(held).value();
    const std::uint64_t steps = random_.next() % 12;
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto found = read_history(*device);
      if (!found.ok()) return {End::failed, writes_};
      if (writes_ && *found != mine_) return {End::violated, writes_};
      mine_ = {found->length + 1, name_};
      if (!write_history(*device, mine_).ok()) return {End::lost, writes_};
      ++writes_;
      rest(2 * kMillisecond);
    }
    if (random_.next() % 3 == 0) ::_exit(tell({End::crashed, writes_}));
    return {device->release().ok() ? End::released : End::lost, writes_};
  }

  // To the parent; the process ends with what is returned.
  int tell(const Told& told) const { return ::write(pipe_, &told, sizeof told) == sizeof told ? 0 : 1; }
  void tell_by(int pipe) { pipe_ = pipe; }

 private:
  void rest(std::uint64_t most_ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(random_.next() % most_ns));  // so that others come between
  }

  const std::string path_;
  SeededRandom random_;
  const std::uint64_t name_;
  std::uint64_t writes_ = 0;
  History mine_;
  int pipe_ = -1;
};

class Process {
 public:
  explicit Process(User user) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      spdlog::set_level(spdlog::level::off);
      user.tell_by(ends[1]);
      ::_exit(user.tell(user.run()));
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  Told wait() {
    Told told;
    if (::read(pipe_, &told, sizeof told) != sizeof told) told = {};
    ::close(pipe_);
    ::waitpid(pid_, nullptr, 0);
    return told;
  }

 private:
  pid_t pid_;
  int pipe_;
};

TEST(Pairs, OfRandomOpeningsWriteOneHistory) {
  namespace fs = std::filesystem;
  const char* asked = std::getenv("VARVE_PAIRS");
  const int pairs = asked ? std::atoi(asked) : 40;  // a step that a busy machine makes slow is followed by a wait of seconds
  SeededRandom random(20261123);
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("pairs.{}", ::getpid());
  fs::create_directories(folder / "deeper");
  const std::string image = folder / "image";
  std::ofstream(image) << "";
  fs::resize_file(image, kImageBytes);
  fs::create_hard_link(image, folder / "deeper/link");
  fs::create_symlink(image, folder / "symlink");
  const std::vector<std::string> names = {image, folder / "deeper/link", folder / "symlink", folder / "deeper/../image"};
  {
    format::MakeParameters parameters;
    parameters.device_blocks = kImageBytes / kBlockSize;
    AlignedBuffer block(kBlockSize);
    format::encode_superblock(format::make_filesystem(parameters, random)->super, block.span());
    ASSERT_TRUE((*remote::open_device(image, {}))->write(0, block.span()).ok());
  }
  std::uint64_t length = 0;
  std::map<End, int> ends;
  const auto has_seen_all = [&] {
    return ends[End::refused] > pairs / 20 && ends[End::crashed] > pairs / 20 && ends[End::released] > pairs / 5;
  };
  for (int i = 0; i < pairs || (!has_seen_all() && i < 20 * pairs); ++i) {
    Process first(User(names[random.next() % names.size()], random.next()));
    Process second(User(names[random.next() % names.size()], random.next()));
    for (const Told& told : {first.wait(), second.wait()}) {
      length += told.writes;
      ++ends[told.end];
      ASSERT_NE(told.end, End::violated) << "pair " << i << ": two wrote at the same time";
      ASSERT_NE(told.end, End::failed) << "pair " << i;
    }
    const auto device = remote::open_device(image, {.access = io::Access::read_only});
    ASSERT_TRUE(device.ok());
    ASSERT_EQ(read_history(**device)->length, length) << "pair " << i << ": one history was written over the other";
  }
  EXPECT_TRUE(has_seen_all()) << ends[End::refused] << " refused, " << ends[End::crashed] << " crashed, " << ends[End::released]
                              << " released";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace varve::lease

// Commands of varve(1), run in-process; none of them mounts anything.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "mkfs/writer.h"
#include "remote/open_device.h"
#include "shared/guarded.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/observe/top_text.h"
#include "varve/rescue/dump.h"

namespace varve::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int code;
  std::string out, err;
};

Ran ran(std::vector<const char*> words) {
  words.insert(words.begin(), "varve");
  std::istringstream in;
  std::ostringstream out, err;
  const int code = run(static_cast<int>(words.size()), words.data(), {in, out, err});
  return {code, out.str(), err.str()};
}

TEST(Command, HelpNamesEveryCommand) {
  const Ran help = ran({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"mount", "umount", "status", "top", "map", "dump", "checkpoint", "trim", "clean", "history",
                              "tune", "scrub", "salvage"})
    EXPECT_THAT(help.out, HasSubstr(command));
  EXPECT_THAT(ran({"mount", "--help"}).out, HasSubstr("writeback"));
  const Ran nothing = ran({});
  EXPECT_EQ(nothing.code, 0);
  EXPECT_EQ(nothing.out, help.out);
}

TEST(Command, WrongUseIsAnErrorWithAMessage) {
  for (const auto& words : std::vector<std::vector<const char*>>{
           {"frobnicate"}, {"mount"}, {"mount", "only-one"}, {"dump", "nothing", "image"}, {"status"}}) {
    const Ran result = ran(words);
    EXPECT_EQ(result.code, 1);
    EXPECT_FALSE(result.err.empty());
  }
}

TEST(Command, SaysWhatIsWrongWithWhat) {
  EXPECT_THAT(ran({"status", "/does/not/exist"}).err, HasSubstr("/does/not/exist"));
  EXPECT_THAT(ran({"status", "/proc"}).err, HasSubstr("not a mounted Varve"));
  EXPECT_THAT(ran({"umount", "/proc"}).err, HasSubstr("not a Varve"));
  EXPECT_THAT(ran({"umount", "/does/not/exist"}).err, HasSubstr("/does/not/exist: no such"));
  EXPECT_THAT(ran({"checkpoint", "/proc"}).err, HasSubstr("not a mounted Varve"));
  EXPECT_THAT(ran({"dump", "superblock", "/dev/null"}).err, HasSubstr("/dev/null"));
  EXPECT_THAT(ran({"mount", "image", "directory", "-o", "bogus"}).err, HasSubstr("bogus"));
}

// An image of 16 MiB, for as long as it lives.
class SmallImage {
 public:
  SmallImage(const char* name, std::uint64_t blocks) : path(::testing::TempDir() + name) {
    SeededRandom random(1);
    auto made = format::make_filesystem({.device_blocks = blocks, .label = "", .uuid = {}, .now = {}}, random);
    if (made.ok()) {
      made->super.label = "\xff";  // as older versions allowed it
      made->super.features.compat |= format::kCompatDeviceProfile;
      made->super.device = {512, 7, format::Source::given, format::Source::measured};
    }
    std::ofstream(path).close();
    std::filesystem::resize_file(path, 16 << 20);
    EXPECT_TRUE(made.ok() && mkfs::write_filesystem(**remote::open_device(path, {}), *made, {}).ok());
  }
  ~SmallImage() { std::filesystem::remove(path); }
  SmallImage(const SmallImage&) = delete;
  SmallImage& operator=(const SmallImage&) = delete;

  const std::string path;
};

TEST(Command, DumpFindsBothSuperblocksOfAFilesystemSmallerThanItsImage) {
  const SmallImage image("smaller", 2048);
  const Ran result = ran({"dump", "superblock", "--json", image.path.c_str()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("damaged")));
}

TEST(Command, StatusOfAnImageTellsWhatIsKnownOfItsDevice) {
  const SmallImage image("known", 4096);
  const Ran result = ran({"status", image.path.c_str()});
  EXPECT_THAT(result.out, HasSubstr("2.0 MiB (given)"));
  EXPECT_THAT(result.out, HasSubstr("7 (measured)"));
}

TEST(Command, JsonOfAnyLabelAndPath) {
  const SmallImage image("image-\xff", 4096);
  for (const char* command : {"dump", "status"}) {
    std::vector<const char*> words = {command, "--json", image.path.c_str()};
    if (command == std::string_view("dump")) words.insert(words.begin() + 1, "superblock");
    const Ran result = ran(words);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("\uFFFD"));
  }
}

TEST(Command, TextOfAnyLabelIsNoCommandToATerminal) {
  const SmallImage image("odd", 4096);
  EXPECT_EQ(ran({"label", image.path.c_str()}).out, "\\xff\n");
  EXPECT_THAT(ran({"probe", image.path.c_str()}).out, HasSubstr("LABEL=\"\\xff\""));
  EXPECT_THAT(ran({"status", "-s", image.path.c_str()}).out, HasSubstr("\"\\xff\""));
}

TEST(Command, WhatNoStatusTellsBecomesAMessage) {
  std::ostringstream err;
  EXPECT_EQ(guarded("varve", 7, [] { return 3; }, err), 3);
  EXPECT_EQ(guarded("varve", 7, []() -> int { throw std::runtime_error("no thread"); }, err), 7);
  EXPECT_EQ(guarded("varve", 7, []() -> int { throw std::bad_alloc(); }, err), 7);
  EXPECT_THAT(err.str(), HasSubstr("no thread"));
  EXPECT_THAT(err.str(), HasSubstr("out of memory"));
}

Json status_of_a_mount(std::uint64_t user_blocks, std::uint64_t moved_blocks, std::uint64_t writes) {
  return {{"device", "/dev/disk"},
          {"uptime_seconds", 3725},
          {"space",
           {{"device_blocks", 1000}, {"live_blocks", 250}, {"segment_blocks", 64}, {"utilisation", {0, 1, 0, 0, 2, 2, 0, 0, 0, 3}}}},
          {"traffic", {{"user_blocks_written", user_blocks}, {"cleaned_blocks_written", moved_blocks}, {"write_cost", 1.5}}},
          {"mount", {{"mount_point", "/mnt/here"}, {"requests", {{"write", writes}, {"fsync", 7}}}}}};
}

TEST(TopText, ShowsRatesBetweenTwoStatuses) {
  const std::string text = top_text(status_of_a_mount(1000, 0, 100), status_of_a_mount(1512, 256, 300), 2);
  EXPECT_THAT(text, HasSubstr("/dev/disk on /mnt/here, mounted for 1:02:05"));
  EXPECT_THAT(text, HasSubstr("25.0 % of 3.9 MiB live"));
  EXPECT_THAT(text, HasSubstr("1.0 MiB/s by users"));
  EXPECT_THAT(text, HasSubstr("512.0 KiB/s moved by cleaning"));
  EXPECT_THAT(text, HasSubstr("1.500 now"));
  EXPECT_THAT(text, HasSubstr("write 100"));
  EXPECT_THAT(text, Not(HasSubstr("fsync"))) << "none in between";
  EXPECT_THAT(text, HasSubstr("  40-60 %        4  ####")) << text;
}

TEST(TopText, TheFirstViewIsOfTheWholeMount) {
  const std::string text = top_text(Json(), status_of_a_mount(256, 0, 10), 1);
  EXPECT_THAT(text, HasSubstr("1.0 MiB/s by users"));
  EXPECT_THAT(text, HasSubstr("fsync 7"));
}

TEST(TopText, ManagesWithoutAnything) {
  EXPECT_THAT(top_text(Json(), Json::object(), 0), HasSubstr("Space"));
  EXPECT_THAT(top_text(status_of_a_mount(9, 9, 9), status_of_a_mount(1, 1, 1), 1), HasSubstr(" - now")) << "mounted anew";
}

TEST(DumpText, IsReadableAndComplete) {
  const Json json{
      {"number", 5}, {"flat", {{"a", 1}, {"b", "two"}}}, {"list", {{{"x", 1}, {"y", 2}}, {{"x", 3}, {"y", 4}}}}};
  const std::string text = dump_text(json);
  EXPECT_THAT(text, HasSubstr("number               5\n"));
  EXPECT_THAT(text, HasSubstr("a 1  b two\n"));
  EXPECT_THAT(text, HasSubstr("  x 3  y 4\n"));
}

TEST(StatusText, LeavesOutWhatIsNotKnown) {
  const std::string text =
      status_text(Json{{"label", "named"}, {"space", {{"device_blocks", 256}, {"live_blocks", 64}}}});
  EXPECT_THAT(text, HasSubstr("named"));
  EXPECT_THAT(text, HasSubstr("1.0 MiB"));
  EXPECT_THAT(text, HasSubstr("(25.0 %)"));
  EXPECT_THAT(text, Not(HasSubstr("Cleaner")));
}

TEST(StatusText, WaitsAreNamedIfThereWereAny) {
  const Json waits{{"space", {{"times", 4}, {"total_us", 6000}, {"longest_us", 2500}}}, {"node", {{"times", 0}}}};
  const std::string text = status_text(Json{{"label", "named"}, {"waits", waits}});
  EXPECT_THAT(text, HasSubstr("Clean segments            4 times, 1.50 ms each, 2.50 at most"));
  EXPECT_THAT(text, Not(HasSubstr("Tree nodes")));
}

TEST(StatusText, Sizes) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(1ULL << 50), "1.0 PiB");
}

}  // namespace
}  // namespace varve::tool

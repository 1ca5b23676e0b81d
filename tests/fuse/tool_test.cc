// Commands of varve(1), run in-process; none of them mounts anything.
#include <gmock/gmock.h>

#include <sstream>

#include "varve/command.h"
#include "varve/dump.h"
#include "varve/status_text.h"

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
  for (const char* command : {"mount", "umount", "status", "dump", "checkpoint", "trim", "scrub", "salvage"})
    EXPECT_THAT(help.out, HasSubstr(command));
  EXPECT_THAT(ran({"mount", "--help"}).out, HasSubstr("writeback"));
}

TEST(Command, WrongUseIsAnErrorWithAMessage) {
  for (const auto& words : std::vector<std::vector<const char*>>{
           {}, {"frobnicate"}, {"mount"}, {"mount", "only-one"}, {"dump", "nothing", "image"}, {"status"}}) {
    const Ran result = ran(words);
    EXPECT_EQ(result.code, 1);
    EXPECT_FALSE(result.err.empty());
  }
}

TEST(Command, SaysWhatIsWrongWithWhat) {
  EXPECT_THAT(ran({"status", "/does/not/exist"}).err, HasSubstr("/does/not/exist"));
  EXPECT_THAT(ran({"status", "/proc"}).err, HasSubstr("not a mounted Varve"));
  EXPECT_THAT(ran({"umount", "/proc"}).err, HasSubstr("not a Varve"));
  EXPECT_THAT(ran({"umount", "/does/not/exist"}).err, HasSubstr("not a mount point"));
  EXPECT_THAT(ran({"checkpoint", "/proc"}).err, HasSubstr("not a mounted Varve"));
  EXPECT_THAT(ran({"dump", "superblock", "/dev/null"}).err, HasSubstr("/dev/null"));
  EXPECT_THAT(ran({"mount", "image", "directory", "-o", "bogus"}).err, HasSubstr("bogus"));
}

TEST(DumpText, IsReadableAndComplete) {
  const Json json{
      {"number", 5}, {"flat", {{"a", 1}, {"b", "two"}}}, {"list", {{{"x", 1}, {"y", 2}}, {{"x", 3}, {"y", 4}}}}};
  const std::string text = dump_text(json);
  EXPECT_THAT(text, HasSubstr("number               5\n"));
  EXPECT_THAT(text, HasSubstr("a 1  b two\n"));
  EXPECT_THAT(text, HasSubstr("  x 3  y 4\n"));
}

TEST(DumpText, NamesOfAnyBytesAreShown) {
  EXPECT_EQ(printable("plain"), "plain");
  EXPECT_EQ(printable(std::string_view("\n\\\xff", 3)), "\\x0a\\x5c\\xff");
}

TEST(StatusText, LeavesOutWhatIsNotKnown) {
  const std::string text =
      status_text(Json{{"label", "named"}, {"space", {{"device_blocks", 256}, {"live_blocks", 64}}}});
  EXPECT_THAT(text, HasSubstr("named"));
  EXPECT_THAT(text, HasSubstr("1.0 MiB"));
  EXPECT_THAT(text, HasSubstr("(25.0 %)"));
  EXPECT_THAT(text, Not(HasSubstr("Cleaner")));
}

TEST(StatusText, Sizes) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(1ULL << 50), "1.0 PiB");
}

}  // namespace
}  // namespace varve::tool

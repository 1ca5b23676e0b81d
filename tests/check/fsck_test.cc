// The fsck command: options, exit codes, both outputs.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checking.h"
#include "checkpoint/superblocks.h"
#include "format/chunk.h"
#include "fsck/command.h"
#include "fsck/recovery.h"
#include "remote/open_device.h"

namespace varve::check::test {
namespace {

namespace files = std::filesystem;

// Each look at it is a second later.
class HurryingClock : public Clock {
 public:
  Timestamp now() override { return Clock::system().now(); }
  std::uint64_t monotonic_ns() override { return now_ns_ += 1'000'000'000; }

 private:
  std::uint64_t now_ns_ = 0;
};

class FsckCommand : public testing::Test {
 protected:
  FsckCommand() {
    char path[] = "/tmp/varve-fsck-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~FsckCommand() override { files::remove_all(folder_); }

  int fsck(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fsck.varve");
    arguments.push_back(image());
    std::vector<const char*> argv;
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    out_.str("");
    err_.str("");
    return fsck::run(static_cast<int>(argv.size()), argv.data(), {out_, err_, terminal_, fsck::recover, clock_});
  }
  std::string image() const { return folder_ / "image"; }
  void save(ImageBuilder& builder) { ASSERT_TRUE(builder.build()->save(image()).ok()); }

  HurryingClock clock_;
  files::path folder_;
  std::ostringstream out_, err_;
  bool terminal_ = false;
};

TEST_F(FsckCommand, CleanIsZero) {
  ImageBuilder builder;
  fill(builder);
  save(builder);
  EXPECT_EQ(fsck({}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("no errors"));
  EXPECT_EQ(fsck({"-n", "-f", "--data"}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("data blocks verified"));
  EXPECT_EQ(fsck({"-p"}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("not checked further"));
  EXPECT_EQ(fsck({"-a", "-f"}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("no errors"));
}

// As a clean scrub does; but only a check that has read everything, and may write.
TEST_F(FsckCommand, AllDataReadEndsTheErrorsOfBefore) {
  using Options = std::vector<std::string>;
  ImageBuilder builder;
  fill(builder);
  const auto device = builder.build();
  format::Superblock super = checkpoint::read_superblocks(*device)->best;
  super.lifetime.errors = 2;
  super.last_error.code = 1;
  super.last_error.when.seconds = 1000;
  ASSERT_TRUE(checkpoint::write_superblocks(*device, super, [&] { return device->flush(); }, super.device_blocks).ok());
  const auto mark = [this] { return checkpoint::read_superblocks(**io::MemDevice::load(image()))->best.scrub; };
  for (const Options& with : {Options{"-y", "--data"}, Options{"-p", "--data"}, Options{"-p", "-f", "--data"}}) {
    ASSERT_TRUE(device->save(image()).ok());
    for (const Options& without : {Options{"-n", "--data"}, Options{"-y"}, Options{"-p"}, Options{"-p", "-f"}}) {
      EXPECT_EQ(fsck(without), 0) << err_.str();
      EXPECT_THAT(out_.str(), testing::Not(testing::HasSubstr("not checked further"))) << "errors were met";
      EXPECT_EQ(mark(), format::ScrubMark{});
    }
    EXPECT_EQ(fsck(with), 0) << err_.str();
    EXPECT_THAT(out_.str(), testing::HasSubstr("the errors of before are over"));
    EXPECT_GT(mark().started, 1000);
    EXPECT_GE(mark().finished, mark().started);
    EXPECT_EQ(mark().errors, 0U);
    EXPECT_EQ(fsck(with), 0) << err_.str();
    EXPECT_THAT(out_.str(), testing::Not(testing::HasSubstr("are over")));
  }
}

TEST_F(FsckCommand, MemoryThatIsTooLittleIsToldBefore) {
  ImageBuilder builder;
  fill(builder);
  save(builder);
  EXPECT_EQ(fsck({"--memory", "1M"}), 8);
  const std::string said = err_.str();
  const auto at = said.find("takes up to ");
  ASSERT_NE(at, std::string::npos) << said;
  const int needed = std::stoi(said.substr(at + 12));
  EXPECT_EQ(fsck({"--memory", fmt::format("{}M", needed)}), 0) << err_.str();
  EXPECT_EQ(fsck({"--memory", fmt::format("{}M", needed - 1)}), 8);
}

// The superblock does not know of more names than inodes: where they do not fit, names are not compared, and that is said.
TEST_F(FsckCommand, MoreNamesThanFitAreNotCompared) {
  ImageBuilder builder;
  const Ino file = builder.add_file(kRootIno, "file", 1);
  for (int i = 0; i < 30000; ++i) builder.add_link(kRootIno, fmt::format("link {}", i), file);
  const auto device = builder.build();
  const std::uint64_t least = memory_for(builder.super());
  const auto bounded = check(*device, {.memory_bytes = least + (64 << 10)});
  ASSERT_TRUE(bounded.ok()) << bounded.error().message();
  EXPECT_EQ(bounded->problems.count(Code::not_compared), 1U);
  EXPECT_EQ(bounded->errors(), 0U);
  const auto enough = check(*device, {.memory_bytes = least + (16 << 20)});
  ASSERT_TRUE(enough.ok());
  EXPECT_EQ(enough->problems.count(Code::not_compared), 0U);
}

TEST_F(FsckCommand, ErrorsAreFour) {
  ImageBuilder builder;
  fill(builder);
  builder.change_image = [](format::Superblock& s) { ++s.inodes; };
  save(builder);
  EXPECT_EQ(fsck({}), 4);
  EXPECT_THAT(out_.str(), testing::HasSubstr("E108"));
  EXPECT_THAT(out_.str(), testing::HasSubstr("nothing was changed"));
  EXPECT_EQ(fsck({"--json"}), 4);
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["verdict"], "damaged");
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["problems"][0]["name"], "count_wrong");
  EXPECT_EQ(json["problems"][0]["code"], 108);
}

TEST_F(FsckCommand, RepairsAreOne) {
  ImageBuilder builder;
  fill(builder);
  builder.change_image = [](format::Superblock& s) { ++s.inodes; };
  save(builder);
  EXPECT_EQ(fsck({"-y"}), 1);
  EXPECT_THAT(out_.str(), testing::HasSubstr("1 error found and repaired"));
  EXPECT_EQ(fsck({"-f", "--data"}), 0);
  save(builder);
  EXPECT_EQ(fsck({"-p", "-f", "--json"}), 1) << "counts are safe";
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["verdict"], "repaired");
  EXPECT_EQ(json["errors_left"], 0);
  EXPECT_EQ(json["problems"][0]["done"], true);
  EXPECT_EQ(json["problems"][0]["repair"], "computed anew");
}

TEST_F(FsckCommand, NamesTheFilesWithProblems) {
  ImageBuilder builder;
  fill(builder);
  const Ino folder = builder.add_directory(kRootIno, "a folder");
  const Ino file = builder.add_file(folder, "x\x1b[2J\xff", 1);
  builder.attributes()[file].nlink = 7;
  save(builder);
  EXPECT_EQ(fsck({"-n"}), 4);
  EXPECT_THAT(out_.str(), testing::HasSubstr(fmt::format("inode {} (a folder/x\\x1b[2J\\xff): the link count", file.v)));
  EXPECT_EQ(fsck({"-n", "--json"}), 4);
  EXPECT_EQ(nlohmann::json::parse(out_.str())["problems"][0]["path"], "a folder/x\x1b[2J\uFFFD");
}

TEST_F(FsckCommand, PreeningLosesNothing) {
  ImageBuilder builder;
  fill(builder);
  const Ino lost = builder.add_file(Ino{}, "", 2);
  builder.attributes()[lost].nlink = 1;
  save(builder);
  EXPECT_EQ(fsck({"-p", "-f"}), 4);
  EXPECT_THAT(out_.str(), testing::HasSubstr("fsck.varve -y"));
  EXPECT_EQ(fsck({"-n"}), 4) << "nothing was changed";
  EXPECT_EQ(fsck({"-y"}), 1);
  EXPECT_EQ(fsck({"-n"}), 0);
}

TEST_F(FsckCommand, UndoBringsEverythingBack) {
  ImageBuilder builder;
  fill(builder);
  builder.change_image = [](format::Superblock& s) { ++s.inodes; };
  save(builder);
  const auto before = io::MemDevice::load(image());
  const std::string undo = folder_ / "undo";
  EXPECT_EQ(fsck({"-y", "--undo", undo}), 1);
  EXPECT_EQ(fsck({"-y", "--undo", undo}), 8) << "an undo file is never overwritten";
  EXPECT_EQ(fsck({"-n"}), 0);
  EXPECT_EQ(fsck({"--undo-apply", undo}), 0) << err_.str();
  const auto after = io::MemDevice::load(image());
  ASSERT_TRUE(before.ok() && after.ok());
  std::vector<std::byte> a((*before)->geometry().size_bytes), b(a.size());
  (*before)->peek(0, a);
  (*after)->peek(0, b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(fsck({"-n"}), 4);
  EXPECT_EQ(fsck({"--undo-apply", image()}), 8);
}

TEST_F(FsckCommand, OperationalErrorsAreEight) {
  EXPECT_EQ(fsck({}), 8);
  EXPECT_THAT(err_.str(), testing::HasSubstr("no such"));
  io::MemDevice empty(16 << 20);
  ASSERT_TRUE(empty.save(image()).ok());
  EXPECT_EQ(fsck({}), 8);
  EXPECT_THAT(err_.str(), testing::HasSubstr("not a Varve filesystem"));
  ImageBuilder builder;
  save(builder);
  const auto holder = remote::open_device(image(), {});
  ASSERT_TRUE(holder.ok());
  EXPECT_EQ(fsck({}), 8) << "in use";
}

TEST_F(FsckCommand, WrongUsageIsSixteen) {
  EXPECT_EQ(fsck({"--nonsense"}), 16);
  EXPECT_EQ(fsck({"-n", "-y"}), 16);
  EXPECT_EQ(fsck({"-p", "-y"}), 16);
  EXPECT_EQ(fsck({"one too many"}), 16);
}

// The image would get its number, and the progress its first block.
TEST_F(FsckCommand, ADescriptorThatIsClosedIsWrongUsage) {
  ImageBuilder builder;
  fill(builder);
  save(builder);
  const int closed = ::dup(0);
  ASSERT_GT(closed, 0);
  ::close(closed);
  EXPECT_EQ(fsck({"-y", fmt::format("-C{}", closed)}), 16);
  EXPECT_THAT(err_.str(), testing::HasSubstr("is not open"));
  EXPECT_EQ(fsck({"-n", "-f"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("no errors"));
}

TEST_F(FsckCommand, OutputThatCannotBeWrittenIsEight) {
  ImageBuilder builder;
  fill(builder);
  save(builder);
  const std::string path = image();
  for (const char* form : {"--json", "-f"}) {
    std::ofstream full("/dev/full");
    const char* arguments[] = {"fsck.varve", form, path.c_str()};
    err_.str("");
    EXPECT_EQ(fsck::run(3, arguments, {full, err_, false, fsck::recover}), 8);
    EXPECT_THAT(err_.str(), testing::HasSubstr("output"));
  }
}

TEST_F(FsckCommand, ProgressGoesWhereItIsWanted) {
  ImageBuilder builder;
  fill(builder);
  save(builder);
  EXPECT_EQ(fsck({"-C"}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("inodes: "));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(fsck({fmt::format("-C{}", ends[1])}), 0);
  EXPECT_EQ(fsck({"-C", fmt::format("{}", ends[1])}), 0);
  char buffer[100] = {};
  ASSERT_GT(::read(ends[0], buffer, sizeof(buffer) - 1), 0);
  EXPECT_THAT(buffer, testing::StartsWith("1 "));
  ::close(ends[0]);
  ::close(ends[1]);
  terminal_ = true;
  EXPECT_EQ(fsck({}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("\r"));
}

TEST_F(FsckCommand, UncleanIsRecovered) {
  ImageBuilder builder;
  builder.change_image = [](format::Superblock& s) { s.clean = false; };
  const auto device = builder.build();
  format::ChunkHeader header;
  header.identity = builder.super().identity;
  header.epoch = builder.super().epoch;
  header.lsn = Lsn{1};
  header.header_blocks = 1;
  header.address = builder.super().chain.start;
  header.run = builder.super().chain;
  std::array<std::byte, kBlockSize> block;
  format::encode_chunk(header, {}, block);
  device->poke(header.address.v * kBlockSize, block);
  ASSERT_TRUE(device->save(image()).ok());
  EXPECT_EQ(fsck({}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("replayed by the next mount"));
  EXPECT_EQ(fsck({"--json"}), 0);
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["verdict"], "clean");
  EXPECT_EQ(json["actions"][0]["name"], "log_replayed");
  EXPECT_EQ(fsck({"-y"}), 1);
  EXPECT_EQ(fsck({"-p"}), 0);
  EXPECT_THAT(out_.str(), testing::HasSubstr("not checked further"));
}

}  // namespace
}  // namespace varve::check::test

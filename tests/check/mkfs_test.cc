// What mkfs makes is a filesystem without a fault.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/crc32c.h"
#include "checking.h"
#include "mkfs/command.h"
#include "mkfs/writer.h"
#include "remote/open_device.h"

namespace varve::check::test {
namespace {

namespace files = std::filesystem;

class TestClock : public Clock {
 public:
  Timestamp now() override { return {1'700'000'000, 0}; }
  std::uint64_t monotonic_ns() override { return 0; }
};

class MkfsCommand : public testing::Test {
 protected:
  MkfsCommand() {
    char path[] = "/tmp/varve-mkfs-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~MkfsCommand() override { files::remove_all(folder_); }

  int mkfs(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "mkfs.varve");
    std::vector<const char*> argv;
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    out_.str("");
    err_.str("");
    return mkfs::run(static_cast<int>(argv.size()), argv.data(), {out_, err_, clock_, random_});
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, std::uint64_t offset, std::string_view bytes) {
    const int fd = ::open(path(name).c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)), static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
  std::uint32_t checksum_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    return crc32c(std::as_bytes(std::span(bytes)));
  }
  void expect_clean_image(const std::string& name) {
    const auto device = remote::open_device(path(name), {.access = io::Access::read_only});
    ASSERT_TRUE(device.ok()) << device.error().message();
    expect_clean(**device);
  }

  files::path folder_;
  std::ostringstream out_, err_;
  TestClock clock_;
  SeededRandom random_{1};
};

TEST(Mkfs, EverySizeIsClean) {
  constexpr std::uint64_t kMega = 256;
  for (const std::uint64_t blocks : {8 * kMega, 8 * kMega + 1, 64 * kMega - 1, 64 * kMega, 1000 * kMega + 77, 64 * 1024 * kMega})
    for (const std::uint32_t segment : {0U, 64U, 512U}) {
      if (segment * 16 > blocks - 300) continue;
      SeededRandom random(blocks);
      const auto made = format::make_filesystem({.device_blocks = blocks, .segment_blocks = segment, .label = {}, .uuid = {},
                                                 .now = {}}, random);
      ASSERT_TRUE(made.ok()) << made.error().message();
      io::MemDevice device(blocks * kBlockSize);
      ASSERT_TRUE(mkfs::write_filesystem(device, *made, {}).ok());
      expect_clean(device);
    }
}

TEST(Mkfs, NothingOfAnEarlierFilesystemIsFound) {
  ImageBuilder builder;
  fill(builder);
  const auto device = builder.build();
  SeededRandom random(5);
  const auto made = format::make_filesystem({.device_blocks = 16384, .label = {}, .uuid = builder.super().uuid, .now = {}}, random);
  ASSERT_TRUE(mkfs::write_filesystem(*device, *made, {}).ok());
  expect_clean(*device);
  EXPECT_EQ(run(*device).statistics.inodes, 1U);
}

TEST_F(MkfsCommand, MakesAnImage) {
  ASSERT_EQ(mkfs({"--size", "64M", "-L", "data", path("a")}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("64 MiB"));
  EXPECT_EQ(files::file_size(path("a")), 64U << 20);
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 2 << 20) << "not sparse";
  expect_clean_image("a");
}

TEST_F(MkfsCommand, TellsJsonTheSame) {
  ASSERT_EQ(mkfs({"--size", "1G", "--json", "-U", "00112233-4455-6677-8899-aabbccddeeff", path("a")}), 0) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_EQ(json["size"], 1ULL << 30);
  EXPECT_EQ(json["uuid"], "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(json["dry_run"], false);
}

TEST_F(MkfsCommand, ALabelIsText) {
  EXPECT_NE(mkfs({"--size", "64M", "--json", "-L", "a\xff", path("a")}), 0);
  EXPECT_THAT(err_.str(), testing::HasSubstr("a label is UTF-8 without control characters"));
  EXPECT_FALSE(files::exists(path("a")));
}

TEST_F(MkfsCommand, DryRunWritesNothing) {
  EXPECT_EQ(mkfs({"-n", "--size", "64M", path("a")}), 0);
  EXPECT_FALSE(files::exists(path("a")));
  write("b", (16 << 20) - 1, "x");
  EXPECT_EQ(mkfs({"-n", path("b")}), 0);
  EXPECT_EQ(mkfs({path("b")}), 0) << "the dry run left something: " << err_.str();
}

TEST_F(MkfsCommand, RefusesKnownContentUnlessForced) {
  for (const auto& [offset, bytes] : std::vector<std::pair<std::uint64_t, std::string>>{
           {0x438, "\x53\xEF"}, {0, "XFSB"}, {0x10040, "_BHRfS_M"}, {0x200, "EFI PART"}, {0x1FE, "\x55\xAA"}}) {
    write("a", (16 << 20) - 1, "x");
    write("a", offset, bytes);
    EXPECT_EQ(mkfs({path("a")}), 1);
    EXPECT_THAT(err_.str(), testing::HasSubstr("use -f"));
    EXPECT_EQ(mkfs({"-f", path("a")}), 0) << err_.str();
    expect_clean_image("a");
    EXPECT_EQ(mkfs({path("a")}), 1) << "its own filesystem counts too";
    files::remove(path("a"));
  }
}

TEST_F(MkfsCommand, RefusesAFileThatIsNotBlank) {
  write("a", (16 << 20) - 1, "x");
  write("a", 0, "QFI, or what nobody knows");
  EXPECT_EQ(mkfs({path("a")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("something unknown: use -f"));
  EXPECT_EQ(mkfs({"-f", path("a")}), 0) << err_.str();
  expect_clean_image("a");
  files::remove(path("a"));
  for (const char filled : {'\0', '\xFF'}) {
    write("a", 0, std::string(16 << 20, filled));
    EXPECT_EQ(mkfs({path("a")}), 0) << err_.str();
    files::remove(path("a"));
  }
}

TEST_F(MkfsCommand, AProbeThatFindsNothingChangesNothing) {
  ASSERT_EQ(mkfs({"--size", "128M", "--probe", "--json", path("a")}), 0) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  // By a clock that stands still. How busy the machine is is another matter.
  EXPECT_THAT(json["probe_found"].get<std::string>(),
              testing::AnyOf(testing::StartsWith("nothing"), testing::StartsWith("unclear: the machine is busy")));
  EXPECT_EQ(json["erase_unit_is"], "not known");
  EXPECT_EQ(json["streams"], 0);
  EXPECT_THAT(err_.str(), testing::HasSubstr("timed writes on"));
  expect_clean_image("a");
  ASSERT_EQ(mkfs({"--size", "64M", "--probe", path("c")}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("not tried"));
  expect_clean_image("c");
}

TEST_F(MkfsCommand, AProbeDestroysNothingThatMkfsWouldNot) {
  write("a", (128 << 20) - 1, "x");
  write("a", 0x438, "\x53\xEF");
  const auto before = checksum_of("a");
  EXPECT_EQ(mkfs({"--probe", path("a")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("use -f"));
  EXPECT_EQ(mkfs({"--probe", "-n", "-f", path("a")}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("not in a dry run"));
  EXPECT_EQ(mkfs({"--probe", "-f", "--segment-size", "64M", path("a")}), 1) << "too few segments";
  EXPECT_EQ(mkfs({"--probe", "-f", "-U", "1", path("a")}), 1);
  EXPECT_EQ(mkfs({"--probe", "-f", "--size", "256G", "--segment-size", "5000", path("a")}), 1);
  EXPECT_EQ(checksum_of("a"), before);
  EXPECT_EQ(mkfs({"--probe", "-f", "-q", "--erase-unit", "1M", "--streams", "3", path("a")}), 0) << err_.str();
  EXPECT_EQ(out_.str() + err_.str(), "");
  expect_clean_image("a");
}

// Where its superblock lies in an image of kSampleBytes, and what else must be there for it to be one.
constexpr std::uint64_t kSampleBytes = 64 << 20;
struct Sample {
  const char* name;
  std::vector<std::pair<std::uint64_t, std::string>> parts;
};

std::string le(std::uint64_t value, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::vector<Sample> less_common_content() {
  constexpr std::uint64_t kRaid90 = kSampleBytes - (64 << 10), kRaid10 = kSampleBytes - (8 << 10);
  const std::string raid = le(0xA92B4EFC, 4);
  return {{"HFS+", {{0x400, std::string("H+\0\4", 4)}, {0x400 + 42, "\x10"}}},
          {"APFS", {{24, le(1, 2)}, {32, "NXSB" + le(4096, 4)}}},
          {"RAID", {{kRaid90, raid + le(0, 4) + le(90, 4)}}},
          {"RAID", {{kRaid10, raid + le(1, 4)}, {kRaid10 + 144, le(kRaid10 / 512, 8)}}},
          {"minix", {{0x400, le(64, 2) + le(1024, 2) + le(1, 2) + le(1, 2) + le(6, 2) + le(0, 2) + le(268966912, 4) +
                                 le(0x137F, 2) + le(1, 2)}}},
          // libblkid knows it by other marks from release to release; this one is Varve's own.
          {"ZFS", {{0x4014, std::string("\0\0\0\7version", 11)}}}};
}

TEST_F(MkfsCommand, RefusesLessCommonContent) {
  for (const Sample& sample : less_common_content()) {
    write("a", kSampleBytes - 1, std::string(1, '\0'));
    for (const auto& [offset, bytes] : sample.parts) write("a", offset, bytes);
    EXPECT_EQ(mkfs({path("a")}), 1) << sample.name;
    EXPECT_THAT(err_.str(), testing::HasSubstr("use -f"));
    EXPECT_THAT(err_.str(), testing::HasSubstr(sample.name));
    EXPECT_EQ(mkfs({"--size", "80M", path("a")}), 1) << sample.name;
    EXPECT_EQ(files::file_size(path("a")), kSampleBytes);
    EXPECT_EQ(mkfs({"-f", path("a")}), 0) << err_.str();
    expect_clean_image("a");
    files::remove(path("a"));
  }
}

TEST_F(MkfsCommand, ReadsUnitsAsCoreutilsDo) {
  const std::pair<const char*, std::uint64_t> samples[] = {
      {"64M", 64 << 20}, {"64MiB", 64 << 20}, {"65536k", 64 << 20}, {"80MB", 80'000'000 / 4096 * 4096},
      {"0100M", 100 << 20}, {"0008M", 8 << 20}};
  for (const auto& [text, bytes] : samples) {
    ASSERT_EQ(mkfs({"-n", "--json", "--size", text, path("units")}), 0) << err_.str();
    EXPECT_EQ(nlohmann::json::parse(out_.str())["size"], bytes) << text;
  }
  EXPECT_EQ(mkfs({"-n", "--size", "0x10M", path("units")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("'0x10M' is no size"));
}

TEST_F(MkfsCommand, RefusesWhatCannotWorkAndLeavesNothing) {
  EXPECT_EQ(mkfs({path("a")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("--size"));
  EXPECT_EQ(mkfs({"--size", "4M", path("a")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("at least 8M"));
  EXPECT_EQ(mkfs({"--size", "64M", "--segment-size", "3M", path("a")}), 1);
  EXPECT_EQ(mkfs({"--size", "64M", "-U", "nonsense", path("a")}), 1);
  EXPECT_EQ(mkfs({"--size", "64M", "-L", std::string(64, 'l'), path("a")}), 1);
  EXPECT_EQ(mkfs({folder_.string()}), 1);
  EXPECT_EQ(mkfs({"--nonsense"}), 1);
  EXPECT_EQ(mkfs({}), 1);
  EXPECT_FALSE(files::exists(path("a")));
}

TEST_F(MkfsCommand, RefusesAnImageInUse) {
  ASSERT_EQ(mkfs({"--size", "64M", path("a")}), 0);
  const auto holder = remote::open_device(path("a"), {});
  ASSERT_TRUE(holder.ok());
  EXPECT_EQ(mkfs({"-f", path("a")}), 1);
  EXPECT_THAT(err_.str(), testing::HasSubstr("in use"));
}

TEST_F(MkfsCommand, GrowsAnImageAndMayUseLessOfIt) {
  write("a", (16 << 20) - 1, "x");
  ASSERT_EQ(mkfs({"-n", "--size", "32M", path("a")}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::HasSubstr("32 MiB"));
  EXPECT_EQ(files::file_size(path("a")), 16U << 20);
  ASSERT_EQ(mkfs({"--size", "32M", path("a")}), 0) << err_.str();
  EXPECT_EQ(files::file_size(path("a")), 32U << 20);
  expect_clean_image("a");
  ASSERT_EQ(mkfs({"-f", "--size", "20M", path("a")}), 0) << err_.str();
  EXPECT_EQ(files::file_size(path("a")), 32U << 20);
  expect_clean_image("a");
}

TEST_F(MkfsCommand, PrewriteGivesTheHostAllBlocks) {
  ASSERT_EQ(mkfs({"--size", "16M", "--prewrite", "-q", path("a")}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "");
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 16 << 20);
  expect_clean_image("a");
}

}  // namespace
}  // namespace varve::check::test

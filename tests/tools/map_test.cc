// varve map: what is drawn is what stands there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/mem_device.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "varve/command.h"
#include "varve/map/drawing.h"

namespace varve::tool {
namespace {

namespace files = std::filesystem;

class Map : public ::testing::Test {
 protected:
  Map() {
    char path[] = "/tmp/varve-map-XXXXXX";
    folder_ = mkdtemp(path);
    image_ = folder_ / "image";
  }
  ~Map() override { files::remove_all(folder_); }

  // Two files, the first twice as large as the second, and a gap where a third one was.
  void make_image() {
    io::MemDevice device(64u << 20);
    ASSERT_TRUE(test::make_image(device, {}).ok());
    test::ManualClock clock;
    SeededRandom random(1);
    test::FsFixture fixture(device, test::test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    write(fixture, "/large", 8u << 20);
    write(fixture, "/gone", 4u << 20);
    write(fixture, "/small", 4u << 20);
    large_ = *fixture.resolve("/large");
    small_ = *fixture.resolve("/small");
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, "gone"); }).ok());
    ASSERT_TRUE(fixture.unmount().ok());
    ASSERT_TRUE(device.save(image_).ok());
  }
  static void write(test::FsFixture& fixture, const std::string& path, std::size_t bytes) {
    ASSERT_TRUE(fixture.make(path, S_IFREG | 0644).ok());
    ASSERT_TRUE(fixture.write(*fixture.resolve(path), 0, test::pattern_bytes(bytes, 0, bytes)).ok());
  }

  DeviceMap read(const MapRequest& request) {
    auto image = ImageReader::open(image_);
    EXPECT_TRUE(image.ok());
    auto map = read_device_map(*image, request);
    EXPECT_TRUE(map.ok());
    return std::move(*map);
  }
  int run_map(std::vector<const char*> words) {
    words.insert(words.begin(), {"varve", "map"});
    std::istringstream in;
    out_.str("");
    err_.str("");
    return run(static_cast<int>(words.size()), words.data(), {in, out_, err_});
  }

  files::path folder_;
  std::string image_;
  Ino large_, small_;
  std::ostringstream out_, err_;
};

TEST_F(Map, CountsWhatIsLiveAndWhose) {
  make_image();
  for (const std::size_t cells : {1u, 7u, 500u, 1u << 30}) {
    const DeviceMap map = read({.cells = cells, .owners = true});
    ASSERT_EQ(map.owners.size(), 2U);
    EXPECT_EQ(map.owners[0], std::pair(large_, std::uint64_t{2048}));
    EXPECT_EQ(map.owners[1], std::pair(small_, std::uint64_t{1024}));
    EXPECT_EQ(map.live, 2048 + 1024 + map.node_blocks);
    EXPECT_LE(map.cells.size(), cells);
    std::uint64_t live = 0, blocks = 0;
    for (const MapCell& cell : map.cells) {
      EXPECT_LE(cell.live, cell.blocks);
      live += cell.live;
      blocks += cell.blocks;
    }
    EXPECT_EQ(live, map.live);
    EXPECT_EQ(blocks, map.blocks);
  }
}

TEST_F(Map, ACellOfABlockTellsItsOwner) {
  make_image();
  const DeviceMap map = read({.cells = 1u << 30, .owners = true});
  std::map<Ino, std::uint64_t> blocks;
  for (const MapCell& cell : map.cells)
    if (cell.live) ++blocks[cell.owner];
  EXPECT_EQ(blocks[large_], 2048U);
  EXPECT_EQ(blocks[small_], 1024U);
  EXPECT_EQ(blocks[Ino{}], map.node_blocks);
}

TEST_F(Map, SignsOfEveryAspectAreInTheLegend) {
  make_image();
  const DeviceMap map = read({.cells = 300, .owners = true});
  for (const Aspect aspect : {Aspect::live, Aspect::age, Aspect::group, Aspect::owner}) {
    const Palette palette(map, aspect);
    std::vector<Look> looks;
    for (const LegendLine& line : palette.legend({})) looks.push_back(line.look);
    for (const MapCell& cell : map.cells)
      EXPECT_NE(std::ranges::find(looks, palette.look_of(cell)), looks.end()) << static_cast<int>(aspect);
  }
  EXPECT_EQ(Palette(map, Aspect::owner).legend({{large_, "a/name"}})[2].text, "a/name, 8.0 MiB");
  EXPECT_EQ(Palette(map, Aspect::owner).legend({{large_, "a\x1b[31m"}})[2].text.find('\x1b'), std::string::npos);
}

TEST_F(Map, TellsItsCellsToPrograms) {
  make_image();
  ASSERT_EQ(run_map({"--json", "--by", "owner", "--columns", "50", "--rows", "2", image_.c_str()}), 0) << err_.str();
  const auto json = nlohmann::json::parse(out_.str());
  EXPECT_LE(json["cells"].size(), 100U);
  std::uint64_t live = 0, blocks = 0;
  for (const auto& cell : json["cells"]) {
    live += cell["live"].get<std::uint64_t>();
    blocks += cell["blocks"].get<std::uint64_t>();
  }
  EXPECT_EQ(json["live"], live);
  EXPECT_EQ(json["blocks"], blocks);
  EXPECT_EQ(json["owners"][0]["inode"], large_.v);
  EXPECT_EQ(json["owners"][0]["live"], 2048);
}

TEST_F(Map, DrawsATextAndAPicture) {
  make_image();
  const std::string picture = folder_ / "map.png";
  ASSERT_EQ(run_map({"--by", "owner", "--columns", "50", "--png", picture.c_str(), image_.c_str()}), 0) << err_.str();
  EXPECT_NE(out_.str().find("A  inode"), std::string::npos) << out_.str();
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos) << "colours where nobody sees them";
  std::string start(8, ' ');
  std::ifstream(picture, std::ios::binary).read(start.data(), 8);
  EXPECT_EQ(start, "\x89PNG\r\n\x1a\n");
  ASSERT_EQ(run_map({"--color", "always", image_.c_str()}), 0);
  EXPECT_NE(out_.str().find('\x1b'), std::string::npos);
}

TEST_F(Map, SaysWhatIsWrong) {
  EXPECT_EQ(run_map({"/does/not/exist"}), 1);
  EXPECT_NE(err_.str().find("/does/not/exist"), std::string::npos);
  std::ofstream(image_) << std::string(100'000, 'x');
  EXPECT_EQ(run_map({image_.c_str()}), 1);
  EXPECT_NE(err_.str().find(image_), std::string::npos);
  make_image();
  EXPECT_EQ(run_map({"--png", "/does/not/exist.png", image_.c_str()}), 1);
  EXPECT_NE(err_.str().find("/does/not/exist.png"), std::string::npos);
  EXPECT_EQ(run_map({"--by", "colour", image_.c_str()}), 1);
}

}  // namespace
}  // namespace varve::tool

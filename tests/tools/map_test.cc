// varve map: what is drawn is what stands there.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>
#include <nlohmann/json.hpp>
#include <sstream>

#include "format/map_record.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "varve/command.h"
#include "varve/observe/map/drawing.h"
#include "varve/observe/map/font.h"
#include "varve/observe/map/picture.h"

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

TEST_F(Map, TellsHowFarItHasComeAndEndsWhereThatIsWanted) {
  make_image();
  for (const bool owners : {false, true}) {
    std::vector<double> shares;
    read({.cells = 16, .owners = owners, .advance = [&](double share) { return shares.push_back(share), Status(); }});
    ASSERT_FALSE(shares.empty());
    EXPECT_TRUE(std::ranges::is_sorted(shares));
    EXPECT_GE(shares.front(), 0);
    EXPECT_LE(shares.back(), 1);
    auto image = ImageReader::open(image_);
    ASSERT_TRUE(image.ok());
    const auto ended = read_device_map(*image, {.owners = owners, .advance = [](double) { return Status(Errc::interrupted); }});
    EXPECT_TRUE(ended.fails_with(Errc::interrupted));
  }
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

// As an eye sees a colour that lacks the receptors for green or for red (Machado, Oliveira and Fernandes 2009), in the space of the matrix.
std::array<double, 3> seen_by(const std::array<std::array<double, 3>, 3>& eye, const Look& look) {
  const auto linear = [](std::uint8_t part) { return std::pow(part / 255.0, 2.2); };
  const std::array<double, 3> in{linear(look.red), linear(look.green), linear(look.blue)};
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) out[i] += eye[i][j] * in[j];
    out[i] = std::pow(std::clamp(out[i], 0.0, 1.0), 1 / 2.2);
  }
  return out;
}

TEST(MapColours, OfGroupsAndOwnersAreToldApartByAllEyes) {
  DeviceMap map;
  for (std::size_t i = 0; i < kDistinctColours; ++i) {
    map.cells.push_back({.blocks = 1, .live = 1, .group = static_cast<std::uint8_t>(i), .owner = Ino{100 + i}});
    map.owners.emplace_back(Ino{100 + i}, 1);
  }
  map.owners.emplace_back(Ino{1}, 1);
  map.cells.push_back({.blocks = 1, .live = 1, .group = format::kGroupNodes, .owner = Ino{1}});
  constexpr std::array<std::array<std::array<double, 3>, 3>, 3> kEyes{{
      {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
      {{{0.367, 0.861, -0.228}, {0.280, 0.673, 0.047}, {-0.012, 0.043, 0.969}}},
      {{{0.152, 1.053, -0.205}, {0.115, 0.786, 0.099}, {-0.004, -0.048, 1.052}}}}};
  for (const Aspect aspect : {Aspect::group, Aspect::owner}) {
    const auto legend = Palette(map, aspect, kDistinctColours).legend({});
    ASSERT_GT(legend.size(), kDistinctColours);
    for (const auto& eye : kEyes)
      for (const LegendLine& one : legend)
        for (const LegendLine& other : legend) {
          if (&one == &other) continue;
          const auto a = seen_by(eye, one.look), b = seen_by(eye, other.look);
          EXPECT_GT(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), 0.1) << one.text << " and " << other.text;
        }
  }
}

TEST(MapColours, MoreOwnersThanColoursHaveSigns) {
  DeviceMap map;
  for (std::size_t i = 0; i < 40; ++i) map.owners.emplace_back(Ino{100 + i}, 1);
  std::set<std::tuple<int, int, int>> colours;
  const Palette palette(map, Aspect::owner);
  EXPECT_EQ(palette.named_owners().size(), 26U);
  for (const Ino owner : palette.named_owners()) {
    const Look look = palette.look_of({.blocks = 1, .live = 1, .owner = owner});
    colours.emplace(look.red, look.green, look.blue);
  }
  EXPECT_EQ(colours.size(), 26U);
  const MapCell cell{.blocks = 1, .live = 1, .owner = Ino{100}};
  map.cells.push_back(cell);
  EXPECT_NE(map_text(map, palette, 10, true).find('A'), std::string::npos);
  EXPECT_NE(legend_text(palette.legend({}), true, palette.has_signs()).find("A \x1b[0m"), std::string::npos);
}

TEST(MapPicture, HasATitleAScaleAndALegend) {
  DeviceMap map;
  map.blocks = 512, map.live = 10;
  map.cells.assign(512, {.blocks = 1, .live = 1, .owner = {}});
  const Palette palette(map, Aspect::live);
  const auto size_of = [&](const std::vector<LegendLine>& legend, const std::string& title) {
    const auto png = png_of(map, palette, legend, title, {});
    EXPECT_TRUE(png.ok());
    const auto number = [&](std::size_t at) {
      std::size_t value = 0;
      for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>((*png)[at + i]);
      return value;
    };
    return std::tuple(number(16), number(20), *png);
  };
  const auto [width, height, picture] = size_of(palette.legend({}), "title");
  EXPECT_GT(width, 256U * 4);
  EXPECT_GT(height, 2U * 4 + palette.legend({}).size() / 2 * 26);
  EXPECT_NE(picture, std::get<2>(size_of(palette.legend({}), "another"))) << "the title is drawn";
  EXPECT_LT(std::get<1>(size_of({}, "title")), height) << "the legend is drawn";
}

TEST(MapFont, EveryLetterLooksItsOwn) {
  std::set<std::string> looks;
  for (char letter = '!'; letter <= '~'; ++letter) {
    std::string look;
    for (unsigned y = 0; y < kGlyphHeight; ++y)
      for (unsigned x = 0; x < kGlyphWidth; ++x) look += is_ink(letter, x, y) ? '#' : '.';
    EXPECT_TRUE(looks.insert(look).second) << letter;
    EXPECT_NE(look.find('#'), std::string::npos) << letter;
  }
  EXPECT_FALSE(is_ink(' ', 2, 5));
  EXPECT_EQ(is_ink('\xc3', 2, 3), is_ink('?', 2, 3));
}

}  // namespace
}  // namespace varve::tool

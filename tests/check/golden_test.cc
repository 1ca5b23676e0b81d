// Images that earlier builds made must be read for ever, and the document must show the truth.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "checking.h"
#include "format/image_mark.h"
#include "support/places.h"

namespace varve::check::test {
namespace {

namespace files = std::filesystem;

// Unpacks tests/images/<name>.zst; null when there is no zstd.
std::unique_ptr<io::MemDevice> unpack(const std::string& name) {
  char path[] = "/tmp/varve-golden-XXXXXX";
  const files::path folder = mkdtemp(path);
  const std::string image = folder / "image";
  const std::string command = fmt::format("zstd -q -d -o '{}' '{}/tests/images/{}.zst'", image, varve::test::source_folder(), name);
  std::unique_ptr<io::MemDevice> device;
  if (std::system(command.c_str()) == 0) {
    auto loaded = io::MemDevice::load(image);
    EXPECT_TRUE(loaded.ok());
    if (loaded.ok()) device = std::move(loaded).value();
  }
  files::remove_all(folder);
  return device;
}

format::EmptyFilesystem example() {
  SeededRandom random(1);
  return *format::make_filesystem({.device_blocks = 2048, .label = "example", .uuid = {}, .now = {1'700'000'000, 0}}, random);
}

TEST(Golden, EmptyImageOfVersion1IsClean) {
  const auto device = unpack("v1-empty");
  if (!device) GTEST_SKIP() << "zstd is missing";
  expect_clean(*device);
  EXPECT_EQ(run(*device).super.label, "example");
}

// Superblocks in an area of their own. v1-area-used has been written to, so that they have gone round.
TEST(Golden, ImagesWithAnAreaAreClean) {
  for (const char* name : {"v1-area-empty", "v1-area-used"}) {
    const auto device = unpack(name);
    if (!device) GTEST_SKIP() << "zstd is missing";
    expect_clean(*device);
    const format::Superblock super = run(*device).super;
    EXPECT_EQ(super.area, (format::SuperblockArea{BlockAddr{4}, 4, 1})) << name;
    EXPECT_GE(super.sequence, 4U) << name;
  }
}

TEST(Golden, FilledImageOfVersion1IsClean) {
  const auto device = unpack("v1-filled");
  if (!device) GTEST_SKIP() << "zstd is missing";
  expect_clean(*device);
  const Report report = run(*device);
  EXPECT_EQ(report.statistics.directories, 5U);
  EXPECT_EQ(report.statistics.symlinks, 2U);
  EXPECT_EQ(report.statistics.entries, 608U);
}

// Made by `varve image`: what only metadata tells is small so, also where much was written.
TEST(Golden, ImageOfMetadataWithSnapshotsIsClean) {
  const auto device = unpack("v1-snapshots-metadata");
  if (!device) GTEST_SKIP() << "zstd is missing";
  const Report report = run(*device);
  EXPECT_EQ(lines(report), "");
  EXPECT_TRUE(format::is_image(report.super));
  EXPECT_EQ(report.super.snapshots.snapshots, 6U);
  EXPECT_EQ(report.statistics.entries, 197U);
  EXPECT_GT(report.statistics.held_blocks, 50U);
}

// Writes the images when VARVE_WRITE_IMAGES names a folder: for a new format version, never over existing ones.
TEST(Golden, WritesImagesOnRequest) {
  const char* folder = std::getenv("VARVE_WRITE_IMAGES");
  if (!folder) GTEST_SKIP() << "VARVE_WRITE_IMAGES is not set";
  io::MemDevice empty(2048 * kBlockSize);
  const format::EmptyFilesystem made = example();
  for (const auto& node : made.nodes) empty.poke(node.address.v * kBlockSize, node.bytes);
  for (const auto& super : format::superblocks_of(made)) empty.poke(super.address.v * kBlockSize, super.bytes);
  ASSERT_TRUE(empty.save(files::path(folder) / "v1-area-empty").ok());
}

// Lines "00000000: 5641 5256 …" of docs/format.md that follow a line "<!-- block N of the example -->".
TEST(Golden, HexdumpsInTheDocumentAreReal) {
  std::ifstream document(varve::test::source_folder() + "/docs/format.md");
  ASSERT_TRUE(document.good());
  const format::EmptyFilesystem made = example();
  std::map<std::uint64_t, std::array<std::byte, kBlockSize>> blocks;
  for (const auto& node : made.nodes) blocks[node.address.v] = node.bytes;
  for (const auto& super : format::superblocks_of(made)) blocks[super.address.v] = super.bytes;
  std::uint64_t block = 0;
  std::size_t lines = 0;
  for (std::string line; std::getline(document, line);) {
    if (line.rfind("<!-- block ", 0) == 0) block = std::stoull(line.substr(11));
    if (line.size() < 10 || line[8] != ':' || line.find_first_not_of("0123456789abcdef") != 8) continue;
    const std::size_t offset = std::stoul(line.substr(0, 8), nullptr, 16);
    std::string expected = fmt::format("{:08x}:", offset);
    for (std::size_t i = 0; i < 16; ++i)
      expected += fmt::format("{}{:02x}", i % 2 ? "" : " ", static_cast<unsigned>(blocks.at(block)[offset + i]));
    EXPECT_EQ(line.substr(0, expected.size()), expected);
    ++lines;
  }
  EXPECT_GT(lines, 30U) << "the document has lost its example";
}

}  // namespace
}  // namespace varve::check::test

// varve salvage: what it copies out of whole, damaged and cut-off images.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "check/image_builder.h"
#include "repair/brimful.h"
#include "repair/populated.h"
#include "varve/command.h"

namespace varve::repair::test {
namespace {

namespace files = std::filesystem;

class Salvage : public testing::Test {
 protected:
  Salvage() {
    char path[] = "/tmp/varve-salvage-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~Salvage() override { files::remove_all(folder_); }

  // What it prints; the more arguments come before the others.
  std::string salvaged(const io::MemDevice& image, std::vector<const char*> more = {}) {
    EXPECT_TRUE(image.save(folder_ / "image").ok());
    std::ostringstream out, err;
    std::istringstream in;
    const std::string source = folder_ / "image", target = folder_ / "out";
    std::vector<const char*> argv{"varve", "salvage"};
    argv.insert(argv.end(), more.begin(), more.end());
    argv.insert(argv.end(), {source.c_str(), target.c_str()});
    const int code = tool::run(static_cast<int>(argv.size()), argv.data(), {in, out, err});
    lost_something_ = err.str().find("not everything could be had") != std::string::npos;
    EXPECT_EQ(code, lost_something_ ? 1 : 0) << err.str();
    return out.str();
  }

  nlohmann::json salvage(const io::MemDevice& image) {
    const std::string out = salvaged(image, {"--json"});
    return out.empty() ? nlohmann::json{} : nlohmann::json::parse(out);
  }

  // Files whose copies differ from `expected`: missing, of another size, or with other bytes.
  std::set<std::string> differences(const Seen& expected) const {
    std::set<std::string> found;
    for (const auto& [path, ino] : expected.paths) {
      const SeenFile& file = expected.inodes.at(ino);
      const files::path copy = folder_ / "out" / path.substr(1);
      if (!files::exists(files::symlink_status(copy))) found.insert(path);
      else if (S_ISREG(file.mode) && bytes_of(copy) != bytes_of(file)) found.insert(path);
    }
    return found;
  }

  static std::string bytes_of(const files::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    return bytes.str();
  }
  static std::string bytes_of(const SeenFile& file) {
    std::string bytes;
    for (const auto& block : file.blocks) bytes.append(reinterpret_cast<const char*>(block.data()), block.size());
    return bytes;
  }

  files::path folder_;
  bool lost_something_ = false;  // the last one, as it said at its end
};

TEST_F(Salvage, CopiesEverythingOfAWholeImage) {
  const auto image = populated_image(true);
  const Seen expected = look_at(*image->snapshot());
  const auto report = salvage(*image);
  EXPECT_EQ(report["losses"].size(), 0U) << report.dump(1);
  EXPECT_EQ(differences(expected), std::set<std::string>{});
  EXPECT_EQ(files::hard_link_count(folder_ / "out/a/file"), 2U);
  EXPECT_EQ(files::read_symlink(folder_ / "out/link"), "a/file");
  EXPECT_EQ(files::status(folder_ / "out/a/file").permissions(), files::perms{0644});
}

// Wherever the fourth block of /a/file stands.
void spoil_file(io::MemDevice& image, const Seen& expected) {
  const auto& wanted = expected.inodes.at(expected.paths.at("/a/file")).blocks;
  std::array<std::byte, kBlockSize> block;
  for (std::uint64_t b = 0; b < image.geometry().blocks(); ++b) {
    image.peek(b * kBlockSize, block);
    if (!std::ranges::equal(block, wanted[3])) continue;
    block[5] ^= std::byte{1};
    image.poke(b * kBlockSize, block);
  }
}

TEST_F(Salvage, DamagedBlocksBecomeHoles) {
  const auto image = populated_image(false);
  const Seen expected = look_at(*image->snapshot());
  spoil_file(*image, expected);
  const auto report = salvage(*image);
  EXPECT_EQ(report["damaged_blocks"], 1) << report.dump(1);
  EXPECT_TRUE(lost_something_);
  EXPECT_EQ(report["losses"][0]["what"], "holes instead of bytes 12288-16383");
  EXPECT_EQ(differences(expected), (std::set<std::string>{"/a/file", "/a/b/hard"}));
}

TEST_F(Salvage, RepairsThatLoseNothingAreNoLosses) {
  const auto image = populated_image(true);
  spoil_file(*image, look_at(*image->snapshot()));
  const std::string said = salvaged(*image);
  EXPECT_THAT(said, testing::HasSubstr("0 repairs lost something"));
  EXPECT_THAT(said, testing::HasSubstr("1 block is a hole"));
}

std::unique_ptr<io::MemDevice> first_half_of(const io::MemDevice& image) {
  std::vector<std::byte> part(image.geometry().size_bytes / 2);
  image.peek(0, part);
  auto cut = std::make_unique<io::MemDevice>(part.size());
  cut->poke(0, part);
  return cut;
}

TEST_F(Salvage, WhatIsLeftOfACutOffImage) {
  const auto image = populated_image(false);
  const Seen expected = look_at(*image->snapshot());
  const auto cut = first_half_of(*image);
  const auto report = salvage(*cut);
  EXPECT_GT(report["errors"], 0);
  EXPECT_LT(differences(expected).size(), expected.paths.size() / 2) << report.dump(1);
}

// Where fsck cannot write what it would have to: it says that this is the way out.
TEST_F(Salvage, WithoutAFreeBlock) {
  for (const bool superblocks_lost : {false, true}) {
    const auto image = image_without_a_free_block();
    if (superblocks_lost)
      for (const std::uint64_t copy : {std::uint64_t{0}, image->geometry().blocks() - 1})
        image->poke(copy * kBlockSize, std::array<std::byte, kBlockSize>{});
    const auto report = salvage(*image);
    EXPECT_EQ(report["files"], 1) << report.dump(1);
    EXPECT_GT(report["errors"], 0);
    EXPECT_GT(report["damaged_blocks"], 0) << "of the file's end";
    const std::string bytes = bytes_of(folder_ / "out/file");
    EXPECT_GT(bytes.size(), 2000 * kBlockSize);
    std::vector<std::byte> wanted(kBlockSize);
    image->peek(1500 * kBlockSize, wanted);
    EXPECT_NE(bytes.find(std::string_view(reinterpret_cast<const char*>(wanted.data()), kBlockSize)), std::string::npos);
    files::remove_all(folder_ / "out");
  }
}

TEST_F(Salvage, WhatIsLeftOfACutOffImageWithoutSuperblocks) {
  const auto image = populated_image(false);
  const Seen expected = look_at(*image->snapshot());
  const auto cut = first_half_of(*image);
  cut->poke(0, std::array<std::byte, kBlockSize>{});
  const auto report = salvage(*cut);
  EXPECT_LT(differences(expected).size(), expected.paths.size() / 2) << report.dump(1);
}

// A forged or freakish superblock must not make the tool prepare for what is not there.
TEST_F(Salvage, ASuperblockThatTellsOfFarMoreThanIsThereIsRefused) {
  const auto image = populated_image(false);
  std::array<std::byte, kBlockSize> block;
  image->peek(0, block);
  format::Superblock super = *format::decode_superblock(block);
  super.device_blocks = std::uint64_t{1} << 40;
  super.segments = (super.device_blocks - super.first_segment.v - 1) / super.segment_blocks;
  format::encode_superblock(super, block);
  image->poke(0, block);
  EXPECT_TRUE(image->save(folder_ / "image").ok());
  std::ostringstream out, err;
  std::istringstream in;
  const std::string source = folder_ / "image", target = folder_ / "out";
  const char* const argv[] = {"varve", "salvage", source.c_str(), target.c_str()};
  EXPECT_EQ(tool::run(4, argv, {in, out, err}), 1);
  EXPECT_NE(err.str().find("1099511627776 blocks"), std::string::npos) << err.str();
}

// So few files open at a time that a walk without an end comes to one all the same: the deeper, the more it holds open.
class FewFiles {
 public:
  FewFiles() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next) + 16, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;
  ~FewFiles() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// A newer Varve's image is not repaired, so nothing has taken away the names that make circles.
TEST_F(Salvage, DirectoriesThatLeadToThemselvesAreCopiedOnce) {
  check::test::ImageBuilder builder{4096};
  const Ino dir = builder.add_directory(kRootIno, "dir"), sub = builder.add_directory(dir, "sub");
  builder.add_file(sub, "file", 1);
  builder.add_link(sub, "up", dir);
  builder.add_link(dir, "self", dir);
  builder.add_link(dir, "top", kRootIno);
  builder.change_super = builder.change_image = [](format::Superblock& super) { super.features.ro_compat |= std::uint64_t{1} << 40; };
  const auto image = builder.build();
  const auto report = [&] {
    const FewFiles few;
    return salvage(*image);
  }();
  EXPECT_TRUE(report.contains("not_repaired")) << report.dump(1);
  EXPECT_EQ(report["directories"], 2);
  EXPECT_EQ(report["files"], 1);
  std::set<std::string> lost;
  for (const auto& loss : report["losses"]) lost.insert(loss["path"]);
  EXPECT_EQ(lost, (std::set<std::string>{"dir/self", "dir/sub/up", "dir/top"}));
  EXPECT_TRUE(files::exists(folder_ / "out/dir/sub/file"));
  EXPECT_FALSE(files::exists(folder_ / "out/dir/self"));
}

TEST_F(Salvage, BothSuperblocksLost) {
  const auto image = populated_image(true);
  const Seen expected = look_at(*image->snapshot());
  image->poke(0, std::array<std::byte, kBlockSize>{});
  image->poke((image->geometry().blocks() - 1) * kBlockSize, std::array<std::byte, kBlockSize>{});
  salvage(*image);
  EXPECT_EQ(differences(expected), std::set<std::string>{});
}

TEST_F(Salvage, RefusesADirectoryThatIsNotEmpty) {
  files::create_directories(folder_ / "out/x");
  EXPECT_TRUE(populated_image(false)->save(folder_ / "image").ok());
  std::ostringstream out, err;
  std::istringstream in;
  const std::string source = folder_ / "image", target = folder_ / "out";
  const char* const argv[] = {"varve", "salvage", source.c_str(), target.c_str()};
  EXPECT_EQ(tool::run(4, argv, {in, out, err}), 1);
  EXPECT_NE(err.str().find("not empty"), std::string::npos);
}

}  // namespace
}  // namespace varve::repair::test

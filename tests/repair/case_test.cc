// Every kind of damage: found, repaired, and nothing is found afterwards. What both runs say stands in
// tests/images/<case>/expect.1 and expect.2; VARVE_WRITE_EXPECTED=1 writes these files.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "check/checking.h"
#include "fsck/command.h"
#include "fsck/recovery.h"
#include "remote/open_device.h"
#include "repair/damage_cases.h"
#include "support/fs_fixture.h"
#include "support/manual_clock.h"
#include "support/places.h"

namespace varve::repair::test {
namespace {

namespace files = std::filesystem;

class RepairCase : public testing::TestWithParam<DamageCase> {
 protected:
  RepairCase() {
    char path[] = "/tmp/varve-repair-XXXXXX";
    folder_ = mkdtemp(path);
  }
  ~RepairCase() override { files::remove_all(folder_); }

  std::string image() const { return folder_ / "image"; }

  std::string fsck(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fsck.varve");
    arguments.push_back(image());
    std::vector<const char*> argv;
    for (const auto& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out;
    code_ = fsck::run(static_cast<int>(argv.size()), argv.data(), {out, out, false, fsck::recover});
    std::string text = out.str();
    for (std::size_t at; (at = text.find(image())) != std::string::npos;) text.replace(at, image().size(), "IMAGE");
    return text + fmt::format("exit code {}\n", code_);
  }

  // The number of entries of the root, through the engine.
  void expect_mountable() {
    auto device = remote::open_device(image(), {});
    ASSERT_TRUE(device.ok());
    varve::test::ManualClock clock;
    SeededRandom random(1);
    varve::test::FsFixture fixture(**device, varve::test::test_options(clock, random));
    const Status mounted = fixture.mount();
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    EXPECT_TRUE(fixture.list(kRootIno).ok());
    EXPECT_TRUE(fixture.make("/new", 0100644).ok());
    EXPECT_TRUE(fixture.unmount().ok());
  }

  files::path folder_;
  int code_ = 0;
};

void expect_text(const files::path& file, const std::string& found) {
  if (std::getenv("VARVE_WRITE_EXPECTED")) {
    files::create_directories(file.parent_path());
    std::ofstream(file) << found;
  }
  std::ifstream in(file);
  ASSERT_TRUE(in.good()) << file << " is missing; this run says:\n" << found;
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(found, expected.str());
}

TEST_P(RepairCase, IsFoundRepairedAndGone) {
  const DamageCase& damage = GetParam();
  const files::path expected = files::path(varve::test::source_folder()) / "tests/images" / damage.name;
  ASSERT_TRUE(damage.make()->save(image()).ok());
  const bool data = damage.code == check::Code::data_damaged;
  const std::string dry = fsck(data ? std::vector<std::string>{"-n", "--search", "--data"} : std::vector<std::string>{"-n", "--search"});
  EXPECT_THAT(dry, testing::ContainsRegex(fmt::format("[EWN]{}", static_cast<unsigned>(damage.code))));
  const std::string first = fsck(data ? std::vector<std::string>{"-y", "--data"} : std::vector<std::string>{"-y"});
  EXPECT_EQ(code_, damage.repairable ? 1 : 4);
  expect_text(expected / "expect.1", first);
  const std::string second = fsck({"-y", "-f", "--data"});
  EXPECT_EQ(code_, damage.repairable ? 0 : 4);
  expect_text(expected / "expect.2", second);
  if (damage.repairable) expect_mountable();
}

INSTANTIATE_TEST_SUITE_P(All, RepairCase, testing::ValuesIn(damage_cases()), [](const auto& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
});

// What is wrong about names has to wait until the log has said its part.
TEST(RepairCases, WhatTheLogSaysIsKept) {
  const auto damage = std::ranges::find(damage_cases(), "611-log", &DamageCase::name);
  const auto device = damage->make();
  ASSERT_TRUE(repair(*device, fsck::recover, {}).ok());
  varve::test::ManualClock clock;
  SeededRandom random(1);
  varve::test::FsFixture fixture(*device, varve::test::test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  const Ino directory = *fixture.resolve("/dir");
  EXPECT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().getxattr(op, directory, "user.new"); }).ok());
}

// Three are found with devices that fail (device_test.cc), and seven where there are snapshots (kept_test.cc).
TEST(RepairCases, ThereIsOneForEachCode) {
  std::set<check::Code> covered{check::Code::superblock_unreadable, check::Code::node_unreadable, check::Code::data_unreadable,
                                check::Code::snapshot_item_damaged, check::Code::held_not_listed, check::Code::listed_not_held,
                                check::Code::place_wrong, check::Code::snapshot_damaged, check::Code::snapshot_lost,
                                check::Code::snapshot_tables_torn};
  for (const DamageCase& damage : damage_cases()) covered.insert(damage.code);
#define X(number, name, severity, text) EXPECT_TRUE(covered.contains(check::Code::name)) << #name;
  VARVE_PROBLEMS(X)
#undef X
}

}  // namespace
}  // namespace varve::repair::test

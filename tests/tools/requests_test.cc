// Asks a filesystem in memory all that tools may ask (control/requests.h).
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/requests.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::control {
namespace {

using ::testing::HasSubstr;

class RequestsTest : public ::testing::Test {
 protected:
  RequestsTest() {
    EXPECT_TRUE(test::make_image(device_, {}).ok());
    EXPECT_TRUE(fixture_.mount().ok());
  }

  Result<Answer> ask(const char* what, Json arguments = Json::object()) { return answer(fixture_.fs(), {what, std::move(arguments)}); }
  Error refused(const char* what, Json arguments = Json::object()) {
    const auto answered = ask(what, std::move(arguments));
    return answered.ok() ? Error(Errc::invalid, "it was answered") : answered.error();
  }

  io::MemDevice device_{64 << 20};
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture fixture_{device_, test::test_options(clock_, random_)};
};

TEST_F(RequestsTest, StatusAndReportsAreAnswered) {
  EXPECT_EQ(ask("status")->json["space"]["block_bytes"], 4096);
  EXPECT_EQ(ask("scrub_report")->json["state"], "never");
  EXPECT_EQ(ask("clean_report")->json["state"], "never");
  EXPECT_EQ(ask("resize_report")->json["state"], "never");
  EXPECT_TRUE(ask("history")->json.is_array());
}

TEST_F(RequestsTest, ASnapshotIsMadeNamedHeldAndDeleted) {
  ASSERT_TRUE(ask("snapshot_create", {{"name", "one"}}).ok());
  EXPECT_TRUE(refused("snapshot_create", {{"name", "one"}}).is(Errc::exists));
  ASSERT_TRUE(ask("snapshot_rename", {{"name", "one"}, {"new_name", "two"}}).ok());
  const Json list = ask("snapshot_list")->json;
  ASSERT_EQ(list["snapshots"].size(), 1U);
  EXPECT_EQ(list["snapshots"][0]["name"], "two");
  ASSERT_TRUE(ask("snapshot_remove", {{"name", "two"}}).ok());
  EXPECT_TRUE(refused("snapshot_remove", {{"name", "two"}}).is(Errc::not_found));
}

TEST_F(RequestsTest, QuestionsAboutSnapshotsComeBackAsTheyWere) {
  ASSERT_TRUE(ask("snapshot_create", {{"name", "one"}}).ok());
  const Serial serial{ask("snapshot_list")->json["snapshots"][0]["serial"].get<std::uint64_t>()};
  const compare::Question question{compare::Question::Kind::inode, {}, serial, {kRootIno, format::kMinKey.kind, 0}};
  const auto direct = test::asking(fixture_.fs())(question);
  ASSERT_TRUE(direct.ok()) << direct.error().message();
  const auto asked = answer(fixture_.fs(), *request_from(*to_text(to_request(question))));
  ASSERT_TRUE(asked.ok()) << asked.error().message();
  const auto told = answer_from(to_text(asked, "snapshot_compare"), asked->bytes);
  const auto found = compared(*told);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->bytes, direct->bytes);
  EXPECT_EQ(found->ended, direct->ended);
}

TEST_F(RequestsTest, ErrorsHaveACodeAndWords) {
  EXPECT_TRUE(refused("fly").is(Errc::unsupported));
  EXPECT_TRUE(refused("trim").is(Errc::unsupported)) << "an ioctl of Linux";
  EXPECT_THAT(refused("tune", {{"setting", "policy"}}).message(), HasSubstr("'value'"));
  EXPECT_THAT(refused("tune", {{"setting", "policy"}, {"value", "best of all"}}).message(), HasSubstr("policy"));
  EXPECT_TRUE(refused("snapshot_hold", {{"snapshot", 77U}, {"reader", 1U}, {"seconds", 9U}}).is(Errc::stale));
  for (const Json& arguments : {Json::object(), Json{{"bytes", -1}}, Json{{"bytes", "x"}}, Json{{"bytes", nullptr}}})
    EXPECT_TRUE(refused("resize_start", arguments).is(Errc::invalid));
  for (const char* from : {"[]", "[1,2]", "[1,256,3]", "[1,2,-3]", "{}", "null"}) {
    const Json question{{"kind", 1U}, {"before", 0U}, {"after", 1U}, {"from", Json::parse(from)}};
    EXPECT_TRUE(refused("snapshot_compare", question).is(Errc::invalid)) << from;
  }
}

TEST(RequestText, IsOfOneVersion) {
  EXPECT_EQ(request_from(R"({"version":1,"ask":"status"})")->ask, "status");
  EXPECT_TRUE(request_from(R"({"version":2,"ask":"status"})").fails_with(Errc::unsupported));
  for (const char* text : {"", "[", "[]", "7", "{}", R"({"version":1})", R"({"version":1,"ask":7})", "{\"version\":1,\"ask\":\"\xff\"}"})
    EXPECT_FALSE(request_from(text).ok()) << text;
}

TEST(RequestText, AnErrorIsTheSameOnTheOtherSide) {
  const Result<Answer> failed = Error(Errc::exists, "there is one already");
  const auto told = answer_from(to_text(failed, "snapshot_create"), {});
  EXPECT_TRUE(told.fails_with(Errc::exists));
  EXPECT_EQ(told.error().message(), "there is one already");
  const auto plain = answer_from(to_text(Result<Answer>(Errc::read_only), "scrub_start"), {});
  EXPECT_EQ(plain.error().message(), "scrub: Read-only file system");
  EXPECT_TRUE(answer_from(R"({"version":1,"error":{"code":"of_a_later_version","message":"x"}})", {}).fails_with(Errc::invalid));
  for (const char* text : {"", "[]", "{}", R"({"error":7})", R"({"error":{"code":"io"}})", R"({"error":{"code":1,"message":2}})"})
    EXPECT_TRUE(answer_from(text, {}).fails_with(Errc::corrupt)) << text;
}

// Each that changes something, or costs others something, is for the keeper.
TEST(RequestTable, SaysWhoMayAskWhat) {
  std::vector<std::string> anyones;
  for (const char* name : {"status", "history", "checkpoint", "tune", "scrub_start", "scrub_stop", "scrub_report", "clean_start",
                           "clean_stop", "clean_report", "resize_start", "resize_stop", "resize_report", "snapshot_list", "snapshot_create",
                           "snapshot_rename", "snapshot_remove", "snapshot_hold", "snapshot_compare", "trim", "label", "shut_down"}) {
    const auto command = find_command(name);
    ASSERT_TRUE(command.ok()) << name;
    if ((*command)->right == Right::anyone) anyones.emplace_back(name);
    EXPECT_EQ((*command)->right == Right::root, std::string_view(name) == "shut_down");
  }
  EXPECT_THAT(anyones, ::testing::ElementsAre("status", "history", "scrub_report", "clean_report", "resize_report", "snapshot_list"));
}

}  // namespace
}  // namespace varve::control

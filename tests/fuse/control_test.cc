// Tools ask a daemon by messages (control/control.h).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/json_text.h"
#include "control/control.h"
#include "control/older.h"
#include "control/requests.h"
#include "fuse/protocol/privilege.h"
#include "fuse/served_mount.h"
#include "support/fs_fixture.h"

namespace varve::fuse {
namespace {

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override { mount_.initialise(); }
  control::Message send(const control::Message& message) {
    fuse_ioctl_in in{};
    in.cmd = static_cast<std::uint32_t>(control::kControlIoctl);
    in.in_size = in.out_size = sizeof message;
    const Reply reply = mount_.kernel().call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(message));
    error_ = reply.error;
    return reply.error == 0 ? reply.as<control::Message>(sizeof(fuse_ioctl_out)) : control::Message();
  }
  // The first piece of the answer.
  control::Message ask(const std::string& request) {
    control::Message message;
    request.copy(message.room, sizeof message.room);
    message.total = static_cast<std::uint32_t>(request.size());
    return send(message);
  }
  static Json json_of(const control::Message& message) { return Json::parse(std::string(message.room, message.json)); }

  ServedMount mount_;
  int error_ = 0;
};

TEST_F(ControlTest, ARequestIsAnsweredInJson) {
  const auto told = json_of(ask(R"({"version":1,"ask":"status"})"));
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["answer"]["mount"]["mount_point"], "/mnt");
  EXPECT_EQ(told["answer"]["mount"]["requests"]["init"], 1);
  EXPECT_EQ(json_of(ask(R"({"version":1,"ask":"fly"})"))["error"]["code"], "unsupported");
  EXPECT_EQ(json_of(ask(R"({"version":2,"ask":"status"})"))["error"]["code"], "unsupported");
  EXPECT_EQ(json_of(ask("rubbish"))["error"]["code"], "invalid");
  control::Message too_long;
  too_long.total = ~0U;
  send(too_long);
  EXPECT_EQ(error_, EINVAL);
}

TEST_F(ControlTest, ALongAnswerComesInPieces) {
  constexpr int kSnapshots = 60;
  for (int i = 0; i < kSnapshots; ++i) {
    const control::Request creation{"snapshot_create", {{"name", std::string(240, 'n') + std::to_string(i)}}};
    ASSERT_TRUE(control::answer(mount_.session().fs(), creation).ok());
  }
  control::Message piece = ask(R"({"version":1,"ask":"snapshot_list"})");
  ASSERT_GT(piece.total, sizeof piece.room);
  std::string text(piece.room, sizeof piece.room);
  const std::uint32_t json = piece.json;
  while (text.size() < piece.total) {
    control::Message next;
    next.document = piece.document;
    next.offset = static_cast<std::uint32_t>(text.size());
    next = send(next);
    ASSERT_EQ(error_, 0);
    ASSERT_EQ(next.offset, text.size());
    text.append(next.room, std::min<std::size_t>(sizeof next.room, next.total - next.offset));
  }
  EXPECT_EQ(Json::parse(text.substr(0, json))["answer"]["snapshots"].size(), std::size_t{kSnapshots});
  control::Message of_nothing;
  of_nothing.document = 4711;
  send(of_nothing);
  EXPECT_EQ(error_, ENODATA) << "forgotten";
}

// Tools of 0.1.0 ask by ioctls of their own (control/older.h). server_test.cc has status and scrub.
class OlderToolTest : public ControlTest {
 protected:
  void SetUp() override {
    ControlTest::SetUp();
    const bool may = ::getuid() != 0 || has_capability(static_cast<std::uint32_t>(::getpid()), CAP_SYS_ADMIN);
    if (!may) GTEST_SKIP() << "no CAP_SYS_ADMIN";
  }
  template <class Struct>
  Struct asked(unsigned long number, const Struct& asked) {
    fuse_ioctl_in in{};
    in.cmd = static_cast<std::uint32_t>(number);
    in.in_size = in.out_size = sizeof asked;
    const Reply reply = mount_.kernel().call(FUSE_IOCTL, 1, bytes_of(in) + bytes_of(asked));
    error_ = reply.error;
    return error_ == 0 && reply.body.size() > sizeof(fuse_ioctl_out) ? reply.as<Struct>(sizeof(fuse_ioctl_out)) : Struct{};
  }
  static control::SnapshotCommand creation(const char* name) {
    control::SnapshotCommand command;
    command.command = control::SnapshotCommand::kCreate;
    std::string(name).copy(command.name, sizeof command.name - 1);
    return command;
  }
};

TEST_F(OlderToolTest, SettingsAreTakenOrRefusedInWords) {
  control::TuneText setting{"policy=greedy"};
  EXPECT_STREQ(asked(control::kTuneIoctl, setting).text, "");
  EXPECT_EQ(error_, 0);
  EXPECT_THAT(asked(control::kTuneIoctl, control::TuneText{"policy=none such"}).text, ::testing::HasSubstr("none such"));
  EXPECT_STRNE(asked(control::kResizeIoctl, control::TuneText{"{}"}).text, "");
  EXPECT_STRNE(asked(control::kCleanIoctl, control::CleanText{"rubbish"}).text, "");
  asked(control::kCheckpointIoctl, std::uint64_t{0});
  EXPECT_EQ(error_, 0);
}

TEST_F(OlderToolTest, SnapshotsAreMadeHeldAndAskedAbout) {
  EXPECT_STREQ(asked(control::kSnapshotIoctl, creation("one")).answer, "");
  EXPECT_EQ(error_, 0);
  EXPECT_EQ(asked(control::kSnapshotIoctl, creation("one")).error, static_cast<std::uint32_t>(EEXIST));
  const auto page = asked(control::kSnapshotsIoctl, control::StatusPage{});
  const Json list = Json::parse(std::string(page.text, page.total));
  EXPECT_EQ(list["snapshots"][0]["name"], "one");
  const auto serial = list["snapshots"][0]["serial"].get<std::uint64_t>();
  asked(control::kSnapshotHoldIoctl, control::SnapshotHold{serial + 1000, 1, 10});
  EXPECT_EQ(error_, ESTALE);
  control::KeptPage question;
  question.question = static_cast<std::uint32_t>(compare::Question::Kind::inode);
  question.after = serial;
  question.ino = kRootIno.v;
  const auto kept = asked(control::kKeptIoctl, question);
  EXPECT_EQ(error_, 0);
  const auto direct = test::asking(mount_.fs())({compare::Question::Kind::inode, {}, Serial{serial}, {kRootIno, {}, 0}});
  ASSERT_TRUE(direct.ok());
  EXPECT_EQ(std::string(kept.text, kept.bytes), std::string(reinterpret_cast<const char*>(direct->bytes.data()), direct->bytes.size()));
  asked(control::kKeptIoctl + 1, question);
  EXPECT_EQ(error_, ENOTTY);
}

}  // namespace
}  // namespace varve::fuse

// A file gets a size while the kernel has a longer one in its cache than the filesystem.
#include <linux/falloc.h>

#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

constexpr std::uint64_t kRoom = 256 * kBlockSize, kSize = 100 * kBlockSize - 1;

class Cut : public ::testing::Test {
 protected:
  Cut() {
    mount_.initialise();
    file_ = mount_.create(1, "f").nodeid;
    fuse_fallocate_in in{};
    in.length = kRoom;
    in.mode = FALLOC_FL_KEEP_SIZE;
    EXPECT_EQ(mount_.kernel().call(FUSE_FALLOCATE, file_, bytes_of(in)).error, 0);
  }

  std::uint64_t set_size() {
    fuse_setattr_in in{};
    in.valid = FATTR_SIZE;
    in.size = kSize;
    return mount_.kernel().send(FUSE_SETATTR, file_, bytes_of(in));
  }

  fuse_notify_retrieve_out asked() {
    const auto question = mount_.kernel().receive_notification();
    EXPECT_TRUE(question && -question->error == FUSE_NOTIFY_RETRIEVE);
    return question ? question->as<fuse_notify_retrieve_out>() : fuse_notify_retrieve_out{};
  }

  void answer(std::uint64_t unique, std::uint32_t bytes) {
    fuse_in_header header{};
    fuse_notify_retrieve_in in{};
    in.size = bytes;
    header.opcode = FUSE_NOTIFY_REPLY;
    header.unique = unique;
    header.nodeid = file_;
    header.len = static_cast<std::uint32_t>(sizeof header + sizeof in + bytes);
    ASSERT_TRUE(mount_.kernel().send_raw(bytes_of(header) + bytes_of(in) + Bytes(bytes)));
  }

  fuse_attr attributes_after(std::uint64_t setattr) {
    const auto reply = mount_.kernel().receive();
    EXPECT_TRUE(reply && reply->unique == setattr && reply->error == 0);
    return reply ? reply->as<fuse_attr_out>().attr : fuse_attr{};
  }

  ServedMount mount_;
  std::uint64_t file_ = 0;
};

TEST_F(Cut, GivesBackWhatIsBehindWhereTheKernelHasAsMuch) {
  const std::uint64_t setattr = set_size();
  const fuse_notify_retrieve_out question = asked();
  EXPECT_EQ(question.nodeid, file_);
  EXPECT_EQ(question.offset, kSize - 1);
  answer(question.notify_unique, 1);
  const fuse_attr now = attributes_after(setattr);
  EXPECT_EQ(now.size, kSize);
  EXPECT_EQ(now.blocks, blocks_for(kSize) * 8);
}

TEST_F(Cut, LeavesItWhereTheFileBecomesLonger) {
  const std::uint64_t setattr = set_size();
  answer(asked().notify_unique, 0);
  const fuse_attr now = attributes_after(setattr);
  EXPECT_EQ(now.size, kSize);
  EXPECT_EQ(now.blocks, kRoom / kBlockSize * 8);
}

TEST_F(Cut, DoesNotWaitForAnAnswerWhenTheMountEnds) {
  const std::uint64_t setattr = set_size();
  const std::uint64_t unique = asked().notify_unique;
  mount_.server().stop();
  EXPECT_EQ(attributes_after(setattr).blocks, kRoom / kBlockSize * 8);
  answer(unique, 1);  // nobody waits for it
}

TEST_F(Cut, AsksNothingWhereNothingIsBehind) {
  fuse_setattr_in in{};
  in.valid = FATTR_SIZE;
  in.size = kRoom;
  EXPECT_EQ(mount_.kernel().call(FUSE_SETATTR, file_, bytes_of(in)).error, 0);
  EXPECT_EQ(mount_.kernel().notifications(), 0U);
}

}  // namespace
}  // namespace varve::fuse

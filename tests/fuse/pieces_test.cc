// Messages that do not come in one piece, and whose answers go where the kernel wants them: what a ring of its own would bring.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "changes/unsealed.h"
#include "fuse/served_mount.h"

namespace varve::fuse {
namespace {

constexpr std::size_t kRoomBytes = 64u << 10;
constexpr std::byte kSpoilt{0xEE};
constexpr auto kPatience = std::chrono::seconds(300);  // only what hangs takes so long

// A payload that the filesystem goes on using; `alive` counts those that it has.
class KeptPayload : public log::PayloadBuffer {
 public:
  KeptPayload(AlignedBuffer bytes, std::atomic<int>& alive) : log::PayloadBuffer(1), bytes_(std::move(bytes)), alive_(alive) { ++alive_; }
  ~KeptPayload() override { --alive_; }

 private:
  AlignedBuffer bytes_;
  std::atomic<int>& alive_;
};

struct Pieces {
  std::uint32_t opcode = 0;
  std::uint64_t node = 0;
  Bytes arguments{}, payload{};
  std::atomic<int>* keep = nullptr;  // the payload is kept, and counted here
};

// Header, arguments, payload and the room for the answer stand apart. What is not kept is spoilt when it is released.
class PieceMessage : public Message {
 public:
  PieceMessage(std::uint64_t unique, const Pieces& pieces)
      : unique_(unique), keep_(pieces.keep), given_(pieces.arguments), bytes_(pieces.payload.size()), room_(kRoomBytes) {
    std::copy(pieces.payload.begin(), pieces.payload.end(), bytes_.data());
    header_.len = static_cast<std::uint32_t>(sizeof header_ + given_.size() + bytes_.size());
    header_.opcode = pieces.opcode;
    header_.unique = unique;
    header_.nodeid = pieces.node;
    arguments_ = given_;
    payload_ = bytes_.span();
  }

  log::PayloadBufferPtr keep_payload() override {
    if (!keep_) return {};
    return new KeptPayload(std::move(bytes_), *keep_);
  }
  std::span<std::byte> reply_room(std::size_t bytes) override {
    EXPECT_LE(bytes, kRoomBytes);
    return room_.span().first(bytes);
  }
  int reply(int error, std::span<const std::byte> first, std::span<const std::byte> second) override {
    ++replies_;
    error_ = -error;
    from_room_ = first.data() == room_.data();
    body_.assign(first.begin(), first.end());
    body_.insert(body_.end(), second.begin(), second.end());
    return 0;
  }
  void release() override {
    std::fill(given_.begin(), given_.end(), kSpoilt);
    if (bytes_) std::fill_n(bytes_.data(), bytes_.size(), kSpoilt);
    std::fill_n(room_.data(), room_.size(), kSpoilt);
    released_.set_value();
  }

  bool wait() { return released_.get_future().wait_for(kPatience) == std::future_status::ready; }
  int replies() const { return replies_; }
  bool answered_from_its_room() const { return from_room_; }
  Reply answer() const { return {unique_, error_, body_}; }

 private:
  const std::uint64_t unique_;
  std::atomic<int>* const keep_;
  Bytes given_;
  AlignedBuffer bytes_, room_;
  int replies_ = 0, error_ = 0;
  bool from_room_ = false;
  Bytes body_;
  std::promise<void> released_;
};

class PiecePort : public Port {
 public:
  void pause() override {}
  void resume() override {}
};

// Of one serving thread.
class PieceTransport : public Transport {
 public:
  std::unique_ptr<Port> open(io::Reactor& reactor, const std::shared_ptr<BufferPool>&, MessageSink& sink) override {
    opened_.set_value(End{&reactor, &sink});
    return std::make_unique<PiecePort>();
  }
  int send(std::span<const iovec>) override { return 0; }
  bool settle(std::size_t, const Arrivals::Limits&) override { return true; }
  Arrivals::Writes writes() const override { return {}; }

  void deliver(Message& message) {
    const End& end = end_.get();
    end.reactor->post([sink = end.sink, &message] {
      sink->prepare();
      sink->receive(message);
    });
  }

 private:
  struct End {
    io::Reactor* reactor;
    MessageSink* sink;
  };
  std::promise<End> opened_;
  const std::shared_future<End> end_ = opened_.get_future().share();
};

class InPieces : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(call({.opcode = FUSE_INIT, .arguments = bytes_of(offer_of_a_kernel())}).error, 0);
    ASSERT_TRUE(served_->session().wait_initialised().ok());
  }

  Reply call(const Pieces& pieces) {
    messages_.push_back(std::make_unique<PieceMessage>(messages_.size() + 1, pieces));
    PieceMessage& message = *messages_.back();
    transport_.deliver(message);
    if (!message.wait()) return Reply{0, -1, {}};
    EXPECT_EQ(message.replies(), 1);
    return message.answer();
  }

  std::uint64_t make(const std::string& name) {
    const fuse_mknod_in in{0100644, 0, 0, 0};
    return call({.opcode = FUSE_MKNOD, .node = 1, .arguments = bytes_of(in) + name_bytes(name)}).as<fuse_entry_out>().nodeid;
  }
  static Pieces write_of(std::uint64_t node, std::uint64_t offset, const Bytes& data) {
    fuse_write_in in{};
    in.offset = offset;
    in.size = static_cast<std::uint32_t>(data.size());
    return {.opcode = FUSE_WRITE, .node = node, .arguments = bytes_of(in), .payload = data};
  }
  Bytes read(std::uint64_t node, std::uint64_t offset, std::size_t bytes) {
    fuse_read_in in{};
    in.offset = offset;
    in.size = static_cast<std::uint32_t>(bytes);
    return call({.opcode = FUSE_READ, .node = node, .arguments = bytes_of(in)}).body;
  }
  int sync(std::uint64_t node) { return call({.opcode = FUSE_FSYNC, .node = node, .arguments = bytes_of(fuse_fsync_in{})}).error; }

  const Bytes data_ = Bytes(kBlockSize, std::byte{1}) + Bytes(kBlockSize, std::byte{2});
  std::atomic<int> kept_{0};
  std::vector<std::unique_ptr<PieceMessage>> messages_;
  PieceTransport transport_;
  std::unique_ptr<ServedFilesystem> served_ =
      std::make_unique<ServedFilesystem>(transport_, Wishes{}, daemon::ServerOptions{.threads = 1});
};

TEST_F(InPieces, AreServedAndAnsweredInTheRoomThatTheyHave) {
  const std::uint64_t file = make("f");
  const Reply written = call(write_of(file, 0, data_));
  ASSERT_EQ(written.error, 0);
  EXPECT_EQ(written.as<fuse_write_out>().size, data_.size());
  ASSERT_EQ(sync(file), 0);
  EXPECT_EQ(read(file, 0, data_.size()), data_);
  EXPECT_TRUE(messages_.back()->answered_from_its_room());
}

TEST_F(InPieces, APayloadThatIsKeptOutlivesItsMessage) {
  const std::uint64_t file = make("f");
  constexpr std::uint64_t kOffset = changes::Unsealed::kYoungBlocks * kBlockSize;  // what comes before is copied
  Pieces write = write_of(file, kOffset, data_);
  write.keep = &kept_;
  ASSERT_EQ(call(write).error, 0);
  EXPECT_EQ(kept_.load(), 1);
  EXPECT_EQ(read(file, kOffset, data_.size()), data_);
  ASSERT_EQ(sync(file), 0);
  EXPECT_EQ(read(file, kOffset, data_.size()), data_);
  served_.reset();
  EXPECT_EQ(kept_.load(), 0);
}

}  // namespace
}  // namespace varve::fuse

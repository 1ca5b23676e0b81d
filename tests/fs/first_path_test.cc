// The first path through every room: make, mount, write, fsync, crash, recover, read, checkpoint, unmount, mount again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/buffer.h"
#include "format/make.h"
#include "fs/filesystem.h"
#include "io/mem_device.h"

namespace varve::fs {
namespace {

class FirstPath : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kDeviceBytes = 64u << 20;

  void SetUp() override {
    format::MakeParameters parameters;
    parameters.device_blocks = kDeviceBytes >> kBlockShift;
    SeededRandom random(1);
    auto made = format::make_filesystem(parameters, random);
    ASSERT_TRUE(made.ok()) << made.error().message();
    for (const auto& node : made->nodes)
      ASSERT_TRUE(device_->write(node.address.v << kBlockShift, node.bytes).ok());
    for (const auto& super : format::superblocks_of(*made))
      ASSERT_TRUE(device_->write(super.address.v << kBlockShift, super.bytes).ok());
  }

  void mount() {
    options_.background = false;
    auto mounted = Filesystem::mount(*device_, options_);
    ASSERT_TRUE(mounted.ok()) << mounted.error().message();
    fs_ = std::move(*mounted);
  }

  template <class F>
  auto run(F f) {
    Operation operation(fs_->operations(), {});
    return block_on(operation, [&] { return f(operation); });
  }

  Ino create(Ino parent, const std::string& name, std::uint32_t mode = S_IFREG | 0644) {
    auto made = run([&](Operation& op) { return fs_->make(op, parent, name, NewNode{mode, 0, 0, {}}); });
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? made->ino : Ino{};
  }
  void write(Ino ino, std::uint64_t offset, const std::string& text) {
    auto written = run([&](Operation& op) {
      return fs_->write(op, ino, offset, std::as_bytes(std::span(text.data(), text.size())), {});
    });
    ASSERT_TRUE(written.ok()) << written.error().message();
  }
  std::string read(Ino ino, std::uint64_t offset, std::size_t size) {
    AlignedBuffer out(size);
    auto got = run([&](Operation& op) { return fs_->read(op, ino, offset, out.span()); });
    EXPECT_TRUE(got.ok()) << got.error().message();
    return got.ok() ? std::string(reinterpret_cast<char*>(out.data()), *got) : "";
  }
  void sync() {
    auto status = run([&](Operation& op) { return fs_->sync(op); });
    ASSERT_TRUE(status.ok()) << status.error().message();
  }

  std::unique_ptr<io::MemDevice> device_ = std::make_unique<io::MemDevice>(kDeviceBytes);
  Options options_;
  std::unique_ptr<Filesystem> fs_;
};

TEST_F(FirstPath, what_was_synced_survives_a_crash) {
  mount();
  const Ino file = create(kRootIno, "hello");
  write(file, 0, "hello, sediment");
  const Ino big = create(kRootIno, "big");
  std::string content(3'000'000, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 23);
  for (std::size_t at = 0; at < content.size(); at += 500'000) write(big, at, content.substr(at, 500'000));
  sync();
  fs_.reset();  // a crash
  mount();
  auto found = run([&](Operation& op) { return fs_->lookup(op, kRootIno, "hello"); });
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->ino, file);
  EXPECT_EQ(found->size, 15u);
  EXPECT_EQ(read(file, 0, 4096), "hello, sediment");
  EXPECT_EQ(read(big, 0, content.size()), content);
  EXPECT_EQ(read(big, 12345, 100'000), content.substr(12345, 100'000));
}

TEST_F(FirstPath, the_status_tells_what_was_waited_for) {
  mount();
  const Ino file = create(kRootIno, "hello");
  write(file, 0, "hello, sediment");
  sync();
  const auto waited = [&](operation::WaitCause cause) { return fs_->status().waits[static_cast<std::size_t>(cause)]; };
  const std::uint64_t flushes = waited(operation::WaitCause::durable).times;
  EXPECT_GT(flushes, 0u);
  sync();  // nothing has changed
  EXPECT_EQ(waited(operation::WaitCause::data).times, 0u);
  ASSERT_TRUE(fs_->unmount().ok());
  fs_.reset();
  mount();
  EXPECT_EQ(read(file, 0, 100), "hello, sediment");
  EXPECT_EQ(waited(operation::WaitCause::data).times, 1u);
  EXPECT_GT(waited(operation::WaitCause::node).times, 0u);
  EXPECT_EQ(waited(operation::WaitCause::space).times, 0u);
  EXPECT_LE(waited(operation::WaitCause::node).longest_ns, waited(operation::WaitCause::node).total_ns);
}

TEST_F(FirstPath, a_clean_unmount_leaves_everything_in_the_trees) {
  mount();
  const Ino dir = create(kRootIno, "dir", S_IFDIR | 0755);
  for (int i = 0; i < 3000; ++i) {
    const Ino file = create(dir, "file" + std::to_string(i));
    if (i % 3 == 0) write(file, 0, "content of " + std::to_string(i));
  }
  ASSERT_TRUE(fs_->unmount().ok());
  fs_.reset();
  mount();
  EXPECT_EQ(fs_->status().replayed_chunks, 0u);
  for (int i = 0; i < 3000; i += 7) {
    auto found = run([&](Operation& op) { return fs_->lookup(op, dir, "file" + std::to_string(i)); });
    ASSERT_TRUE(found.ok()) << i << ": " << found.error().message();
    EXPECT_EQ(read(found->ino, 0, 100), i % 3 == 0 ? "content of " + std::to_string(i) : "");
  }
  std::size_t entries = 0;
  std::uint64_t cookie = 0;
  for (bool more = true; more;) {
    more = false;
    ASSERT_TRUE(run([&](Operation& op) {
                  return fs_->readdir(op, dir, cookie, true, [&](const DirectoryEntry& entry) {
                    ++entries;
                    cookie = entry.cookie;
                    return more = true;
                  });
                }).ok());
  }
  EXPECT_EQ(entries, 3002u);
}

TEST_F(FirstPath, overwriting_for_ever_keeps_working) {
  mount();
  const Ino file = create(kRootIno, "file");
  const std::size_t blocks = (40u << 20) / 4096;
  SeededRandom random(5);
  std::vector<char> tags(blocks, 0);
  std::string block(4096, 0);
  for (std::size_t i = 0; i < blocks; ++i) {
    std::fill(block.begin(), block.end(), tags[i] = 'a');
    write(file, i * 4096, block);
  }
  for (std::size_t i = 0; i < blocks * 6; ++i) {
    const std::size_t at = random.next() % blocks;
    tags[at] = static_cast<char>('b' + random.next() % 20);
    std::fill(block.begin(), block.end(), tags[at]);
    write(file, at * 4096, block);
    if (HasFatalFailure()) return;
    if (i % 1000 == 0) sync();
  }
  for (std::size_t i = 0; i < blocks; ++i) ASSERT_EQ(read(file, i * 4096, 4096), std::string(4096, tags[i])) << i;
  ASSERT_TRUE(fs_->unmount().ok());
  fs_.reset();
  mount();
  for (std::size_t i = 0; i < blocks; ++i) ASSERT_EQ(read(file, i * 4096, 4096), std::string(4096, tags[i])) << i;
}

}  // namespace
}  // namespace varve::fs

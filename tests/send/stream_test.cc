// The bytes of streams, and what no stream may do.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "send/receiver.h"
#include "send/stream.h"
#include "send/host_directory.h"
#include "support/script_generator.h"

namespace varve::test {
namespace {

using namespace send;

Begin sample_begin() {
  return {{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 9, "new"}, State{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 7, "old"}};
}

std::vector<Record> samples() {
  Finish finish{"/a/b", S_IFREG | 0644, 5, 6, 0, {-7, 8}, {9, 10}, {}};
  finish.xattrs = std::vector<format::Xattr>{{"user.a", {std::byte{1}, std::byte{2}}}};
  return {Detach{Ino{5}, true, false, "/x"},
          Detach{Ino{6}, false, true, "/d"},
          Make{Ino{7}, S_IFLNK | 0777, 0, "where"},
          Make{Ino{8}, S_IFCHR | 0600, 259, ""},
          Attach{Ino{7}, true, "", "/a/b"},
          Attach{Ino{9}, false, "/a/c", "/a/d"},
          Open{"/a/b", 12345},
          Data{4096, {std::byte{1}, std::byte{2}, std::byte{3}}},
          Range{true, 8192, 4096},
          finish,
          Finish{"/", S_IFDIR | 0755, 0, 0, 0, {1, 2}, {3, 4}, {}}};
}

send::Bytes stream_of(const std::vector<Record>& records) {
  send::Bytes bytes;
  StreamWriter writer(writing(bytes));
  EXPECT_TRUE(writer.begin(sample_begin()).ok());
  for (const Record& record : records) EXPECT_TRUE(writer.add(record).ok());
  EXPECT_TRUE(writer.end().ok());
  return bytes;
}

Result<std::vector<Record>> read_all(const send::Bytes& bytes) {
  StreamReader reader(reading(bytes));
  TRY(reader.begin());
  std::vector<Record> records;
  for (;;) {
    auto record = TRY(reader.next());
    if (!record) return records;
    records.push_back(std::move(*record));
  }
}

Status receive(const std::string& directory, const std::vector<Record>& records) {
  const send::Bytes bytes = stream_of(records);
  StreamReader reader(reading(bytes));
  TRY(reader.begin());
  Receiver receiver = TRY(Receiver::open(directory));
  TRY(receiver.receive(reader));
  return {};
}

TEST(Streams, say_what_was_written) {
  const send::Bytes bytes = stream_of(samples());
  StreamReader reader(reading(bytes));
  const auto begin = reader.begin();
  ASSERT_TRUE(begin.ok()) << begin.error().message();
  EXPECT_EQ(*begin, sample_begin());
  const auto records = read_all(bytes);
  ASSERT_TRUE(records.ok()) << records.error().message();
  EXPECT_EQ(*records, samples());
}

TEST(Streams, are_refused_when_a_bit_is_other) {
  const send::Bytes bytes = stream_of(samples());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    send::Bytes changed = bytes;
    changed[at] ^= std::byte{4};
    EXPECT_FALSE(read_all(changed).ok()) << at;
  }
}

TEST(Streams, are_refused_when_they_are_cut) {
  const send::Bytes bytes = stream_of(samples());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const auto records = read_all(send::Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)));
    ASSERT_FALSE(records.ok());
    EXPECT_TRUE(records.fails_with(Errc::corrupt) || length < 8) << length;
  }
}

// Each record by itself is right, and so are the checksums.
TEST(Streams, are_refused_when_they_make_no_sense) {
  const std::vector<Record> wrong = {Detach{Ino{5}, true, false, "/"},
                                     Detach{Ino{5}, true, false, "x"},
                                     Detach{Ino{5}, true, false, "/a/../b"},
                                     Detach{Ino{5}, true, false, "/a//b"},
                                     Detach{Ino{5}, true, false, "/a/"},
                                     Detach{Ino{5}, true, false, "/."},
                                     Detach{Ino{5}, true, false, std::string("/a\0b", 4)},
                                     Detach{Ino{5}, true, false, "/" + std::string(256, 'x')},
                                     Make{Ino{7}, 0644, 0, ""},
                                     Make{Ino{7}, S_IFLNK | 0777, 0, ""},
                                     Make{Ino{7}, S_IFREG | 0644, 0, "target"},
                                     Attach{Ino{7}, true, "a", "/b"},
                                     Attach{Ino{7}, true, "", "/"},
                                     Open{"/f", 1ULL << 63},
                                     Data{0, {}},
                                     Data{0, send::Bytes(kMostData + 1)},
                                     Range{false, 0, 0},
                                     Finish{"/f", 0, 0, 0, 0, {0, 1'000'000'000}, {}, {}}};
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_TRUE(read_all(stream_of({wrong[i]})).fails_with(Errc::corrupt)) << i;
}

TEST(Streams, of_other_programs_and_of_later_versions_are_told_apart) {
  EXPECT_TRUE(read_all(send::Bytes(1000)).fails_with(Errc::invalid));
  EXPECT_TRUE(read_all({}).fails_with(Errc::invalid));
  // A frame of its own, with a version that is not known.
  send::Bytes later = stream_of({});
  later.resize(8);
  const send::Bytes frame = {std::byte{2}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{2}, std::byte{0}};
  std::uint32_t crc = crc32c(frame);
  later.insert(later.end(), frame.begin(), frame.end());
  for (int i = 0; i < 4; ++i, crc >>= 8) later.push_back(static_cast<std::byte>(crc));
  EXPECT_TRUE(read_all(later).fails_with(Errc::unknown_feature));
}

TEST(Receiver, makes_what_a_stream_says) {
  HostDirectory host;
  const Finish root{"/", S_IFDIR | 0750, ::getuid(), ::getgid(), 0, {1, 2}, {3, 4}, {}};
  const Status done = receive(host.path(), {Make{Ino{2}, S_IFDIR | 0700, 0, ""}, Make{Ino{3}, S_IFREG | 0600, 0, ""},
                                            Attach{Ino{2}, true, "", "/d"}, Attach{Ino{3}, false, "", "/d/f"},
                                            Attach{Ino{3}, true, "", "/g"}, Open{"/g", 10000},
                                            Data{5000, {std::byte{'x'}}},
                                            Finish{"/g", S_IFREG | 0640, ::getuid(), ::getgid(), 0, {5, 6}, {7, 8}, {}}, root});
  ASSERT_TRUE(done.ok()) << done.error().message();
  struct stat status {};
  ASSERT_EQ(::stat((host.path() + "/d/f").c_str(), &status), 0);
  EXPECT_EQ(status.st_nlink, 2U);
  EXPECT_EQ(status.st_size, 10000);
  EXPECT_EQ(status.st_mode, S_IFREG | 0640U);
  EXPECT_EQ(status.st_mtim.tv_nsec, 8);
  EXPECT_EQ(status.st_atim.tv_sec, 5);
  ASSERT_EQ(::stat(host.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFDIR | 0750U);
  EXPECT_EQ(status.st_mtim.tv_sec, 3);
  EXPECT_FALSE(std::filesystem::exists(host.path() + "/.varve-receive"));
}

TEST(Receiver, reaches_nothing_outside) {
  HostDirectory outside, host;
  std::ofstream(outside.path() + "/secret") << "as it was";
  std::filesystem::create_directory_symlink(outside.path(), host.path() + "/way");
  std::filesystem::create_symlink(outside.path() + "/secret", host.path() + "/link");
  struct stat before {};
  ASSERT_EQ(::stat((outside.path() + "/secret").c_str(), &before), 0);
  const Finish finish{"/way/secret", S_IFREG | 0777, 1, 1, 0, {}, {}, {}};
  const std::vector<std::vector<Record>> streams = {
      {Open{"/way/secret", 0}},
      {Open{"/link", 0}},
      {Detach{Ino{2}, false, false, "/way/secret"}},
      {Detach{Ino{2}, true, false, "/way/secret"}},
      {Make{Ino{2}, S_IFREG | 0600, 0, ""}, Attach{Ino{2}, true, "", "/way/new"}},
      {Attach{Ino{2}, false, "/way/secret", "/stolen"}},
      {finish},
      {Make{Ino{2}, S_IFLNK | 0777, 0, outside.path()}, Attach{Ino{2}, true, "", "/w"}, Open{"/w/secret", 0}},
      {Finish{"/link", S_IFREG | 0777, ::getuid(), ::getgid(), 0, {}, {}, {}}},
      {Open{"/.varve-receive", 0}},
      {Data{0, {std::byte{1}}}},
      {Range{false, 0, 1}},
  };
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_FALSE(receive(host.path(), streams[i]).ok()) << i;
    std::filesystem::remove_all(host.path() + "/.varve-receive");
    std::filesystem::remove(host.path() + "/w");
    std::string text;
    std::getline(std::ifstream(outside.path() + "/secret"), text);
    EXPECT_EQ(text, "as it was") << i;
    struct stat status {};
    ASSERT_EQ(::stat((outside.path() + "/secret").c_str(), &status), 0);
    EXPECT_EQ(status.st_nlink, 1U) << i;
    EXPECT_EQ(status.st_mode, before.st_mode) << i;
    EXPECT_EQ(status.st_uid, before.st_uid) << i;
  }
}

TEST(Receiver, says_what_was_left_behind) {
  HostDirectory host;
  EXPECT_TRUE(receive(host.path(), {Make{Ino{2}, S_IFREG | 0600, 0, ""}}).fails_with(Errc::corrupt));  // it has no name
  EXPECT_TRUE(receive(host.path(), {}).fails_with(Errc::exists));
}

}  // namespace
}  // namespace varve::test

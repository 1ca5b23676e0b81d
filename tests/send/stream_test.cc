// The bytes of streams, and what no stream may do.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/crc32c.h"
#include "base/descriptor.h"
#include "send/host_directory.h"
#include "send/mark.h"
#include "send/receiver.h"
#include "send/stream.h"
#include "send/token.h"
#include "support/script_generator.h"

namespace varve::test {
namespace {

using namespace send;

Begin sample_begin() {
  return {{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 9, "new"}, State{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 7, "old"}, {}};
}

std::vector<Record> samples() {
  Finish finish{"/a/b", S_IFREG | 0644, 5, 6, 0, {-7, 8}, {9, 10}, {}};
  finish.xattrs = std::vector<format::Xattr>{{"user.a", {std::byte{1}, std::byte{2}}}};
  return {Detach{Ino{5}, true, false, "/x"},
          Detach{Ino{6}, false, true, "/d"},
          Make{Ino{7}, S_IFLNK | 0777, 0, "where"},
          Make{Ino{8}, S_IFCHR | 0600, 259, ""},
          Create{S_IFREG | 0640, 0, "", "/n"},
          Create{S_IFLNK | 0777, 0, "where", "/l"},
          Attach{Ino{7}, true, "", "/a/b"},
          Attach{Ino{9}, false, "/a/c", "/a/d"},
          Open{"/a/b", 12345},
          Data{4096, {std::byte{1}, std::byte{2}, std::byte{3}}},
          Range{true, 8192, 4096},
          finish,
          Finish{"/", S_IFDIR | 0755, 0, 0, 0, {1, 2}, {3, 4}, {}}};
}

send::Bytes stream_of(const std::vector<Record>& records, const Begin& begin = sample_begin()) {
  send::Bytes bytes;
  StreamWriter writer(writing(bytes));
  EXPECT_TRUE(writer.begin(begin).ok());
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

Status receive(const std::string& directory, const std::vector<Record>& records, const Begin& from = sample_begin()) {
  const send::Bytes bytes = stream_of(records, from);
  StreamReader reader(reading(bytes));
  const Begin begin = TRY(reader.begin());
  Receiver receiver = TRY(Receiver::open(directory));
  TRY(receiver.receive(reader, begin, {}));
  return {};
}

Begin whole() {
  Begin begin = sample_begin();
  begin.base.reset();
  return begin;
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
                                     Create{S_IFREG | 0600, 0, "", "/"},
                                     Create{S_IFREG | 0600, 0, "target", "/a"},
                                     Create{S_IFLNK | 0777, 0, "", "/a"},
                                     Create{0600, 0, "", "/a"},
                                     Open{"/f", 1ULL << 63},
                                     Data{0, {}},
                                     Data{0, send::Bytes(kMostData + 1)},
                                     Range{false, 0, 0},
                                     Finish{"/f", 0, 0, 0, 0, {0, 1'000'000'000}, {}, {}}};
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_TRUE(read_all(stream_of({wrong[i]})).fails_with(Errc::corrupt)) << i;
}

TEST(Streams, follow_one_another) {
  const send::Bytes one = stream_of(samples()), other = stream_of({samples()[0]}, whole());
  send::Bytes both = one;
  both.insert(both.end(), other.begin(), other.end());
  StreamReader reader(reading(both));
  ASSERT_TRUE(reader.begin().ok());
  for (const Record& record : samples()) EXPECT_EQ(*reader.next(), record);
  EXPECT_FALSE(reader.next()->has_value());
  const auto second = reader.another();
  ASSERT_TRUE(second.ok()) << second.error().message();
  EXPECT_EQ(*second, whole());
  EXPECT_EQ(*reader.next(), samples()[0]);
  EXPECT_FALSE(reader.next()->has_value());
  const auto third = reader.another();
  ASSERT_TRUE(third.ok()) << third.error().message();
  EXPECT_FALSE(third->has_value());
}

TEST(Streams, are_told_from_what_else_stands_behind_one) {
  const send::Bytes one = stream_of(samples());
  for (const std::size_t length : {1, 7, 8, 1000}) {
    send::Bytes longer = one;
    longer.resize(one.size() + length, std::byte{'V'});
    StreamReader reader(reading(longer));
    ASSERT_TRUE(reader.begin().ok());
    while (reader.next()->has_value()) {
    }
    EXPECT_TRUE(reader.another().fails_with(Errc::invalid)) << length;
  }
  send::Bytes cut = one;
  cut.insert(cut.end(), one.begin(), one.begin() + 20);  // a beginning that is not all there
  StreamReader reader(reading(cut));
  ASSERT_TRUE(reader.begin().ok());
  while (reader.next()->has_value()) {
  }
  EXPECT_TRUE(reader.another().fails_with(Errc::corrupt));
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

TEST(Streams, go_on_in_the_middle) {
  const std::vector<Record> all = samples();
  StreamReader whole_reader(reading(stream_of(all)));
  for (std::size_t skipped = 0; skipped <= all.size(); ++skipped) {
    Begin begin = sample_begin();
    for (std::size_t i = 0; i < skipped; ++i) begin.position.pass(all[i]);
    const send::Bytes bytes = stream_of(all, begin);
    StreamReader reader(reading(bytes));
    const auto found = reader.begin();
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(*found, begin);
    const auto rest = read_all(bytes);
    ASSERT_TRUE(rest.ok()) << rest.error().message();
    EXPECT_EQ(*rest, std::vector<Record>(all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end()));
  }
}

TEST(Streams, do_not_go_on_where_another_one_was) {
  Begin begin = sample_begin();
  begin.position = {3, 12345};
  send::Bytes bytes;
  StreamWriter writer(writing(bytes));
  ASSERT_TRUE(writer.begin(begin).ok());
  EXPECT_TRUE(writer.add(samples()[0]).ok());
  EXPECT_TRUE(writer.add(samples()[1]).ok());
  EXPECT_TRUE(writer.add(samples()[2]).fails_with(Errc::unsupported));
  StreamWriter shorter(writing(bytes));
  ASSERT_TRUE(shorter.begin(begin).ok());
  EXPECT_TRUE(shorter.end().fails_with(Errc::invalid));
}

TEST(Tokens, say_where_it_goes_on) {
  for (Begin begin : {sample_begin(), whole()}) {
    begin.position = {123'456'789, 0xFEDCBA98};
    const std::string token = token_of(begin);
    const auto back = begin_from(token);
    ASSERT_TRUE(back.ok()) << back.error().message();
    EXPECT_EQ(*back, begin);
    EXPECT_TRUE(lead_the_same_way(*back, begin));
    const Interrupted interrupted{begin, "/a path/with spaces"};
    const auto from = interrupted_from(mark_of(interrupted));
    ASSERT_TRUE(from.ok() && *from);
    EXPECT_EQ((*from)->begin, begin);
    EXPECT_EQ((*from)->path, interrupted.path);
    for (std::size_t i = 0; i < token.size(); ++i) {
      std::string other = token;
      other[i] = other[i] == '0' ? '1' : '0';
      EXPECT_FALSE(begin_from(other).ok()) << i;
      EXPECT_FALSE(begin_from(token.substr(0, i)).ok()) << i;
      EXPECT_FALSE(interrupted_from("receiving " + other).ok()) << i;
    }
    EXPECT_FALSE(begin_from(token + "00").ok());
  }
  EXPECT_FALSE(begin_from("0123456789abcdefgh").ok());
  EXPECT_FALSE(lead_the_same_way(sample_begin(), whole()));
  EXPECT_FALSE(*interrupted_from("c15c0289-ec2d-4a91-a7ec-8e65a18debbe 9 new"));
}

TEST(Receiver, makes_all_of_a_snapshot_in_place) {
  HostDirectory host;
  const auto finish = [](const std::string& path, std::uint32_t mode) {
    return Finish{path, mode, ::getuid(), ::getgid(), 0, {5, 6}, {7, 8}, {}};
  };
  const Status done = receive(host.path(), {Create{S_IFREG | 0600, 0, "", "/f"}, Open{"/f", 9000}, Data{0, {std::byte{'x'}}},
                                            Create{S_IFDIR | 0700, 0, "", "/d"}, Create{S_IFREG | 0600, 0, "", "/d/empty"},
                                            finish("/d/empty", S_IFREG | 0604), Attach{Ino{5}, false, "/f", "/d/link"},
                                            finish("/f", S_IFREG | 0640), Create{S_IFLNK | 0777, 0, "to", "/d/l"},
                                            finish("/d/l", S_IFLNK | 0777), Create{S_IFIFO | 0600, 0, "", "/d/p"},
                                            finish("/d/p", S_IFIFO | 0600), finish("/d", S_IFDIR | 0755), finish("/", S_IFDIR | 0700)},
                              whole());
  ASSERT_TRUE(done.ok()) << done.error().message();
  struct stat status {};
  ASSERT_EQ(::stat((host.path() + "/d/link").c_str(), &status), 0);
  EXPECT_EQ(status.st_nlink, 2U);
  EXPECT_EQ(status.st_size, 9000);
  EXPECT_EQ(status.st_mode, S_IFREG | 0640U);
  EXPECT_EQ(status.st_mtim.tv_nsec, 8);
  ASSERT_EQ(::stat((host.path() + "/d").c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 7);
  ASSERT_EQ(::stat((host.path() + "/d/empty").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFREG | 0604U);
  EXPECT_EQ(std::filesystem::read_symlink(host.path() + "/d/l"), "to");
  EXPECT_TRUE(std::filesystem::is_fifo(host.path() + "/d/p"));
}

TEST(Receiver, takes_records_in_their_order_only) {
  const Make make{Ino{2}, S_IFREG | 0600, 0, ""};
  const Finish finish{"/", S_IFDIR | 0700, ::getuid(), ::getgid(), 0, {}, {}, {}};
  const std::vector<std::pair<std::vector<Record>, Begin>> wrong = {
      {{finish, make}, sample_begin()},
      {{make, Detach{Ino{3}, false, false, "/x"}}, sample_begin()},
      {{Create{S_IFREG | 0600, 0, "", "/f"}}, sample_begin()},
      {{make}, whole()},
      {{Detach{Ino{3}, false, false, "/x"}}, whole()},
      {{Attach{Ino{3}, true, "", "/x"}}, whole()},
      {{}, whole()},
      {{finish, Create{S_IFREG | 0600, 0, "", "/f"}}, whole()}};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    HostDirectory host;
    std::ofstream(host.path() + "/x") << "x";
    EXPECT_TRUE(receive(host.path(), wrong[i].first, wrong[i].second).fails_with(Errc::corrupt)) << i;
  }
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
      {Create{S_IFREG | 0600, 0, "", "/way/new"}},
      {Create{S_IFLNK | 0777, 0, outside.path(), "/w"}, Create{S_IFREG | 0600, 0, "", "/w/new"}},
      {Make{Ino{2}, S_IFLNK | 0777, 0, outside.path()}, Attach{Ino{2}, true, "", "/w"}, Open{"/w/secret", 0}},
      {Finish{"/link", S_IFREG | 0777, ::getuid(), ::getgid(), 0, {}, {}, {}}},
      {Open{"/.varve-receive", 0}},
      {Make{Ino{2}, S_IFREG | 0600, 0, ""}, Open{"/.varve-receive/2", 0}},
      {Make{Ino{2}, S_IFREG | 0600, 0, ""}, Attach{Ino{2}, true, "", "/.varve-receive/x"}},
      {Make{Ino{2}, S_IFREG | 0600, 0, ""}, Attach{Ino{3}, false, "/.varve-receive/2", "/x"}},
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
    // The same, of which all is made in its place.
    std::vector<Record> others = streams[i];
    std::erase_if(others, [](const Record& one) { return std::holds_alternative<Make>(one) || std::holds_alternative<Detach>(one); });
    EXPECT_TRUE(others.empty() || !receive(host.path(), others, whole()).ok()) << i;
  }
}

// To open a device may do something, and a stream can make any.
TEST(Receiver, opens_files_and_directories_only) {
  HostDirectory host;
  const std::string pipe = host.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor events(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(events.get(), pipe.c_str(), IN_OPEN), 0);
  const auto finish = [](mode_t type) { return Finish{"/pipe", type | 0600, ::getuid(), ::getgid(), 0, {}, {}, {}}; };
  EXPECT_TRUE(receive(host.path(), {Open{"/pipe", 0}}).fails_with(Errc::corrupt));
  EXPECT_TRUE(receive(host.path(), {finish(S_IFREG)}).fails_with(Errc::corrupt));
  EXPECT_TRUE(receive(host.path(), {finish(S_IFDIR)}).fails_with(Errc::corrupt));
  inotify_event event {};
  EXPECT_LT(::read(events.get(), &event, sizeof event), 0) << "it was opened";
}

TEST(Receiver, says_what_was_left_behind) {
  HostDirectory host;
  EXPECT_TRUE(receive(host.path(), {Make{Ino{2}, S_IFREG | 0600, 0, ""}}).fails_with(Errc::corrupt));  // it has no name
  EXPECT_TRUE(receive(host.path(), {}).fails_with(Errc::exists));
}

}  // namespace
}  // namespace varve::test

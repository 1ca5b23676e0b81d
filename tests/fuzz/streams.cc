#include "fuzz/streams.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "format/append.h"
#include "send/host_file.h"
#include "send/receiver.h"
#include "send/record_codec.h"
#include "send/token.h"

namespace varve::fuzz {

using namespace send;

namespace {

namespace files = std::filesystem;

send::Source reading(Input bytes) {
  return [bytes](std::span<std::byte> out) mutable -> Status {
    if (bytes.size() < out.size()) return Errc::out_of_range;
    std::ranges::copy(bytes.first(out.size()), out.begin());
    bytes = bytes.subspan(out.size());
    return {};
  };
}

Sink writing(send::Bytes& bytes) {
  return [&bytes](std::span<const std::byte> more) -> Status {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  };
}

// A stream that is right comes back as it was.
void check_bytes(Input input) {
  StreamReader reader(reading(input));
  const auto begin = reader.begin();
  if (!begin.ok()) return;
  std::vector<Record> records;
  for (;;) {
    auto record = reader.next();
    if (!record.ok()) return;
    if (!*record) break;
    records.push_back(std::move(**record));
  }
  (void)reader.another().ok();  // what follows
  send::Bytes again;
  StreamWriter writer(writing(again));
  Begin all = *begin;
  all.position = {};
  require(writer.begin(all).ok(), "the beginning of a stream that cannot be written again");
  for (const Record& record : records) require(writer.add(record).ok(), "a record that cannot be written again");
  require(writer.end().ok(), "the end of a stream that cannot be written again");
  StreamReader second(reading(again));
  require(second.begin().ok(), "a stream whose beginning does not come back");
  for (const Record& record : records) {
    const auto back = second.next();
    require(back.ok() && *back && **back == record, "a record that comes back differently");
  }
}

void check_texts(Input input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  if (const auto begin = begin_from(text); begin.ok())
    require(*begin_from(token_of(*begin)) == *begin, "a token that comes back differently");
  if (const auto mark = interrupted_from(text); mark.ok() && *mark)
    require((*interrupted_from(mark_of(**mark)))->begin == (*mark)->begin, "a mark that comes back differently");
}

// So much that the machine's own filesystem is not what is tested, and that what was made can be removed.
void tame(Record& record) {
  constexpr std::uint64_t kMost = 1u << 20;
  if (auto* const open = std::get_if<Open>(&record)) open->size %= kMost;
  if (auto* const data = std::get_if<Data>(&record)) data->offset %= kMost;
  if (auto* const range = std::get_if<Range>(&record)) {
    range->offset %= kMost;
    range->length = 1 + range->length % kMost;
  }
  if (auto* const finish = std::get_if<Finish>(&record)) {
    finish->flags &= FS_NODUMP_FL;
    if (S_ISDIR(finish->mode)) finish->mode |= 0700;
  }
}

// What has the form of frames, whatever their checksums are. The first bit says whether there is a base, the others where to interrupt.
struct Parts {
  Begin begin{{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 9, "new"}, {}, {}};
  std::vector<Record> records;
  std::size_t cut = 0;
};

Parts parts_of(Input input) {
  Parts parts;
  fuzz::Source source(input);
  const std::uint64_t first = source.number(2);
  if (first & 1) parts.begin.base = State{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 7, "old"};
  constexpr std::size_t kMostTried = 64;
  while (!source.empty() && parts.records.size() < kMostTried) {
    const std::uint64_t length = source.number(2);
    const auto kind = static_cast<std::uint8_t>(source.number(1));
    format::Reader in(source.bytes(length % 2048));
    auto record = decode(kind, in);
    if (!record.ok() || !in.ok()) continue;
    tame(*record);
    parts.records.push_back(std::move(*record));
  }
  parts.cut = (first >> 1) % (parts.records.size() + 1);
  return parts;
}

class Scene {
 public:
  static constexpr const char* kMemory = "/dev/shm";
  // In memory where there is such a place: thousands of them are made in a second.
  Scene() : folder_((files::is_directory(kMemory) ? kMemory : files::temp_directory_path().string()) + "/varve-fuzz-XXXXXX") {
    require(::mkdtemp(folder_.data()) != nullptr, "a folder");
    files::create_directories(folder_ + "/in/d/e");
    files::create_directory(folder_ + "/outside");
    std::ofstream(folder_ + "/outside/secret") << "as it was";
    for (const char* name : {"/in/f", "/in/d/f", "/in/d/e/g"}) std::ofstream(folder_ + name) << name;
    files::create_directory_symlink(folder_ + "/outside", folder_ + "/in/way");
    files::create_symlink(folder_ + "/outside/secret", folder_ + "/in/link");
    require(::stat((folder_ + "/outside/secret").c_str(), &before_) == 0, "a file");
  }
  ~Scene() {
    std::error_code ignored;
    files::remove_all(folder_, ignored);
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  std::string inside() const { return folder_ + "/in"; }

  void check() const {
    struct stat after {};
    require(::stat((folder_ + "/outside/secret").c_str(), &after) == 0, "a file outside was removed");
    require(after.st_mode == before_.st_mode && after.st_uid == before_.st_uid && after.st_nlink == before_.st_nlink &&
                after.st_size == before_.st_size && after.st_mtim.tv_nsec == before_.st_mtim.tv_nsec,
            "a file outside was changed");
    std::size_t entries = 0;
    for (const auto& entry : files::directory_iterator(folder_ + "/outside")) entries += !entry.path().empty();
    require(entries == 1, "a file was made outside");
  }

 private:
  std::string folder_;
  struct stat before_ {};
};

Status receive(const Scene& scene, const Parts& parts, std::size_t records, bool goes_on) {
  send::Bytes bytes;
  StreamWriter writer(writing(bytes));
  TRY(writer.begin(parts.begin));
  for (std::size_t i = 0; i < records; ++i) TRY(writer.add(parts.records[i]));
  if (records == parts.records.size()) TRY(writer.end());
  StreamReader reader(reading(bytes));
  const Begin begin = TRY(reader.begin());
  Receiver receiver = TRY(Receiver::open(scene.inside(), 3));
  const auto interrupted = TRY(receiver.interrupted());
  TRY(receiver.receive(reader, begin, goes_on ? interrupted : std::nullopt));
  return {};
}

void check_receiver(Input input) {
  const Parts parts = parts_of(input);
  if (parts.records.empty()) return;
  const Scene scene;
  const bool all = receive(scene, parts, parts.cut, false).ok();
  if (!all) (void)receive(scene, parts, parts.records.size(), true);
  scene.check();
}

}  // namespace

void streams(Input input) {
  check_bytes(input);
  check_texts(input);
  check_receiver(input);
}

std::vector<std::vector<std::byte>> stream_seeds() {
  const Finish file{"/a/b", S_IFREG | 0644, 5, 6, 0, {-7, 8}, {9, 10}, std::vector<format::Xattr>{{"user.a", {std::byte{1}}}}};
  const Finish root{"/", S_IFDIR | 0755, 0, 0, 0, {1, 2}, {3, 4}, {}};
  const std::vector<Record> step{Detach{Ino{5}, true, false, "/d/e/g"}, Detach{Ino{6}, false, true, "/d/e"},
                                 Make{Ino{7}, S_IFLNK | 0777, 0, "/"}, Make{Ino{8}, S_IFDIR | 0700, 0, ""},
                                 Make{Ino{9}, S_IFREG | 0600, 0, ""}, Attach{Ino{8}, true, "", "/a"},
                                 Attach{Ino{9}, false, "", "/a/b"}, Attach{Ino{9}, true, "", "/a/c"}, Attach{Ino{5}, true, "", "/g"},
                                 Attach{Ino{4}, false, "/f", "/f2"}, Attach{Ino{7}, true, "", "/w"}, Open{"/a/b", 12345},
                                 Data{4096, {std::byte{1}, std::byte{2}}}, Range{true, 8192, 4096}, Range{false, 0, 4096}, file, root};
  const std::vector<Record> whole{Create{S_IFDIR | 0700, 0, "", "/a"}, Create{S_IFREG | 0600, 0, "", "/a/b"}, Open{"/a/b", 12345},
                                  Data{0, {std::byte{1}}}, file, Create{S_IFLNK | 0777, 0, "/", "/l"}, Create{S_IFIFO | 0600, 0, "", "/p"},
                                  Attach{Ino{3}, false, "/a/b", "/a/c"}, root};
  std::vector<std::vector<std::byte>> seeds;
  for (const auto& [records, first] : {std::pair(&step, 0x15), std::pair(&whole, 0x0A), std::pair(&step, 0x03), std::pair(&whole, 0x00)}) {
    Begin begin{{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 9, "new"}, {}, {}};
    if (first & 1) begin.base = State{"c15c0289-ec2d-4a91-a7ec-8e65a18debbe", 7, "old"};
    send::Bytes bytes, frames{static_cast<std::byte>(first), std::byte{0}};
    StreamWriter writer(writing(bytes));
    require(writer.begin(begin).ok(), "a seed");
    for (const Record& record : *records) {
      require(writer.add(record).ok(), "a seed");
      send::Bytes body;
      const std::uint8_t kind = encode(record, body);
      format::append_fixed(frames, body.size(), 2);
      format::append8(frames, kind);
      format::append_bytes(frames, body);
    }
    require(writer.end().ok(), "a seed");
    seeds.push_back(bytes);
    seeds.push_back(frames);
    begin.position = {12, 34};
    const std::string mark = mark_of({begin, "/a/b"}), token = token_of(begin);
    for (const std::string& text : {mark, token}) {
      const auto chars = std::as_bytes(std::span(text));
      seeds.emplace_back(chars.begin(), chars.end());
    }
  }
  return seeds;
}

}  // namespace varve::fuzz

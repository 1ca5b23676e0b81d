// A stream of changes that leads from one snapshot to another, as bytes (docs/format.md, "Streams").
//
// It begins with what it leads from and to, then come records in the order in which a receiver carries them out, then an end. Each frame
// has a CRC that goes on from the frame before, so a stream that was cut, put together or changed is noticed. A stream can also begin in
// the middle, where a receiver was interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "format/item.h"

namespace varve::send {

using format::Bytes;

// Which state of which filesystem.
struct State {
  std::string uuid;  // as people write it
  std::uint64_t serial = 0;
  std::string name;

  bool operator==(const State&) const = default;
};

// Paths begin with a slash, which is the directory that receives. Inodes are those of the sender, and names in the staging directory.
struct Detach {  // a name of the base goes
  Ino ino;
  bool stays = false;      // it is moved to the staging directory; else the name is removed
  bool directory = false;
  std::string path;        // in the base; deeper ones come first

  bool operator==(const Detach&) const = default;
};
struct Make {  // a new inode, in the staging directory
  Ino ino;
  std::uint32_t mode = 0, rdev = 0;
  std::string target;  // of a symlink

  bool operator==(const Make&) const = default;
};
struct Create {  // a new file in its place: in streams that have all of a snapshot
  std::uint32_t mode = 0, rdev = 0;
  std::string target;  // of a symlink
  std::string path;

  bool operator==(const Create&) const = default;
};
struct Attach {  // a name of the new state
  Ino ino;
  bool last = false;   // it leaves the staging directory
  std::string source;  // empty: it is in the staging directory; else a path where it is already
  std::string path;

  bool operator==(const Attach&) const = default;
};
struct Open {  // the regular file that the next records change
  std::string path;
  std::uint64_t size = 0;  // bytes, from now on

  bool operator==(const Open&) const = default;
};
struct Data {
  std::uint64_t offset = 0;
  Bytes bytes;

  bool operator==(const Data&) const = default;
};
struct Range {  // zeros
  bool reserved = false;  // blocks are set aside; else a hole
  std::uint64_t offset = 0, length = 0;

  bool operator==(const Range&) const = default;
};
struct Finish {  // attributes as they are to be, when all else is done
  std::string path;
  std::uint32_t mode = 0, uid = 0, gid = 0, flags = 0;
  Timestamp atime, mtime;
  std::optional<std::vector<format::Xattr>> xattrs;  // all of them; none: as in the base

  bool operator==(const Finish&) const = default;
};
using Record = std::variant<Detach, Make, Attach, Open, Data, Range, Finish, Create>;

// How far a stream has come. The same snapshots give the same records in the same order, so a stream can go on at any of them.
struct Position {
  std::uint64_t records = 0;  // before it
  std::uint32_t digest = 0;   // of what they say, but for the bytes of files

  void pass(const Record& record);
  void pass_data(std::uint64_t offset, std::uint64_t length);  // a record with so much data

  bool operator==(const Position&) const = default;
};

struct Begin {
  State snapshot;
  std::optional<State> base{};  // none: the stream has all of the snapshot
  Position position{};          // what was sent before, with another stream

  bool operator==(const Begin&) const = default;
};
inline constexpr std::uint64_t kMostRecords = 1ULL << 62;

inline constexpr std::size_t kMostData = 256u << 10;  // bytes of one record
inline constexpr std::size_t kMostBody = 4u << 20;    // of one frame

using Sink = std::function<Status(std::span<const std::byte>)>;
// Fills all of it. Errc::out_of_range: the stream has ended before.
using Source = std::function<Status(std::span<std::byte>)>;

class StreamWriter {
 public:
  explicit StreamWriter(Sink sink) : sink_(std::move(sink)) {}
  Status begin(const Begin& begin);
  // Writes it, if it is not before the position that the stream begins with. Errc::unsupported: the position is one of another stream.
  Status add(const Record& record);
  Status end();

  // What comes now was sent before: it need not be read.
  bool skips() const { return position_.records < skipped_.records; }
  Status skip_data(std::uint64_t offset, std::uint64_t length);  // as add() with data, while skips()

 private:
  Status frame(std::uint8_t kind, const Bytes& body);
  Status check_skipped() const;

  const Sink sink_;
  std::uint32_t crc_ = 0;
  Position skipped_, position_;
};

// Errc::corrupt says what is wrong. Believes nothing: lengths, paths and numbers are checked before they are used.
class StreamReader {
 public:
  explicit StreamReader(Source source) : source_(std::move(source)) {}
  Result<Begin> begin();
  Result<std::optional<Record>> next();  // none: it has ended as it should
  // After that: the beginning of the stream behind it in the same source. None: nothing is behind it. Errc::invalid: that is no stream.
  Result<std::optional<Begin>> another();
  const Position& position() const { return position_; }  // behind the last record

 private:
  struct Frame {
    std::uint8_t kind = 0;
    Bytes body;
  };
  Result<Begin> begin_behind_magic();
  Result<Frame> frame();
  Status fill(std::span<std::byte> out);

  const Source source_;
  std::uint32_t crc_ = 0;
  std::uint64_t bytes_ = 0;
  Position position_;
};

// Where "/a/b" can be a path of a file in a directory: no "..", no empty parts, no NUL. "/" is the directory itself.
bool is_sound_path(std::string_view path);

// Where inodes wait for their names, below the directory that receives. No path of a stream leads there.
inline constexpr std::string_view kStagingName = ".varve-receive";
bool is_in_staging(std::string_view path);

}  // namespace varve::send

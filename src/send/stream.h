// A stream of changes that leads from one snapshot to another, as bytes (docs/format.md, "Streams").
//
// It begins with what it leads from and to, then come records in the order in which a receiver carries them out, then an end. Each frame
// has a CRC that goes on from the frame before, so a stream that was cut, put together or changed is noticed.
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

struct Begin {
  State snapshot;
  std::optional<State> base;  // none: the stream has all of the snapshot

  bool operator==(const Begin&) const = default;
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
using Record = std::variant<Detach, Make, Attach, Open, Data, Range, Finish>;

inline constexpr std::size_t kMostData = 256u << 10;  // bytes of one record
inline constexpr std::size_t kMostBody = 4u << 20;    // of one frame

using Sink = std::function<Status(std::span<const std::byte>)>;
// Fills all of it. Errc::out_of_range: the stream has ended before.
using Source = std::function<Status(std::span<std::byte>)>;

class StreamWriter {
 public:
  explicit StreamWriter(Sink sink) : sink_(std::move(sink)) {}
  Status begin(const Begin& begin);
  Status add(const Record& record);
  Status end();

 private:
  Status frame(std::uint8_t kind, const Bytes& body);

  const Sink sink_;
  std::uint32_t crc_ = 0;
  std::uint64_t frames_ = 0;
};

// Errc::corrupt says what is wrong. Believes nothing: lengths, paths and numbers are checked before they are used.
class StreamReader {
 public:
  explicit StreamReader(Source source) : source_(std::move(source)) {}
  Result<Begin> begin();
  Result<std::optional<Record>> next();  // none: it has ended as it should

 private:
  struct Frame {
    std::uint8_t kind = 0;
    Bytes body;
  };
  Result<Frame> frame();
  Status fill(std::span<std::byte> out);

  const Source source_;
  std::uint32_t crc_ = 0;
  std::uint64_t frames_ = 0, bytes_ = 0;
};

// Where "/a/b" can be a path of a file in a directory: no "..", no empty parts, no NUL. "/" is the directory itself.
bool is_sound_path(std::string_view path);

}  // namespace varve::send

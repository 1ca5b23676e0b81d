// The attributes item. Most files have equal times, no device number and no directory fields: a byte of presence bits
// keeps a fresh file's attributes near 40 bytes.
#include <sys/stat.h>

#include <limits>

#include "format/append.h"
#include "format/codec.h"

namespace varve::format {

namespace {

enum Presence : std::uint8_t {
  kHasRdev = 1,
  kHasFlags = 2,
  kHasDirectory = 4,
  kHasAtime = 8,   // else equal to mtime
  kHasCtime = 16,  // likewise
  kHasBtime = 32,  // likewise
  kAllPresence = 63,
};

void append_time(Bytes& out, const Timestamp& time) {
  append_signed(out, time.seconds);
  append_fixed(out, time.nanoseconds, 4);
}

Timestamp read_time(Reader& in) {
  Timestamp time;
  time.seconds = in.signed_varint();
  time.nanoseconds = in.u32();
  return time;
}

std::uint8_t presence_of(const Attributes& a) {
  const bool directory = a.parent || a.next_cookie != 3 || a.entries != 0;
  return static_cast<std::uint8_t>((a.rdev ? kHasRdev : 0) | (a.flags ? kHasFlags : 0) |
                                   (directory ? kHasDirectory : 0) | (a.atime != a.mtime ? kHasAtime : 0) |
                                   (a.ctime != a.mtime ? kHasCtime : 0) | (a.btime != a.mtime ? kHasBtime : 0));
}

// A varint that must fit in 32 bits.
std::uint32_t narrow(Reader& in, bool& fits) {
  const std::uint64_t value = in.varint();
  if (value > std::numeric_limits<std::uint32_t>::max()) fits = false;
  return static_cast<std::uint32_t>(value);
}

bool is_known_type(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK: return (mode & ~0177777U) == 0;
    default: return false;
  }
}

Status check_attributes(const Attributes& a) {
  if (!is_known_type(a.mode)) return corrupt("attributes: impossible mode {:o}", a.mode);
  if (a.size > kMaxFileBytes) return corrupt("attributes: impossible size {}", a.size);
  if (a.blocks > kMaxFileBlocks) return corrupt("attributes: impossible number of blocks {}", a.blocks);
  if (a.next_cookie < 3) return corrupt("attributes: next cookie {} is reserved", a.next_cookie);
  if (a.next_cookie > kCookieLimit) return corrupt("attributes: impossible next cookie {}", a.next_cookie);
  for (const Timestamp& time : {a.atime, a.mtime, a.ctime, a.btime})
    if (time.nanoseconds >= 1'000'000'000) return corrupt("attributes: {} nanoseconds", time.nanoseconds);
  return {};
}

}  // namespace

void encode_attributes(const Attributes& a, Bytes& out) {
  const std::uint8_t presence = presence_of(a);
  append8(out, presence);
  append_varint(out, a.mode);
  append_varint(out, a.uid);
  append_varint(out, a.gid);
  append_varint(out, a.nlink);
  append_varint(out, a.size);
  append_varint(out, a.blocks);
  append_fixed(out, a.generation, 4);
  if (presence & kHasRdev) append_varint(out, a.rdev);
  if (presence & kHasFlags) append_varint(out, a.flags);
  if (presence & kHasDirectory) {
    append_varint(out, a.parent.v);
    append_varint(out, a.next_cookie);
    append_varint(out, a.entries);
  }
  append_time(out, a.mtime);
  if (presence & kHasAtime) append_time(out, a.atime);
  if (presence & kHasCtime) append_time(out, a.ctime);
  if (presence & kHasBtime) append_time(out, a.btime);
}

Result<Attributes> decode_attributes(std::span<const std::byte> value) {
  Reader in(value);
  Attributes a;
  bool fits = true;
  const std::uint8_t presence = in.u8();
  a.mode = narrow(in, fits);
  a.uid = narrow(in, fits);
  a.gid = narrow(in, fits);
  a.nlink = narrow(in, fits);
  a.size = in.varint();
  a.blocks = in.varint();
  a.generation = in.u32();
  if (presence & kHasRdev) a.rdev = narrow(in, fits);
  if (presence & kHasFlags) a.flags = narrow(in, fits);
  if (presence & kHasDirectory) {
    a.parent = Ino{in.varint()};
    a.next_cookie = in.varint();
    a.entries = in.varint();
  }
  a.mtime = read_time(in);
  a.atime = presence & kHasAtime ? read_time(in) : a.mtime;
  a.ctime = presence & kHasCtime ? read_time(in) : a.mtime;
  a.btime = presence & kHasBtime ? read_time(in) : a.mtime;
  if (!in.ok() || !fits || in.left() != 0 || (presence & ~kAllPresence))
    return corrupt("attributes: malformed value of {} bytes", value.size());
  TRY(check_attributes(a));
  return a;
}

}  // namespace varve::format

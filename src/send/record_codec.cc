#include "send/record_codec.h"

#include <sys/stat.h>

#include <algorithm>

#include "compare/bytes.h"
#include "format/codec.h"

namespace varve::send {

using compare::put;

namespace {

std::string text(format::Reader& in) { return std::string(in.text(in.varint())); }

}  // namespace

// --- states ---------------------------------------------------------------------------------------------------------------

void put_state(Bytes& out, const State& state) {
  put(out, std::string_view(state.uuid));
  put(out, state.serial);
  put(out, std::string_view(state.name));
}

State state(format::Reader& in) {
  State found;
  found.uuid = text(in);
  found.serial = in.varint();
  found.name = text(in);
  return found;
}

Result<bool> flag(format::Reader& in) {
  const std::uint64_t found = in.varint();
  if (found > 1) return bad("{}: neither yes nor no", found);
  return found == 1;
}

namespace {

constexpr std::size_t kMostPath = 64u << 10;
constexpr std::uint64_t kMostFile = 1ULL << 62;

// --- writing --------------------------------------------------------------------------------------------------------------

void put_time(Bytes& out, const Timestamp& time) {
  format::append_signed(out, time.seconds);
  put(out, std::uint64_t{time.nanoseconds});
}

std::uint8_t encode(const Detach& detach, Bytes& out) {
  put(out, detach.ino.v);
  put(out, std::uint64_t{detach.stays} | std::uint64_t{detach.directory} << 1);
  put(out, std::string_view(detach.path));
  return kDetach;
}

std::uint8_t encode(const Make& make, Bytes& out) {
  put(out, make.ino.v);
  put(out, std::uint64_t{make.mode});
  put(out, std::uint64_t{make.rdev});
  put(out, std::string_view(make.target));
  return kMake;
}

std::uint8_t encode(const Create& create, Bytes& out) {
  put(out, std::uint64_t{create.mode});
  put(out, std::uint64_t{create.rdev});
  put(out, std::string_view(create.target));
  put(out, std::string_view(create.path));
  return kCreate;
}

std::uint8_t encode(const Attach& attach, Bytes& out) {
  put(out, attach.ino.v);
  put(out, std::uint64_t{attach.last});
  put(out, std::string_view(attach.source));
  put(out, std::string_view(attach.path));
  return kAttach;
}

std::uint8_t encode(const Open& open, Bytes& out) {
  put(out, std::string_view(open.path));
  put(out, open.size);
  return kOpen;
}

std::uint8_t encode(const Data& data, Bytes& out) {
  put(out, data.offset);
  put(out, std::span<const std::byte>(data.bytes));
  return kData;
}

std::uint8_t encode(const Range& range, Bytes& out) {
  put(out, std::uint64_t{range.reserved});
  put(out, range.offset);
  put(out, range.length);
  return kRange;
}

std::uint8_t encode(const Finish& finish, Bytes& out) {
  put(out, std::string_view(finish.path));
  for (const std::uint32_t number : {finish.mode, finish.uid, finish.gid, finish.flags}) put(out, std::uint64_t{number});
  put_time(out, finish.atime);
  put_time(out, finish.mtime);
  put(out, std::uint64_t{finish.xattrs.has_value()});
  if (!finish.xattrs) return kFinish;
  Bytes blob;
  format::encode_xattrs(*finish.xattrs, blob);
  put(out, std::span<const std::byte>(blob));
  return kFinish;
}

// --- reading --------------------------------------------------------------------------------------------------------------

Result<std::string> path(format::Reader& in) {
  std::string found = text(in);
  if (in.ok() && !is_sound_path(found)) return bad("'{:.200}' is no path in a directory", found);
  return found;
}

Result<std::uint32_t> number(format::Reader& in) {
  const std::uint64_t found = in.varint();
  if (found >> 32) return bad("{}: too large", found);
  return static_cast<std::uint32_t>(found);
}

Result<Timestamp> time(format::Reader& in) {
  Timestamp found;
  found.seconds = in.signed_varint();
  found.nanoseconds = TRY(number(in));
  if (found.nanoseconds >= 1'000'000'000) return bad("a time with {} nanoseconds", found.nanoseconds);
  return found;
}

Result<Record> detach(format::Reader& in) {
  Detach found{.ino = Ino{in.varint()}, .path = {}};
  const std::uint64_t flags = in.varint();
  if (flags > 3) return bad("a name that goes in {} ways", flags);
  found.stays = (flags & 1) != 0;
  found.directory = (flags & 2) != 0;
  found.path = TRY(path(in));
  if (found.path == "/") return bad("the directory itself cannot be taken away");
  return Record(found);
}

Status check_kind(std::uint32_t mode, std::string_view target) {
  const auto type = mode & S_IFMT;
  const bool is_type = type == S_IFREG || type == S_IFDIR || type == S_IFLNK || type == S_IFIFO || type == S_IFSOCK || type == S_IFCHR ||
                       type == S_IFBLK;
  if (!is_type || (mode & ~(S_IFMT | 07777U))) return bad("{:o}: no type of file", mode);
  if (type == S_IFLNK ? target.empty() || target.size() > 4095 || target.find('\0') != target.npos : !target.empty())
    return bad("a symbolic link that leads nowhere");
  return {};
}

Result<Record> make(format::Reader& in) {
  Make found{.ino = Ino{in.varint()}, .target = {}};
  found.mode = TRY(number(in));
  found.rdev = TRY(number(in));
  found.target = text(in);
  TRY(check_kind(found.mode, found.target));
  return Record(found);
}

Result<Record> create(format::Reader& in) {
  Create found{.target = {}, .path = {}};
  found.mode = TRY(number(in));
  found.rdev = TRY(number(in));
  found.target = text(in);
  TRY(check_kind(found.mode, found.target));
  found.path = TRY(path(in));
  if (found.path == "/") return bad("the directory itself cannot be made");
  return Record(found);
}

Result<Record> attach(format::Reader& in) {
  Attach found{.ino = Ino{in.varint()}, .source = {}, .path = {}};
  found.last = TRY(flag(in));
  found.source = text(in);
  if (!found.source.empty() && (!is_sound_path(found.source) || found.source == "/")) return bad("'{:.200}' is no path", found.source);
  found.path = TRY(path(in));
  if (found.path == "/") return bad("the directory itself cannot be made");
  return Record(found);
}

Result<Record> open(format::Reader& in) {
  Open found{.path = TRY(path(in))};
  found.size = in.varint();
  if (found.size > kMostFile) return bad("a file of {} bytes", found.size);
  return Record(found);
}

Result<Record> data(format::Reader& in) {
  Data found{.offset = in.varint(), .bytes = {}};
  const auto bytes = in.bytes(in.varint());
  if (bytes.empty() || bytes.size() > kMostData || found.offset > kMostFile)
    return bad("data of {} bytes at {}", bytes.size(), found.offset);
  found.bytes.assign(bytes.begin(), bytes.end());
  return Record(found);
}

Result<Record> range(format::Reader& in) {
  Range found{.reserved = TRY(flag(in))};
  found.offset = in.varint();
  found.length = in.varint();
  if (found.length == 0 || found.offset > kMostFile || found.length > kMostFile) return bad("a range of {} bytes", found.length);
  return Record(found);
}

Result<Record> finish(format::Reader& in) {
  Finish found;
  found.path = TRY(path(in));
  for (std::uint32_t* const one : {&found.mode, &found.uid, &found.gid, &found.flags}) *one = TRY(number(in));
  found.atime = TRY(time(in));
  found.mtime = TRY(time(in));
  if (!TRY(flag(in))) return Record(found);
  auto xattrs = format::decode_xattrs(in.bytes(in.varint()));
  if (!xattrs.ok()) return bad("{}", xattrs.error().message());
  found.xattrs = std::move(*xattrs);
  return Record(std::move(found));
}

}  // namespace

std::uint8_t encode(const Record& record, Bytes& out) {
  return std::visit([&out](const auto& one) { return encode(one, out); }, record);
}

Result<Record> decode(std::uint8_t kind, format::Reader& in) {
  switch (kind) {
    case kDetach: return detach(in);
    case kMake: return make(in);
    case kAttach: return attach(in);
    case kOpen: return open(in);
    case kData: return data(in);
    case kRange: return range(in);
    case kFinish: return finish(in);
    case kCreate: return create(in);
    default: return bad("{}: no kind of record", kind);
  }
}

bool is_sound_path(std::string_view path) {
  if (path == "/") return true;
  if (path.size() < 2 || path.size() > kMostPath || path[0] != '/' || path.find('\0') != path.npos) return false;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
    at = end + 1;
  }
  return path.back() != '/';
}

bool is_in_staging(std::string_view path) {
  return path.starts_with('/') && path.substr(1).starts_with(kStagingName) &&
         (path.size() == kStagingName.size() + 1 || path[kStagingName.size() + 1] == '/');
}

}  // namespace varve::send

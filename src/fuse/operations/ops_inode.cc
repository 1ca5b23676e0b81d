#include <fcntl.h>
#include <linux/fs.h>

#include <algorithm>

#include "format/layout.h"
#include "fs/acl.h"
#include "fuse/operations/attributes.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"
#include "fuse/operations/xattrs.h"

namespace varve::fuse {

namespace {

constexpr std::size_t kMaxXattrName = 255;

// Of a file that lacks something the kernel is to ask again each time.
std::uint64_t valid_seconds(Request& r) { return r.session().lost_writes().lacks(r.node()) ? 0 : kForeverSeconds; }

void reply_attr(Request& r, const fs::Attr& attr) {
  r.reply_struct(to_attr_out(r.session().block_counts().with_unseen(attr), valid_seconds(r)));
}

// The namespaces that Linux knows; others are refused as every filesystem does.
Status check_xattr_name(std::string_view name) {
  if (name.size() > kMaxXattrName) return Errc::out_of_range;
  for (const std::string_view prefix : {"user.", "security.", "trusted."})
    if (name.starts_with(prefix)) return name.size() > prefix.size() ? Status() : Status(Errc::invalid);
  if (name == fs::kAccessAcl || name == fs::kDefaultAcl) return {};
  return Errc::unsupported;
}

Result<std::string_view> take_xattr_name(Request& r) {
  const auto name = TRY(r.body().take_string());
  TRY(check_xattr_name(name));
  return name;
}

// Before the first write(2) to a file that it has fresh attributes of, the kernel asks whether there is a capability,
// and removes it. It knows nothing of immutable files, and no OPEN names the writer. So of them it hears that there is
// one, also where there is none. Since that cannot be removed, write(2) fails with EPERM, instead of getting lost in the cache.
void reply_without_capability(Request& r) {
  r.serve([&r] { return r.fs().getattr(r.operation(), r.node()); },
          [&r](const fs::Attr& attr) {
            if (attr.flags & FS_IMMUTABLE_FL) return reply_sized(r, std::as_bytes(std::span("?", 1)), 0);
            if (attr.blocks == 0) r.session().block_counts().will_write(r.node());
            r.reply_error(Errc::no_attribute);
          });
}

// Where there is one, getcap(8) and others ask for its size in the same way.
Status ask_for_capability(Request& r) {
  r.serve_result([&r] { return r.fs().getxattr(r.operation(), r.node(), kCapability); },
                 [&r](const Result<std::vector<std::byte>>& value) {
                   if (value.fails_with(Errc::no_attribute)) return reply_without_capability(r);
                   if (!value.ok()) return r.reply_error(value.error());
                   reply_sized(r, *value, 0);
                 });
  return {};
}

// The kernel sends times of its own before each fsync.
bool only_times(const fuse_setattr_in& in) {
  constexpr std::uint32_t kTimes = FATTR_ATIME | FATTR_ATIME_NOW | FATTR_MTIME | FATTR_MTIME_NOW | FATTR_CTIME;
  return (in.valid & ~(kTimes | FATTR_FH)) == 0;
}

void reply_opened(Request& r) {
  fuse_open_out out{};
  out.open_flags = FOPEN_KEEP_CACHE;  // what the kernel assumes when it does not ask
  r.reply_struct(out);
}

}  // namespace

// Refused for good where no file can object, for what it costs: then the kernel opens files without asking.
Status open(Request& r) {
  if (!r.session().settings().wishes.ask_opens) return not_implemented(r);
  const auto in = TRY(r.body().take<fuse_open_in>());
  if ((in.flags & O_ACCMODE) == O_RDONLY) return reply_opened(r), Status();
  const std::uint32_t forbidding = in.flags & O_APPEND ? FS_IMMUTABLE_FL : FS_IMMUTABLE_FL | FS_APPEND_FL;
  r.serve([&r] { return r.fs().getattr(r.operation(), r.node()); },
          [&r, forbidding](const fs::Attr& attr) {
            if (attr.flags & forbidding) return r.reply_error(Errc::not_permitted);
            reply_opened(r);
          });
  return {};
}

// Before each write(2) through its cache to a file that it has no fresh attributes of, the kernel asks for them on behalf of
// the open file, and then for a capability (ask_for_capability). Before a read that reaches the end it does only the first. So
// a thread that has done both writes, and if something has been refused since, its next write(2) can be made to fail.
Status getattr(Request& r) {
  if (r.session().lost_writes().any()) {
    const auto in = TRY(r.body().take<fuse_getattr_in>());
    const bool by_open_file = (in.getattr_flags & FUSE_GETATTR_FH) != 0;
    if (by_open_file)
      if (const auto news = r.session().lost_writes().take_news(r.node(), r.header().pid)) return *news;
  }
  r.session().block_counts().asked(r.node());
  r.serve([&r] { return r.fs().getattr(r.operation(), r.node()); },
          [&r](const fs::Attr& attr) { reply_attr(r, attr); });
  return {};
}

Status statx(Request& r) {
  r.session().block_counts().asked(r.node());
  r.serve([&r] { return r.fs().getattr(r.operation(), r.node()); },
          [&r](const fs::Attr& attr) { r.reply_struct(to_statx(r.session().block_counts().with_unseen(attr), valid_seconds(r))); });
  return {};
}

namespace {

// The kernel asks for a capability before these, as it does before a write (ask_for_capability). It has cut what it caches then, or written
// it back, and no write(2) can come between.
constexpr std::uint32_t kWrittenBackBefore = FATTR_SIZE | FATTR_MODE | FATTR_UID | FATTR_GID;

void set_attributes(Request& r, const fuse_setattr_in& in, bool is_cut) {
  fs::AttrChange change = to_change(in, r.session().clock().now());
  change.is_cut = is_cut;
  // A truncate(2) to the size that a file has changes no time on Linux.
  change.kernel_dates = r.session().kernel_dates() && (in.valid & ~(FATTR_FH | FATTR_LOCKOWNER)) == FATTR_SIZE;
  if (change.drop_privileges) r.caller();
  const auto attempt = [&r, change] { return r.fs().setattr(r.operation(), r.node(), change); };
  const auto finish = [&r, in](const fs::Attr& attr) {
    if (in.valid & FATTR_SIZE) {
      r.session().lost_writes().cut(r.node(), in.size);
    }
    if (in.valid & kWrittenBackBefore) r.session().block_counts().forget(r.node());
    reply_attr(r, attr);
  };
  if (only_times(in))
    r.serve(attempt, finish);
  else
    r.serve_change(Change::other, attempt, finish);
}

// A file gets a size. With writeback the kernel may have a longer one than the filesystem, and cut it to a size that looks like an
// extension. Then what is set aside behind that goes, which would stay if the file became longer. If the last byte that remains is in the
// kernel's cache, the file was as long. Where it is not, it was either written back, which has told the size, or lies in a hole.
Status set_size(Request& r, const fuse_setattr_in& in) {
  r.serve([&r, size = in.size] { return r.fs().has_room_behind(r.operation(), r.node(), size); },
          [&r, in](bool has_room) {
            if (!has_room) return set_attributes(r, in, false);
            const auto go_on = [&r, in](bool is_cut) { r.post([&r, in, is_cut] { set_attributes(r, in, is_cut); }); };
            r.session().cache_probes().ask(r.node(), in.size - 1, go_on);
          });
  return {};
}

}  // namespace

Status setattr(Request& r) {
  const auto in = TRY(r.body().take<fuse_setattr_in>());
  if ((in.valid & FATTR_SIZE) && r.session().kernel_dates()) return set_size(r, in);
  set_attributes(r, in, false);
  return {};
}

Status readlink(Request& r) {
  r.serve([&r] { return r.fs().readlink(r.operation(), r.node()); },
          [&r](const std::string& target) { r.reply_bytes(std::as_bytes(std::span(target))); });
  return {};
}

Status getxattr(Request& r) {
  const auto in = TRY(r.body().take<fuse_getxattr_in>());
  const auto name = TRY(take_xattr_name(r));
  if (name == kCapability && in.size == 0) {
    r.session().lost_writes().writes(r.node(), r.header().pid);
    return ask_for_capability(r);
  }
  r.serve([&r, name] { return r.fs().getxattr(r.operation(), r.node(), name); },
          [&r, room = in.size](const std::vector<std::byte>& value) { reply_sized(r, value, room); });
  return {};
}

Status listxattr(Request& r) {
  const auto in = TRY(r.body().take<fuse_getxattr_in>());
  r.serve([&r] { return r.fs().listxattr(r.operation(), r.node()); },
          [&r, room = in.size](const std::vector<std::string>& names) { reply_names(r, names, room); });
  return {};
}

Status setxattr(Request& r) {
  const Agreement* const agreement = r.session().agreement();
  fuse_setxattr_in in{};
  if (agreement && agreement->setxattr_extended) {
    in = TRY(r.body().take<fuse_setxattr_in>());
  } else {
    struct Short {
      std::uint32_t size, flags;
    };
    const auto old = TRY(r.body().take<Short>());
    in.size = old.size;
    in.flags = old.flags;
  }
  const auto name = TRY(take_xattr_name(r));
  if (in.size > format::kMaxXattrValue) return Errc::argument_too_big;
  const auto value = TRY(r.body().take_bytes(in.size));
  unsigned flags = in.flags & (fs::kXattrCreate | fs::kXattrReplace);
  // The kernel says so of a default ACL, too, though that one has nothing to do with the mode of its directory.
  if (name == fs::kAccessAcl && (in.setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID)) flags |= fs::kXattrDropSetgid;
  r.serve_change(
      Change::other, [&r, name, value, flags] { return r.fs().setxattr(r.operation(), r.node(), name, value, flags); },
      [&r] { r.reply(); });
  return {};
}

Status removexattr(Request& r) {
  const auto name = TRY(take_xattr_name(r));
  r.serve_change(
      Change::other, [&r, name] { return r.fs().removexattr(r.operation(), r.node(), name); }, [&r] { r.reply(); });
  return {};
}

}  // namespace varve::fuse

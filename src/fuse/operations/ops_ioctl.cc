#include <linux/capability.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "control/control.h"
#include "fuse/operations/control_requests.h"
#include "fuse/operations/ioctl_reply.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"
#include "fuse/protocol/privilege.h"

namespace varve::fuse {

namespace {

constexpr std::uint32_t kShutdownIoctl = _IOR('X', 125, std::uint32_t);  // FS_IOC_SHUTDOWN, which older headers do not have

// Commands by the numbers that programs of 64 bits have for them, and of 32 bits. There the kernel's header knows no others.
constexpr std::uint32_t kGetFlags = _IOR('f', 1, std::uint64_t), kGetFlags32 = _IOR('f', 1, std::uint32_t);
constexpr std::uint32_t kSetFlags = _IOW('f', 2, std::uint64_t), kSetFlags32 = _IOW('f', 2, std::uint32_t);
constexpr std::uint32_t kGetVersion = _IOR('v', 1, std::uint64_t), kGetVersion32 = _IOR('v', 1, std::uint32_t);

// Flags that Varve keeps for chattr(1), in both of the kernel's spellings.
struct FlagName {
  std::uint32_t flag;   // FS_IOC_GETFLAGS
  std::uint32_t xflag;  // FS_IOC_FSGETXATTR
};
constexpr FlagName kFlags[] = {{FS_SYNC_FL, FS_XFLAG_SYNC},
                               {FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE},
                               {FS_APPEND_FL, FS_XFLAG_APPEND},
                               {FS_NODUMP_FL, FS_XFLAG_NODUMP},
                               {FS_NOATIME_FL, FS_XFLAG_NOATIME}};

std::uint32_t known_flags() {
  std::uint32_t all = 0;
  for (const FlagName& name : kFlags) all |= name.flag;
  return all;
}

// Of four bytes, though the numbers of these commands say long: programs ask for an int (lsattr -v), as Linux answers nothing longer. More
// would be written over what stands behind it.
void reply_number(Request& r, std::uint32_t number, std::uint32_t room) {
  reply_ioctl(r, std::as_bytes(std::span(&number, 1)).first(std::min<std::size_t>(room, sizeof number)));
}

// Newer kernels check the permission themselves, and on an id-mapped mount only they can. The kernel does not learn that a file wants its
// writes synchronous, and keeps them in its cache: so nobody is promised that any more, but files that have it from before may keep it.
Status may_set_flags(const Request& r, const fs::Attr& attr, std::uint32_t flags) {
  constexpr std::uint32_t kRootOnly = FS_IMMUTABLE_FL | FS_APPEND_FL;
  if (flags & ~attr.flags & FS_SYNC_FL) return Errc::unsupported;
  const std::uint32_t uid = r.header().uid;
  if (uid != 0 && uid != kUntold && uid != attr.uid) return Errc::not_permitted;
  if ((flags ^ attr.flags) & kRootOnly && !has_capability(r.header().pid, CAP_LINUX_IMMUTABLE)) return Errc::not_permitted;
  return {};
}

void apply_flags(Request& r, std::uint32_t flags) {
  fs::AttrChange change;
  change.flags = flags;
  r.serve_change(
      Change::other, [&r, change] { return r.fs().setattr(r.operation(), r.node(), change); },
      [&r](const fs::Attr&) {
        r.session().drop_cached_attributes(r.node());  // also makes it ask again for the right to write (ops_inode.cc)
        reply_ioctl(r, {});
      });
}

// What the kernel has accepted before a file becomes immutable is written before, too.
Status set_flags(Request& r, std::uint32_t flags) {
  if (flags & ~known_flags()) return Errc::unsupported;
  r.serve([&r] { return r.fs().getattr(r.operation(), r.node()); },
          [&r, flags](const fs::Attr& attr) {
            const Status permitted = may_set_flags(r, attr, flags);
            if (!permitted.ok()) return r.reply_error(permitted.error());
            if (!S_ISREG(attr.mode) || !(flags & ~attr.flags & FS_IMMUTABLE_FL)) return apply_flags(r, flags);
            r.session().flusher().flush(r.node(), 0, [&r, flags] { r.post([&r, flags] { apply_flags(r, flags); }); });
          });
  return {};
}

void reply_xflags(Request& r, const fs::Attr& attr) {
  fsxattr out{};
  for (const FlagName& name : kFlags)
    if (attr.flags & name.flag) out.fsx_xflags |= name.xflag;
  reply_ioctl_struct(r, out);
}

// Answers what can be asked of any inode, also of one in a snapshot.
void reply_attribute(Request& r, std::uint32_t command, std::uint32_t room, const fs::Attr& attr) {
  switch (command) {
    case kGetFlags:
      return reply_number(r, attr.flags, room);
    case kGetVersion:
    case kGetVersion32:
      return reply_number(r, attr.generation, room);
    case FS_IOC_FSGETXATTR:
      return reply_xflags(r, attr);
    default:
      return r.reply_errno(ENOTTY);
  }
}

Status tell_attribute(Request& r, Ino ino, std::uint32_t command, std::uint32_t room) {
  r.serve([&r, ino] { return r.fs().getattr(r.operation(), ino); },
          [&r, command, room](const fs::Attr& attr) { reply_attribute(r, command, room, attr); });
  return {};
}

Status set_xflags(Request& r) {
  const auto in = TRY(r.body().take<fsxattr>());
  std::uint32_t flags = 0, unknown = in.fsx_xflags;
  for (const FlagName& name : kFlags) {
    if (in.fsx_xflags & name.xflag) flags |= name.flag;
    unknown &= ~name.xflag;
  }
  if (unknown || in.fsx_projid || in.fsx_extsize || in.fsx_cowextsize) return Errc::unsupported;
  return set_flags(r, flags);
}

Status get_label(Request& r) {
  char label[FSLABEL_MAX] = {};
  const std::string text = r.fs().label();
  std::memcpy(label, text.data(), std::min(text.size(), sizeof label - 1));
  reply_ioctl_struct(r, label);
  return {};
}

// As `varve label` does: it is on the device when this returns.
Status set_label(Request& r) {
  struct Label {
    char text[FSLABEL_MAX];
  };
  TRY(may_ask(r, "label"));
  const auto label = TRY(r.body().take<Label>());
  TRY(r.fs().tune("label", {label.text, ::strnlen(label.text, sizeof label.text)}));
  r.serve([&r] { return r.fs().checkpoint(r.operation()); }, [&r] { reply_ioctl(r, {}); });
  return {};
}

// The kernel does not hand over its flag word, so it is always taken for "no flush": nothing more is written, as if power had gone.
Status shut_down(Request& r) {
  TRY(may_ask(r, "shut_down"));
  r.session().shut_down();
  r.fs().stop_writing(Error(Errc::io, fmt::format("shut down by process {} (FS_IOC_SHUTDOWN)", r.header().pid)));
  reply_ioctl(r, {});
  return {};
}

Status trim(Request& r) {
  TRY(may_ask(r, "trim"));
  const auto range = TRY(r.body().take<fstrim_range>());
  r.serve([&r, range] { return r.fs().trim(r.operation(), range.start, range.len, range.minlen); },
          [&r, range](std::uint64_t bytes) {
            reply_ioctl_struct(r, fstrim_range{range.start, bytes, range.minlen});
          });
  return {};
}

// A 32-bit program asks so before Linux 5.13, and any program on a system of 32 bits. Since then the kernel translates these two itself.
// It hands on those of a 64-bit program without looking at rights and whether the mount is read-only: these get no answer, as on other
// filesystems.
std::uint32_t as_of_64_bits(const fuse_ioctl_in& in) {
  if (in.flags & (FUSE_IOCTL_COMPAT | FUSE_IOCTL_32BIT)) {
    if (in.cmd == kGetFlags32) return kGetFlags;
    if (in.cmd == kSetFlags32) return kSetFlags;
  }
  return in.cmd;
}

}  // namespace

// Flags are told as they were then, and not set: the kernel has refused that, as the inode or its mount is read-only, or hears ENOTTY.
Status ioctl_kept(Request& r, std::optional<Ino> ino) {
  const auto in = TRY(r.body().take<fuse_ioctl_in>());
  if (ino) return tell_attribute(r, *ino, as_of_64_bits(in), in.out_size);
  return reply_attribute(r, as_of_64_bits(in), in.out_size, {}), Status();
}

Status ioctl(Request& r) {
  const auto in = TRY(r.body().take<fuse_ioctl_in>());
  switch (as_of_64_bits(in)) {
    case kGetFlags:
    case kGetVersion:
    case kGetVersion32:
    case FS_IOC_FSGETXATTR:
      return tell_attribute(r, r.node(), as_of_64_bits(in), in.out_size);
    case kSetFlags:
      return set_flags(r, TRY(r.body().take<std::uint32_t>()));
    case FS_IOC_FSSETXATTR:
      return set_xflags(r);
    case FS_IOC_GETFSLABEL:
      return get_label(r);
    case FS_IOC_SETFSLABEL:
      return set_label(r);
    case kShutdownIoctl:
      return shut_down(r);
    case FITRIM:
      return trim(r);
    case control::kControlIoctl:
      return control_message(r);
    default:
      return older_message(r, in.cmd);
  }
}

}  // namespace varve::fuse

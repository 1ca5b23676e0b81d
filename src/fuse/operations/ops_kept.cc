#include "fuse/operations/ops_kept.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>

#include "fs/snapshot_looks.h"
#include "fuse/operations/attributes.h"
#include "fuse/operations/kept_node.h"
#include "fuse/operations/listing.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"
#include "fuse/operations/xattrs.h"

namespace varve::fuse {

namespace {

// A name may be another one's at any moment: the kernel asks each time.
constexpr std::uint64_t kNameSeconds = 0;

KeptNode node_of(Request& r) { return KeptNode::decode(r.node()); }

// What follows is asked of the snapshot.
Ino enter(Request& r) {
  const KeptNode node = node_of(r);
  r.show(node.snapshot);
  return node.ino;
}

fs::Attr folder_attr(Request& r) {
  fs::Attr attr;
  attr.ino = kSnapshotsFolder;
  attr.mode = S_IFDIR | 0555;
  attr.nlink = 2;
  // Programs that keep what they have seen look at this.
  attr.atime = attr.mtime = attr.ctime = attr.btime = fs::snapshot_news(r.fs()).changed;
  return attr;
}

void reply_entry(Request& r, Serial snapshot, const fs::Attr& attr, std::uint64_t valid_seconds) {
  const auto number = KeptNode{snapshot, attr.ino}.encode();
  if (!number) return r.reply_errno(EOVERFLOW);
  fuse_entry_out out = to_entry(attr, *number);
  out.entry_valid = valid_seconds;
  r.reply_struct(out);
}

Status refuse(Request&) { return Errc::read_only; }

// Copied by reading and writing instead.
Status refuse_to_copy(Request& r) { return r.reply_errno(EXDEV), Status(); }
Status ask_kept(Request& r) { return ioctl_kept(r, node_of(r).is_folder() ? std::nullopt : std::optional(enter(r))); }

Status done(Request& r) { return r.reply(), Status(); }

// --- the folder -----------------------------------------------------------------------------------------------------------

Status lookup_snapshot(Request& r, std::string_view name) {
  if (name == ".") return r.reply_struct(to_entry(folder_attr(r), kSnapshotsFolder)), Status();
  if (name == "..") {
    r.session().listings().folder.sought_by(r.header().pid);
    r.serve([&r] { return r.fs().getattr(r.operation(), kRootIno); },
            [&r](const fs::Attr& attr) { r.fs().count_reference(kRootIno), r.reply_struct(to_entry(attr, attr.ino)); });
    return {};
  }
  const auto found = fs::find_snapshot(r.fs(), name);
  if (!found) return Errc::not_found;
  const Serial snapshot{found->serial};
  r.show(snapshot);
  r.serve([&r] { return r.fs().getattr(r.operation(), kRootIno); },
          [&r, snapshot](const fs::Attr& attr) { reply_entry(r, snapshot, attr, kNameSeconds); });
  return {};
}

Status list_snapshots(Request& r, const fuse_read_in& in, bool plus) {
  constexpr std::uint8_t kDirectory = S_IFDIR >> 12;
  constexpr std::uint64_t kDots = 2;
  const auto from = in.offset ? ListingPosition::decode(in.offset) : std::nullopt;
  if (from && from->at_end()) return reply_end_of_listing(r, from->may_be_kept), Status();
  const Serial newest = fs::snapshot_news(r.fs()).newest;
  const std::uint64_t last = newest ? kDots + newest.v : kDots;
  const std::size_t space = std::min(in.size, kMaxWrite);
  Listing listing(r.reply_space(space), plus, from, std::nullopt);
  const auto add = [&](std::string_view name, Ino number, std::uint64_t cookie) {
    return cookie <= listing.cookie() || listing.add({name, number, kDirectory, cookie, nullptr, false, last});
  };
  bool goes_on = add(".", kSnapshotsFolder, 1) && add("..", kRootIno, kDots);
  const Serial known{std::max(listing.cookie(), kDots) - kDots};
  const std::size_t most = space / (plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET) + 1;
  for (const fs::SnapshotFacts& one : fs::snapshots_behind(r.fs(), known, most)) {
    const auto number = KeptNode{Serial{one.serial}, kRootIno}.encode();
    if (!goes_on) break;
    if (number) goes_on = add(one.name, *number, kDots + one.serial);
  }
  reply_listing(r, listing);
  return {};
}

// --- what is in snapshots -------------------------------------------------------------------------------------------------

Status lookup_kept(Request& r) {
  const auto name = TRY(r.body().take_name());
  if (node_of(r).is_folder()) return lookup_snapshot(r, name);
  const Serial snapshot = node_of(r).snapshot;
  const Ino parent = enter(r);
  if (name == ".." && parent == kRootIno) return r.reply_struct(to_entry(folder_attr(r), kSnapshotsFolder)), Status();
  r.serve_result([&r, parent, name] { return r.fs().lookup(r.operation(), parent, name); },
                 [&r, snapshot](const Result<fs::Attr>& found) {
                   if (found.ok()) return reply_entry(r, snapshot, *found, kForeverSeconds);
                   if (found.fails_with(Errc::not_found)) return r.reply_struct(no_entry());
                   r.reply_error(found.error());
                 });
  return {};
}

template <class Reply>
Status with_attributes(Request& r, Reply reply) {
  if (node_of(r).is_folder()) return reply(folder_attr(r), std::uint64_t{0}), Status();
  const Ino ino = enter(r);
  r.serve([&r, ino] { return r.fs().getattr(r.operation(), ino); },
          [&r, reply](fs::Attr attr) {
            attr.ino = r.node();
            reply(attr, kForeverSeconds);
          });
  return {};
}

Status getattr_kept(Request& r) {
  return with_attributes(r, [&r](const fs::Attr& attr, std::uint64_t valid) { r.reply_struct(to_attr_out(attr, valid)); });
}

Status statx_kept(Request& r) {
  return with_attributes(r, [&r](const fs::Attr& attr, std::uint64_t valid) { r.reply_struct(to_statx(attr, valid)); });
}

Status readlink_kept(Request& r) {
  const Ino ino = enter(r);
  r.serve([&r, ino] { return r.fs().readlink(r.operation(), ino); },
          [&r](const std::string& target) { r.reply_bytes(std::as_bytes(std::span(target))); });
  return {};
}

// Usually the kernel does not ask (ops_inode.cc). Then write(2) is refused as for an immutable file: see getxattr_kept().
Status open_kept(Request& r) {
  if (!r.session().settings().wishes.ask_opens) return not_implemented(r);
  const auto in = TRY(r.body().take<fuse_open_in>());
  if ((in.flags & O_ACCMODE) != O_RDONLY) return Errc::read_only;
  fuse_open_out out{};
  out.open_flags = FOPEN_KEEP_CACHE;
  r.reply_struct(out);
  return {};
}

Status read_kept(Request& r) {
  const auto in = TRY(r.body().take<fuse_read_in>());
  const auto wanted = TRY(agreed_bytes(in));
  const Ino ino = enter(r);
  const auto space = r.reply_space(wanted);
  r.serve([&r, ino, offset = in.offset, space] { return r.fs().read(r.operation(), ino, offset, space); },
          [&r, space](std::size_t bytes) { r.reply_bytes(space.first(bytes)); });
  return {};
}

// What a program has written into pages that it has mapped is nothing that others may go on seeing.
Status write_kept(Request& r) {
  const auto in = TRY(r.body().take<fuse_write_in>());
  Session& session = r.session();
  const Ino node = r.node();
  r.reply_errno(EROFS);
  session.flusher().flush(node, in.offset, [] {});
  return {};
}

Status list_kept(Request& r, bool plus) {
  const auto in = TRY(r.body().take<fuse_read_in>());
  if (node_of(r).is_folder()) return list_snapshots(r, in, plus);
  const Serial snapshot = node_of(r).snapshot;
  const Ino ino = enter(r);
  const auto position = in.offset ? ListingPosition::decode(in.offset) : std::nullopt;
  if (position && position->at_end()) return reply_end_of_listing(r, true), Status();
  // It never changes: its end need not be known beforehand, and the kernel may keep every listing of it.
  const ListingPosition from{.cookie = position ? position->cookie : 0, .last = format::kCookieLimit};
  const auto listing = std::make_shared<Listing>(r.reply_space(std::min(in.size, kMaxWrite)), plus, from, std::nullopt);
  listing->of_snapshot(snapshot);
  r.serve(
      [&r, ino, listing] {
        listing->clear();
        return r.fs().readdir(r.operation(), ino, listing->cookie(), listing->plus(),
                              [&](const fs::DirectoryEntry& entry) { return listing->add(entry); });
      },
      [&r, listing] { r.reply_bytes(listing->bytes()); });
  return {};
}

Status readdir_kept(Request& r) { return list_kept(r, false); }
Status readdirplus_kept(Request& r) { return list_kept(r, true); }

// Before the first write(2) to a file the kernel asks whether it has a capability, and removes it. It hears that there is one, also
// where there is none, and as that cannot be removed, write(2) fails with EROFS, instead of getting lost in the cache.
Status getxattr_kept(Request& r) {
  const auto in = TRY(r.body().take<fuse_getxattr_in>());
  const auto name = TRY(r.body().take_string());
  if (node_of(r).is_folder()) return Errc::no_attribute;
  const Ino ino = enter(r);
  const bool asks_for_capability = name == kCapability && in.size == 0;
  r.serve([&r, ino, name, asks_for_capability]() -> Result<std::vector<std::byte>> {
            auto value = r.fs().getxattr(r.operation(), ino, name);
            if (asks_for_capability && value.fails_with(Errc::no_attribute)) return std::vector<std::byte>(1);
            return value;
          },
          [&r, room = in.size](const std::vector<std::byte>& value) { reply_sized(r, value, room); });
  return {};
}

Status listxattr_kept(Request& r) {
  const auto in = TRY(r.body().take<fuse_getxattr_in>());
  if (node_of(r).is_folder()) return reply_sized(r, {}, in.size), Status();
  const Ino ino = enter(r);
  r.serve([&r, ino] { return r.fs().listxattr(r.operation(), ino); },
          [&r, room = in.size](const std::vector<std::string>& names) { reply_names(r, names, room); });
  return {};
}

Status lseek_kept(Request& r) {
  const auto in = TRY(r.body().take<fuse_lseek_in>());
  if (in.whence != SEEK_HOLE && in.whence != SEEK_DATA) return Errc::invalid;
  const Ino ino = enter(r);
  const auto kind = in.whence == SEEK_HOLE ? fs::SeekKind::hole : fs::SeekKind::data;
  r.serve([&r, ino, kind, offset = in.offset] { return r.fs().seek(r.operation(), ino, offset, kind); },
          [&r](std::uint64_t found) { r.reply_struct(fuse_lseek_out{found}); });
  return {};
}

Status forget_kept(Request& r) { return r.end(), Status(); }

struct Row {
  std::uint32_t opcode;
  Handler handler;
};
constexpr Row kRows[] = {
    {FUSE_LOOKUP, lookup_kept},          {FUSE_FORGET, forget_kept},           {FUSE_GETATTR, getattr_kept},
    {kOpStatx, statx_kept},              {FUSE_READLINK, readlink_kept},       {FUSE_OPEN, open_kept},
    {FUSE_READ, read_kept},              {FUSE_WRITE, write_kept},             {FUSE_READDIR, readdir_kept},
    {FUSE_READDIRPLUS, readdirplus_kept}, {FUSE_GETXATTR, getxattr_kept},      {FUSE_LISTXATTR, listxattr_kept},
    {FUSE_LSEEK, lseek_kept},            {FUSE_FSYNC, done},                   {FUSE_FSYNCDIR, done},
    {FUSE_IOCTL, ask_kept},              {FUSE_COPY_FILE_RANGE, refuse_to_copy}, {kOpCopyFileRange64, refuse_to_copy},
};
// They say nothing of what is in a snapshot.
constexpr std::uint32_t kAsEver[] = {FUSE_OPENDIR,   FUSE_RELEASEDIR, FUSE_RELEASE, FUSE_FLUSH, FUSE_ACCESS, FUSE_INTERRUPT, FUSE_STATFS,
                                     FUSE_SYNCFS,    FUSE_GETLK,      FUSE_SETLK,   FUSE_SETLKW, FUSE_BMAP,  FUSE_POLL,      FUSE_CREATE,
                                     FUSE_NOTIFY_REPLY};

}  // namespace

Handler kept_handler(std::uint32_t opcode) {
  const auto own = std::ranges::find(kRows, opcode, &Row::opcode);
  if (own != std::end(kRows)) return own->handler;
  return std::ranges::find(kAsEver, opcode) != std::end(kAsEver) ? opcode_handler(opcode) : refuse;
}

bool hides_snapshots_folder(Request& request) {
  return request.node() == kRootIno && !request.session().settings().snapshots_dir.empty();
}

bool is_snapshots_folder(Request& request, std::string_view name) {
  return hides_snapshots_folder(request) && name == request.session().settings().snapshots_dir;
}

fs::DirectoryEntry snapshots_folder_entry(Request& request, std::uint64_t last_cookie) {
  return {request.session().settings().snapshots_dir, kSnapshotsFolder, S_IFDIR >> 12, 0, nullptr, false, last_cookie};
}

void reply_snapshots_folder(Request& request) {
  fuse_entry_out out = to_entry(folder_attr(request), kSnapshotsFolder);
  out.entry_valid = out.attr_valid = 0;
  request.reply_struct(out);
}

}  // namespace varve::fuse

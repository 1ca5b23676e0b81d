#include <sys/stat.h>

#include <fcntl.h>
#include <linux/capability.h>

#include "fs/engine.h"
#include "fuse/operations/attributes.h"
#include "fuse/operations/kept_node.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/ops_kept.h"
#include "fuse/operations/request.h"
#include "fuse/protocol/privilege.h"
#include "operation/references.h"

namespace varve::fuse {

namespace {

void reply_entry(Request& r, const fs::Attr& attr) { r.reply_struct(to_entry(r.session().block_counts().with_unseen(attr))); }

// A file that the kernel opens along with making it. It keeps what it has cached of it, and needs no handle.
void reply_opened(Request& r, const fs::Attr& attr) {
  wire::EntryAndOpen out{};
  out.entry = to_entry(attr);
  out.open.open_flags = FOPEN_KEEP_CACHE;
  r.reply_struct(out);
}

// For a kernel that leaves it to the filesystem to take setgid away; it knows no TMPFILE. To ask for groups takes a while, and hardly
// any file is made so.
std::optional<std::vector<std::uint32_t>> groups_to_check(Request& r, std::uint32_t mode) {
  const fuse_in_header& caller = r.header();
  const Agreement* const agreement = r.session().agreement();
  if (!agreement || !agreement->leaves_setgid || !fs::runs_with_group(mode) || S_ISDIR(mode)) return std::nullopt;
  if (caller.uid == 0 || has_capability(caller.pid, CAP_FSETID)) return std::nullopt;
  auto groups = further_groups(caller.pid);
  groups.push_back(caller.gid);
  return groups;
}

// Of a request that has changed names in its directory.
void told(Request& r) { r.session().block_counts().named_in(r.node()); }

void make(Request& r, std::string_view name, const fs::NewNode& node) {
  r.set_umask(node.umask);
  r.serve_change(
      Change::name, [&r, name, node] { return r.fs().make(r.operation(), r.node(), name, node); },
      [&r](const fs::Attr& attr) { told(r), reply_entry(r, attr); });
}

Status rename_entry(Request& r, Ino to_parent, unsigned flags) {
  if (is_kept(to_parent)) return Errc::read_only;
  const auto from = TRY(r.body().take_name());
  const auto to = TRY(r.body().take_name());
  if (flags & ~(fs::kRenameNoReplace | fs::kRenameExchange | fs::kRenameWhiteout)) return Errc::invalid;
  r.serve_change(
      Change::name, [=, &r] { return r.fs().rename(r.operation(), r.node(), from, to_parent, to, flags); },
      [&r, to_parent] {
        told(r);
        r.session().block_counts().named_in(to_parent);
        r.reply();
      });
  return {};
}

void forget_references(Request& r, Ino ino, std::uint64_t count) {
  if (is_kept(ino)) return;
  r.fs().forget(ino, count);
  LostWrites& lost = r.session().lost_writes();
  BlockCounts& blocks = r.session().block_counts();
  if ((!lost.any() && !blocks.any_unseen()) || r.fs().operations().references().count(ino) != 0) return;
  lost.forget(ino);
  blocks.forget(ino);
}

}  // namespace

Status lookup(Request& r) {
  const auto name = TRY(r.body().take_name());
  r.serve_result([&r, name] { return r.fs().lookup(r.operation(), r.node(), name); },
                 [&r, name](const Result<fs::Attr>& found) {
                   if (found.ok()) return reply_entry(r, *found);
                   if (found.fails_with(Errc::not_found) && is_snapshots_folder(r, name)) return reply_snapshots_folder(r);
                   if (found.fails_with(Errc::not_found)) return r.reply_struct(no_entry());
                   r.reply_error(found.error());
                 });
  return {};
}

Status forget(Request& r) {
  const auto in = r.body().take<fuse_forget_in>();
  if (in.ok()) forget_references(r, r.node(), in->nlookup);
  r.end();
  return {};
}

Status batch_forget(Request& r) {
  const auto in = r.body().take<fuse_batch_forget_in>();
  for (std::uint32_t i = 0; in.ok() && i < in->count; ++i) {
    const auto one = r.body().take<fuse_forget_one>();
    if (!one.ok()) break;
    forget_references(r, Ino{one->nodeid}, one->nlookup);
  }
  r.end();
  return {};
}

Status mknod(Request& r) {
  const auto in = TRY(r.body().take<fuse_mknod_in>());
  const auto name = TRY(r.body().take_name());
  make(r, name, {.mode = in.mode, .rdev = in.rdev, .umask = in.umask, .symlink = {}, .groups = groups_to_check(r, in.mode)});
  return {};
}

Status mkdir(Request& r) {
  const auto in = TRY(r.body().take<fuse_mkdir_in>());
  const auto name = TRY(r.body().take_name());
  make(r, name, {.mode = (in.mode & ~static_cast<std::uint32_t>(S_IFMT)) | S_IFDIR, .umask = in.umask, .symlink = {}});
  return {};
}

Status symlink(Request& r) {
  const auto name = TRY(r.body().take_name());
  const auto target = TRY(r.body().take_string());
  make(r, name, {.mode = S_IFLNK | 0777, .symlink = target});
  return {};
}

Status tmpfile(Request& r) {
  const auto in = TRY(r.body().take<fuse_create_in>());
  const fs::NewNode node{
      .mode = (in.mode & ~static_cast<std::uint32_t>(S_IFMT)) | S_IFREG, .umask = in.umask, .symlink = {}};
  r.set_umask(in.umask);
  r.serve([&r, node] { return r.fs().make_unnamed(r.operation(), r.node(), node); },
          [&r](const fs::Attr& attr) { reply_opened(r, attr); });
  return {};
}

Status link(Request& r) {
  const auto in = TRY(r.body().take<fuse_link_in>());
  const auto name = TRY(r.body().take_name());
  if (is_kept(Ino{in.oldnodeid})) return r.reply_errno(EXDEV), Status();
  r.serve_change(
      Change::name, [&r, in, name] { return r.fs().link(r.operation(), Ino{in.oldnodeid}, r.node(), name); },
      [&r](const fs::Attr& attr) { told(r), reply_entry(r, attr); });
  return {};
}

Status unlink(Request& r) {
  const auto name = TRY(r.body().take_name());
  r.serve_change(
      Change::name, [&r, name] { return r.fs().unlink(r.operation(), r.node(), name); }, [&r] { told(r), r.reply(); });
  return {};
}

Status rmdir(Request& r) {
  const auto name = TRY(r.body().take_name());
  r.serve_change(
      Change::name, [&r, name] { return r.fs().rmdir(r.operation(), r.node(), name); }, [&r] { told(r), r.reply(); });
  return {};
}

Status rename(Request& r) {
  const auto in = TRY(r.body().take<fuse_rename_in>());
  return rename_entry(r, Ino{in.newdir}, 0);
}

Status rename2(Request& r) {
  const auto in = TRY(r.body().take<fuse_rename2_in>());
  return rename_entry(r, Ino{in.newdir}, in.flags);
}

}  // namespace varve::fuse

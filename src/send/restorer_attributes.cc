// What an inode is, apart from its names and its content.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <span>

#include "base/errc.h"
#include "send/host_file.h"
#include "send/mark.h"
#include "send/restorer.h"

namespace varve::send {

using compare::InodeChange;
using compare::KeptInode;

namespace {

Finish finish_of(const std::string& path, const KeptInode& kept) {
  const format::Attributes& is = kept.attributes;
  return {path, is.mode, is.uid, is.gid, is.flags, is.atime, is.mtime, kept.xattrs};
}

}  // namespace

bool Restorer::changes_itself(const InodeChange& change) {
  if (!change.runs.empty() || change.xattrs || change.target) return true;
  if (!change.before || !change.after) return false;
  const format::Attributes &now = *change.before, &then = *change.after;
  return now.mode != then.mode || now.uid != then.uid || now.gid != then.gid || flags_to_set(now.flags, then.flags) != now.flags ||
         now.size != then.size || now.mtime != then.mtime;
}

// With the mark of what it has received, as it was when its snapshot had been made.
Result<KeptInode> Restorer::kept_directory(Ino ino) {
  KeptInode kept = TRY(compare::ask_inode(ask_, snapshot_, ino));
  for (format::Xattr& one : kept.xattrs) {
    if (one.name != kReceivedAttribute) continue;
    const std::string mark = mark_behind({reinterpret_cast<const char*>(one.value.data()), one.value.size()}, snapshot_);
    const auto bytes = std::as_bytes(std::span(mark));
    one.value.assign(bytes.begin(), bytes.end());
  }
  return kept;
}

// A mark that differs from the snapshot's may be what it is to be.
Result<bool> Restorer::changes_directory(const std::string& path, Ino ino, const InodeChange& change) {
  InodeChange others = change;
  others.xattrs = false;
  if (!change.xattrs || changes_itself(others)) return changes_itself(change);
  const Spot spot = spot_of(root_.get(), path);
  const Descriptor file(open_below(spot.directory.get(), spot.name, O_RDONLY | O_DIRECTORY));
  if (!file) return failed("opening", path);
  std::map<std::string, format::Bytes> wanted;
  for (format::Xattr& one : TRY(kept_directory(ino)).xattrs) wanted.emplace(std::move(one.name), std::move(one.value));
  const auto there = xattrs_of(file.get());
  return there.ok() ? Result<bool>(*there != wanted) : Result<bool>(failed("reading attributes", path));
}

Status Restorer::finish(const std::string& path, const KeptInode& kept) {
  const Spot spot = spot_to_change(path);
  const bool has_flags = S_ISREG(kept.attributes.mode) || S_ISDIR(kept.attributes.mode);
  const Descriptor file(has_flags ? open_content(spot.directory.get(), spot.name, O_RDONLY)
                                  : open_below(spot.directory.get(), spot.name, O_PATH));
  if (!file) return failed("opening", path);
  const std::string wrong = set_attributes(file.get(), finish_of(path, kept), "");
  return wrong.empty() ? Status() : Status(failed(wrong, path));
}

}  // namespace varve::send

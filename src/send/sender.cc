#include "send/sender.h"

#include <sys/stat.h>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "compare/kept_file.h"
#include "compare/kept_inode.h"

namespace varve::send {

using compare::InodeChange;
using compare::Name;

namespace {

std::size_t depth_of(std::string_view path) { return path == "/" ? 0 : static_cast<std::size_t>(std::ranges::count(path, '/')); }

bool is_directory(const InodeChange& change) {
  const auto& attributes = change.after ? change.after : change.before;
  return attributes && S_ISDIR(attributes->mode);
}

bool is_new(const InodeChange& change) { return !change.was_there(); }

// Writing to a file takes its capabilities away, and so does giving it to somebody: the receiver does one or the other.
bool loses_capabilities(const InodeChange& change) {
  if (is_directory(change)) return false;
  if (!change.before || !change.after) return !change.runs.empty();
  const format::Attributes &was = *change.before, &is = *change.after;
  return !change.runs.empty() || was.size != is.size || was.uid != is.uid || was.gid != is.gid;
}

bool has_capabilities(const compare::KeptFile& file) {
  return std::ranges::any_of(file.inode.xattrs, [](const format::Xattr& one) { return one.name == format::kCapability; });
}

Status check_path(const std::string& path) {
  if (!is_in_staging(path)) return {};
  return Error(Errc::busy, fmt::format("{}: a receive was under way when a snapshot was made: it cannot be sent", path));
}

}  // namespace

Result<Sent> Sender::send(const Begin& begin) {
  TRY(out_.begin(begin));
  TRY(look());
  TRY(send_detached());
  TRY(send_made());
  TRY(send_attached());
  TRY(send_contents());
  TRY(send_attributes());
  TRY(out_.end());
  sent_.data_bytes = files_.data_bytes();
  return sent_;
}

Status Sender::look() {
  inodes_ = TRY(compare::Difference::find(ask_, before_, after_)).inodes();
  inodes_.erase(format::kOrphanIno);
  sent_.inodes = inodes_.size();
  for (auto& [ino, change] : inodes_)  // without a name the receiver did not have it
    if (change.before && is_new(change) && change.is_there()) change.runs = TRY(compare::runs_of(ask_, after_, ino));
  former_.know_directories(inodes_, compare::Paths::Side::before);
  present_.know_directories(inodes_, compare::Paths::Side::after);
  return find_paths();
}

Status Sender::find_paths() {
  std::set<Ino> nameless, linked;
  std::set<Name> fresh;
  for (const auto& [ino, change] : inodes_) {
    if (!change.is_there()) continue;
    fresh.insert(change.gained.begin(), change.gained.end());
    if (is_directory(change)) placed_.push_back({TRY(present_.of_directory(ino)), ino, &change});
    else if (!change.gained.empty()) placed_.push_back({TRY(present_.of(change.gained.front())), ino, &change});
    else nameless.insert(ino);
    if (!change.gained.empty() && !waits_in_staging(change)) linked.insert(ino);
  }
  const auto paths = TRY(present_.of_files(nameless));
  for (const Ino ino : nameless) {
    if (const auto path = paths.find(ino); path != paths.end()) placed_.push_back({path->second, ino, &inodes_.at(ino)});
    else TRY(check_is_orphan(ino));
  }
  kept_ = TRY(present_.of_files(linked, fresh));
  for (const Ino ino : linked)
    if (!kept_.contains(ino)) return Error(Errc::corrupt, fmt::format("inode {} has fewer names than it should", ino));
  return {};
}

// A program has it still open. Where its attributes differ they say so, but it may be that only its blocks do.
Status Sender::check_is_orphan(Ino ino) {
  if (TRY(compare::ask_inode(ask_, after_, ino)).attributes.nlink == 0) return {};
  return Error(Errc::corrupt, fmt::format("inode {} has no name", ino));
}

// Between the base and the new state: it is new, or one of its names goes and another comes.
bool Sender::waits_in_staging(const InodeChange& change) const {
  return change.is_there() && (is_new(change) || (!change.lost.empty() && !change.gained.empty()));
}

// Deeper paths first: so all paths are those of the base, and a directory that goes is empty when its turn comes.
Status Sender::send_detached() {
  std::vector<Detach> all;
  for (const auto& [ino, change] : inodes_)
    for (std::size_t i = 0; change.was_there() && i < change.lost.size(); ++i)
      all.push_back({ino, i == 0 && waits_in_staging(change), is_directory(change), TRY(former_.of(change.lost[i]))});
  std::ranges::sort(all, [](const Detach& a, const Detach& b) {
    return std::tuple(depth_of(b.path), std::string_view(a.path)) < std::tuple(depth_of(a.path), std::string_view(b.path));
  });
  for (const Detach& one : all) TRY(check_path(one.path));
  for (Detach& one : all) TRY(out_.add(std::move(one)));
  return {};
}

Status Sender::send_made() {
  for (const Placed& inode : placed_) {
    if (!is_new(*inode.change)) continue;
    const format::Attributes& attributes = *inode.change->after;
    Make make{inode.ino, attributes.mode & (S_IFMT | 0777U), attributes.rdev, {}};
    if (S_ISLNK(attributes.mode)) make.target = TRY(compare::ask_inode(ask_, after_, inode.ino)).target;
    if (inode.ino != kRootIno) TRY(out_.add(std::move(make)));
  }
  return {};
}

// Directories from the top, so that those above are where they belong; then files.
Status Sender::send_attached() {
  std::ranges::sort(placed_, [](const Placed& a, const Placed& b) {
    const auto order = [](const Placed& one) {
      return std::tuple(!is_directory(*one.change), depth_of(one.path), std::string_view(one.path));
    };
    return order(a) < order(b);
  });
  for (const Placed& inode : placed_) TRY(attach(inode));
  return {};
}

Status Sender::attach(const Placed& inode) {
  const auto& names = inode.change->gained;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool staged = waits_in_staging(*inode.change);
    const std::string path = TRY(present_.of(names[i]));
    TRY(check_path(path));
    TRY(out_.add(Attach{inode.ino, staged && i + 1 == names.size(), staged ? "" : kept_.at(inode.ino), path}));
  }
  return {};
}

Status Sender::send_contents() {
  for (const Placed& inode : placed_) {
    const InodeChange& change = *inode.change;
    const bool is_file = change.after ? S_ISREG(change.after->mode) : !change.runs.empty();
    const bool other_size = change.after && (is_new(change) ? change.after->size > 0 : change.before->size != change.after->size);
    if (is_file && (other_size || !change.runs.empty())) TRY(send_content(inode));
  }
  return {};
}

Status Sender::send_content(const Placed& inode) {
  const InodeChange& change = *inode.change;
  const std::uint64_t size = change.after ? change.after->size : TRY(compare::ask_inode(ask_, after_, inode.ino)).attributes.size;
  std::vector<compare::BlockRun> runs = change.runs;
  if (change.before && change.before->size > size) TRY(add_room_behind(ask_, after_, inode.ino, size, runs));
  return files_.send_contents(inode.ino, inode.path, size, runs);
}

// Files that have got the same ones again: nothing that differs says so. Many are asked for at once, as few have any.
Status Sender::find_capable() {
  std::vector<Ino> inodes;
  for (const Placed& inode : placed_)
    if (loses_capabilities(*inode.change)) inodes.push_back(inode.ino);
  return compare::ask_files(ask_, after_, inodes, compare::With::no_data, [this](compare::KeptFile&& file) -> Status {
    if (has_capabilities(file)) capable_.insert(file.ino);
    return {};
  });
}

// What is below a directory before the directory itself, since each of these changes sets its times.
Status Sender::send_attributes() {
  TRY(find_capable());
  for (auto inode = placed_.rbegin(); inode != placed_.rend(); ++inode)
    if (inode->ino != kRootIno) TRY(send_finish(*inode));
  // Receiving has changed the times of the directory itself, whatever else has.
  const auto root = inodes_.find(kRootIno);
  return send_finish({"/", kRootIno, root != inodes_.end() ? &root->second : nullptr});
}

Status Sender::send_finish(const Placed& inode) {
  const InodeChange* const change = inode.change;
  const bool all = !change || is_new(*change) || change->xattrs || capable_.contains(inode.ino);
  if (!all && !change->after && change->gained.empty() && change->runs.empty()) return {};
  const compare::KeptInode kept = all || !change->after ? TRY(compare::ask_inode(ask_, after_, inode.ino)) : compare::KeptInode();
  const format::Attributes& attributes = change && change->after ? *change->after : kept.attributes;
  return files_.send_attributes(inode.path, attributes, all ? std::optional(kept.xattrs) : std::nullopt);
}

}  // namespace varve::send

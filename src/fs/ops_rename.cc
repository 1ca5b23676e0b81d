// Rename, with all its cases.
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "base/invariant.h"

#include "fs/engine.h"
#include "fs/inode_util.h"

namespace varve::fs {

namespace {

struct RenameArgs {
  Ino from_parent, to_parent;
  std::string_view from, to;
  unsigned flags = 0;
};

class Rename {
 public:
  Rename(Attempt& attempt, const RenameArgs& args) : a_(attempt), args_(args) {}

  Status run() {
    TRY(find_inodes());
    std::optional<Lock> still;
    if (gets_another_parent()) {
      // Only these can make a loop: one at a time keeps the way to the root as it is while it is looked at.
      still.emplace(a_.operations().rename_mutex());
      TRY(check_loops());
    }
    const InodeLocks locks(from_dir_, to_dir_, source_, target_);
    TRY(check_again());
    if (target_ && target_ == source_) return {};  // two names of one file: POSIX says to do nothing
    TRY(check_permitted());
    TRY(check_kinds());
    TRY(check_links());
    TRY(a_.admit({.record_bytes = 1600 + 3 * (args_.from.size() + args_.to.size()),
                  .new_inodes = args_.flags & kRenameWhiteout ? 1u : 0u, .places = 16,
                  .frees = !(args_.flags & kRenameWhiteout)}));
    apply();
    return {};
  }

 private:
  // A directory does: the source, or what stands at the target.
  bool gets_another_parent() const {
    return args_.from_parent != args_.to_parent && (is_directory_now(*source_) || (target_ && is_directory_now(*target_)));
  }
  bool exchange() const { return args_.flags & kRenameExchange; }

  // These two lock for a moment.
  static bool is_directory_now(changes::Inode& inode) {  // it stays what it is
    ReadLock lock(inode.mutex);
    return is_directory(inode);
  }
  Result<std::optional<changes::FoundEntry>> find_now(changes::Inode& directory, std::string_view name) {
    ReadLock lock(directory.mutex);
    return find_name(a_, directory, name);
  }

  Status find_inodes() {
    from_dir_ = TRY(a_.directory(args_.from_parent));
    to_dir_ = TRY(a_.directory(args_.to_parent));
    source_entry_ = TRY(find_now(*from_dir_, args_.from));
    if (!source_entry_) return Errc::not_found;
    target_entry_ = TRY(find_now(*to_dir_, args_.to));
    if (target_entry_ && (args_.flags & kRenameNoReplace)) return Errc::exists;
    if (!target_entry_ && exchange()) return Errc::not_found;
    source_ = TRY(inode_of(*source_entry_));
    if (target_entry_) target_ = TRY(inode_of(*target_entry_));
    return {};
  }

  Result<changes::InodePtr> inode_of(const changes::FoundEntry& entry) {
    auto inode = a_.inode(entry.ino);
    if (inode.fails_with(Errc::stale)) return Errc::not_found;
    return inode;
  }

  // Neither end may lie below what moves there.
  Status check_loops() {
    if (is_directory_now(*source_) && TRY(lies_below(args_.to_parent, source_->ino))) return Errc::loop;
    if (exchange() && target_ && is_directory_now(*target_) && TRY(lies_below(args_.from_parent, target_->ino)))
      return Errc::loop;
    // A directory above the source cannot be replaced: it is not empty.
    if (!exchange() && target_ && is_directory_now(*target_) && TRY(lies_below(args_.from_parent, target_->ino)))
      return Errc::not_empty;
    return {};
  }

  Result<bool> lies_below(Ino below, Ino above) {
    // Directories that lie below each other are found as in Brent's algorithm: the mark moves up ever more rarely.
    Ino at = below, mark;
    for (std::uint64_t steps = 0;; ++steps) {
      if (at == above) return true;
      if (at == kRootIno) return false;
      if (at == mark) return Error(Errc::corrupt, fmt::format("directory {} lies below itself; run fsck.varve", at));
      if (std::has_single_bit(steps + 1)) mark = at;
      changes::InodePtr inode = TRY(a_.inode(at));
      ReadLock lock(inode->mutex);
      at = inode->attributes.parent;
      if (!at) return false;
    }
  }

  // --- with all of them locked ---

  Status check_again() REQUIRES_SHARED(from_dir_->mutex, to_dir_->mutex) {
    const auto source = TRY(find_name(a_, *from_dir_, args_.from));
    const auto target = TRY(find_name(a_, *to_dir_, args_.to));
    const bool same = source == source_entry_ && target == target_entry_;
    if (same && !from_dir_->gone() && !to_dir_->gone() && to_dir_->attributes.nlink) return {};
    if (to_dir_->gone() || to_dir_->attributes.nlink == 0 || !source) return Errc::not_found;
    a_.wait().retry = Retry::at_once;  // changed under us: once more from the start
    return Errc::would_block;
  }

  Status check_permitted() const REQUIRES_SHARED(from_dir_->mutex, to_dir_->mutex, source_->mutex, target_->mutex) {
    TRY(may_remove_name(*from_dir_, *source_));
    if (target_) TRY(may_remove_name(*to_dir_, *target_));
    if (args_.flags & (kRenameExchange | kRenameWhiteout)) TRY(may_extend(*from_dir_));
    return may_extend(*to_dir_);
  }

  Status check_kinds() const REQUIRES_SHARED(source_->mutex, target_->mutex) {
    if (exchange() || !target_) return {};
    if (is_directory(*target_) && !is_directory(*source_)) return Errc::is_directory;
    if (!is_directory(*target_) && is_directory(*source_)) return Errc::not_directory;
    if (is_directory(*target_) && target_->attributes.entries) return Errc::not_empty;
    return {};
  }

  // A directory counts where it goes to, unless another one leaves there for it.
  Status check_links() const REQUIRES_SHARED(from_dir_->mutex, to_dir_->mutex, source_->mutex, target_->mutex) {
    if (from_dir_ == to_dir_) return {};
    const bool goes = is_directory(*source_), leaves = target_ && is_directory(*target_);
    if (goes && !leaves && to_dir_->attributes.nlink >= kMaxLinks) return Errc::too_many_links;
    if (exchange() && leaves && !goes && from_dir_->attributes.nlink >= kMaxLinks) return Errc::too_many_links;
    return {};
  }

  void apply() REQUIRES(from_dir_->mutex, to_dir_->mutex, source_->mutex, target_->mutex) {
    INVARIANT(source_entry_ && target_entry_.has_value() == (target_ != nullptr));
    const Timestamp now = a_.now();
    change_old_name(now);
    if (target_entry_) name_anew(*to_dir_, *target_entry_, args_.to, *source_);
    else a_.staging().add_entry(*to_dir_, args_.to, source_->ino, entry_type(source_->attributes.mode));
    settle(*source_, *from_dir_, *to_dir_, now);
    a_.staging().set_attributes(*source_);
    touch_mtime(*from_dir_, now);
    touch_mtime(*to_dir_, now);
    if (target_ && !exchange()) drop_target(now);
    a_.staging().set_attributes(*from_dir_);
    a_.staging().set_attributes(*to_dir_);
  }

  // A name that stays keeps its place in listings. At a new one, a listing that ends where the directory ended when it began would not
  // have it at all, and `rsync --delete` would take it for one that has gone.
  void name_anew(changes::Inode& directory, const changes::FoundEntry& entry, std::string_view name, const changes::Inode& inode)
      REQUIRES(directory.mutex) REQUIRES_SHARED(inode.mutex) {
    a_.staging().replace_entry(directory, entry.cookie, name, inode.ino, entry_type(inode.attributes.mode));
  }

  void change_old_name(Timestamp now) REQUIRES(from_dir_->mutex, to_dir_->mutex, target_->mutex) {
    if (args_.flags & kRenameWhiteout) return leave_whiteout(now);
    if (!exchange()) return a_.staging().remove_entry(*from_dir_, source_entry_->cookie, args_.from);
    MEMORY_INVARIANT(target_ != nullptr);
    name_anew(*from_dir_, *source_entry_, args_.from, *target_);
    settle(*target_, *to_dir_, *from_dir_, now);
    a_.staging().set_attributes(*target_);
  }

  // A directory that moves counts in its new parent.
  static void settle(changes::Inode& inode, changes::Inode& from, changes::Inode& to, Timestamp now)
      REQUIRES(inode.mutex, from.mutex, to.mutex) {
    inode.attributes.ctime = now;
    if (!is_directory(inode) || &from == &to) return;
    --from.attributes.nlink;
    ++to.attributes.nlink;
    inode.attributes.parent = to.ino;
  }

  void drop_target(Timestamp now) REQUIRES(to_dir_->mutex, target_->mutex) {
    target_->attributes.ctime = now;
    if (is_directory(*target_)) {
      --to_dir_->attributes.nlink;
      target_->attributes.nlink = 0;
    } else {
      --target_->attributes.nlink;
    }
    if (target_->attributes.nlink == 0) release_unlinked(a_, *target_);
    else a_.staging().set_attributes(*target_);
  }

  void leave_whiteout(Timestamp now) REQUIRES(from_dir_->mutex) {
    changes::InodePtr whiteout = a_.staging().create_inode();
    WriteLock lock(whiteout->mutex);
    whiteout->attributes.mode = S_IFCHR;
    whiteout->attributes.nlink = 1;
    whiteout->attributes.uid = a_.operation().caller().uid;
    whiteout->attributes.gid = a_.operation().caller().gid;
    whiteout->attributes.generation = static_cast<std::uint32_t>(a_.store().options().random->next());
    whiteout->attributes.atime = whiteout->attributes.mtime = whiteout->attributes.ctime = whiteout->attributes.btime = now;
    a_.staging().set_attributes(*whiteout);
    name_anew(*from_dir_, *source_entry_, args_.from, *whiteout);
  }

  Attempt& a_;
  const RenameArgs& args_;
  changes::InodePtr from_dir_, to_dir_, source_, target_;
  std::optional<changes::FoundEntry> source_entry_, target_entry_;
};

bool is_dots(std::string_view name) { return name == "." || name == ".."; }

}  // namespace

Status Filesystem::rename(Operation& operation, Ino from_parent, std::string_view from, Ino to_parent, std::string_view to,
                          unsigned flags) {
  if (from.size() > format::kMaxName || to.size() > format::kMaxName) return Errc::name_too_long;
  if (is_dots(from) || is_dots(to)) return Errc::busy;
  if (from.empty() || to.empty()) return Errc::invalid;
  if ((flags & kRenameExchange) && (flags & (kRenameNoReplace | kRenameWhiteout))) return Errc::invalid;
  const RenameArgs args{from_parent, to_parent, from, to, flags};
  return engine_->attempt(operation, [&](Attempt& a) { return Rename(a, args).run(); });
}

}  // namespace varve::fs

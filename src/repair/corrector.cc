#include "repair/corrector.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/counted.h"

namespace varve::repair {

using format::Bytes;
using format::ItemKind;
using format::Key;

namespace {

using Items = std::map<Key, Bytes>;

class Corrector : public InodeConsumer {
 public:
  Corrector(const format::Superblock& super, const Survey& survey, const Verdicts& verdicts, ActionLog& actions)
      : super_(super), survey_(survey), verdicts_(verdicts), actions_(actions) {}

  void item(const format::ItemRef& item) override;
  void extent(Ino ino, std::uint64_t first, const format::Extent& extent, Trust) override;
  void inode(CleanInode inode) override;
  Edits finish();

 private:
  void flush_extent();
  void tell_age(const CleanInode& inode);
  void correct_entries(CleanInode& inode);
  void add_entries(CleanInode& inode);
  void correct_attributes(CleanInode& inode);
  Items items_of(const CleanInode& inode) const;
  void compare(const Items& wanted);
  void make_directory(Ino ino);
  void correct_orphans();

  const format::Superblock& super_;
  const Survey& survey_;
  const Verdicts& verdicts_;
  ActionLog& actions_;
  Edits edits_;
  Ino ino_;
  bool may_own_ = false;     // blocks: it is a regular file
  std::uint64_t dropped_ = 0;  // blocks of what may not own any
  Items old_;                // of the inode that is passing, without extents
  Items old_extent_, new_extents_;  // the extent that is passing, and what is left of it
  std::vector<Key> hidden_;  // old items of the list of orphans
  bool entries_changed_ = false;
};

void Corrector::item(const format::ItemRef& item) {
  flush_extent();
  if (item.key.ino == format::kOrphanIno) {
    hidden_.push_back(item.key);
    return;
  }
  if (item.key.ino != ino_) {
    ino_ = item.key.ino;
    const InodeFact* fact = survey_.facts.find(ino_);
    may_own_ = fact && fact->type == DT_REG;
    dropped_ = 0;
  }
  const bool is_extent = item.key.kind == ItemKind::extent && !format::is_tail(item.value);
  (is_extent ? old_extent_ : old_)[item.key] = Bytes(item.value.begin(), item.value.end());
}

void Corrector::extent(Ino ino, std::uint64_t first, const format::Extent& extent, Trust) {
  if (may_own_) format::encode_extent(extent, new_extents_[{ino, ItemKind::extent, first}]);
  else dropped_ += extent.length;
}

void Corrector::flush_extent() {
  if (old_extent_ != new_extents_) {
    for (const auto& [key, value] : old_extent_) edits_[key] = std::nullopt;
    for (const auto& [key, value] : new_extents_) edits_[key] = value;
  }
  old_extent_.clear();
  new_extents_.clear();
}

void Corrector::inode(CleanInode inode) {
  flush_extent();
  if (dropped_ > 0) {
    actions_.add(ActionCode::item_removed, inode.ino, fmt::format("{} in what is no regular file", counted(dropped_, "block")));
    inode.owned = 0;
  }
  if (inode.exists) {
    if (inode.is_old) tell_age(inode);
    correct_entries(inode);
    correct_attributes(inode);
  }
  compare(inode.exists ? items_of(inode) : Items{});
  old_.clear();
}

// Nothing but a directory and a file's data changes while it exists, except for attributes.
void Corrector::tell_age(const CleanInode& inode) {
  const auto file = survey_.old_files.find(inode.ino);
  const bool same = inode.type() != DT_DIR && (file == survey_.old_files.end() || file->second.is_same());
  actions_.add(same ? ActionCode::attributes_older : ActionCode::inode_older, inode.ino);
}

void Corrector::correct_entries(CleanInode& inode) {
  entries_changed_ = false;
  std::vector<CleanEntry> kept;
  for (CleanEntry& entry : inode.entries) {
    const Verdicts::NamePlace place{inode.ino, entry.cookie};
    if (const auto removed = verdicts_.removed.find(place); removed != verdicts_.removed.end()) {
      actions_.add_entry(ActionCode::entry_removed, inode.ino, entry.name, removed->second);
      continue;
    }
    if (const auto type = verdicts_.types.find(place); type != verdicts_.types.end()) {
      actions_.add(ActionCode::entry_type_corrected, inode.ino,
                   fmt::format("\"{}\": {} instead of {}", entry.name, type->second, entry.type));
      entry.type = type->second;
    }
    kept.push_back(std::move(entry));
  }
  inode.entries = std::move(kept);
  add_entries(inode);
}

void Corrector::add_entries(CleanInode& inode) {
  const auto added = verdicts_.added.find(inode.ino);
  if (added == verdicts_.added.end()) return;
  std::set<std::string> names;
  for (const CleanEntry& entry : inode.entries) names.insert(entry.name);
  for (const NewName& wanted : added->second) {
    std::string name = wanted.name;
    for (unsigned n = 1; !names.insert(name).second; ++n) name = fmt::format("{}.{}", wanted.name, n);
    inode.entries.push_back({inode.attributes.next_cookie++, wanted.child, wanted.type, name});
  }
}

void Corrector::correct_attributes(CleanInode& inode) {
  format::Attributes& a = inode.attributes;
  auto set = [&](auto& field, auto value, ActionCode code) {
    if (field == value) return;
    actions_.add(code, inode.ino, fmt::format("{} instead of {}", value, field));
    field = value;
  };
  std::uint64_t entries = inode.type() == DT_DIR ? inode.entries.size() : 0;
  set(a.entries, entries, ActionCode::entry_count_corrected);
  set(a.blocks, inode.owned, ActionCode::block_count_corrected);
  const auto verdict = verdicts_.inodes.find(inode.ino);
  if (verdict != verdicts_.inodes.end()) set(a.nlink, verdict->second.nlink, ActionCode::link_count_corrected);
  if (inode.type() != DT_DIR) return;
  // A directory in the list of orphans keeps what it was in.
  Ino parent = a.parent;
  if (verdict != verdicts_.inodes.end() && !verdict->second.orphan) parent = verdict->second.parent;
  set(a.parent, parent ? parent : kRootIno, ActionCode::parent_corrected);
}

Items Corrector::items_of(const CleanInode& inode) const {
  Items items;
  // Blobs are whole or gone.
  for (const auto& [key, value] : old_)
    if ((key.kind == ItemKind::xattr && !inode.xattrs.empty()) || (key.kind == ItemKind::symlink && !inode.symlink.empty()))
      items[key] = value;
  if (!inode.tail.empty()) format::encode_tail(inode.tail, items[{inode.ino, ItemKind::extent, inode.tail_block}]);
  std::map<std::uint64_t, std::vector<std::uint64_t>> index;
  for (const CleanEntry& entry : inode.entries) {
    format::encode_dirent({entry.ino, entry.type, entry.name}, items[{inode.ino, ItemKind::dirent, entry.cookie}]);
    index[format::name_hash(entry.name, super_.hash_key)].push_back(entry.cookie);
  }
  for (auto& [hash, cookies] : index) format::encode_cookies(cookies, items[{inode.ino, ItemKind::name_hash, hash}]);
  format::encode_attributes(inode.attributes, items[{inode.ino, ItemKind::attributes, 0}]);
  return items;
}

void Corrector::compare(const Items& wanted) {
  bool index = false, names = false;
  auto note = [&](const Key& key) {
    index |= key.kind == ItemKind::name_hash;
    names |= key.kind == ItemKind::dirent;
  };
  for (const auto& [key, value] : old_)
    if (!wanted.contains(key)) {
      edits_[key] = std::nullopt;
      note(key);
    }
  for (const auto& [key, value] : wanted)
    if (const auto old = old_.find(key); old == old_.end() || old->second != value) {
      edits_[key] = value;
      note(key);
    }
  if (index && !names) actions_.add(ActionCode::index_rebuilt, ino_);
}

void Corrector::make_directory(Ino ino) {
  if (survey_.facts.find(ino)) return;
  CleanInode directory;
  directory.ino = ino_ = ino;
  directory.exists = true;
  format::Attributes& a = directory.attributes;
  a.mode = S_IFDIR | (ino == kRootIno ? 0755U : 0700U);
  a.generation = static_cast<std::uint32_t>(ino.v ^ super_.serial.v) | 1;
  a.atime = a.mtime = a.ctime = a.btime = super_.made;
  const InodeVerdict& verdict = verdicts_.inodes.at(ino);
  a.nlink = verdict.nlink;
  a.parent = verdict.parent;
  add_entries(directory);
  a.entries = directory.entries.size();
  old_.clear();
  compare(items_of(directory));
}

void Corrector::correct_orphans() {
  std::set<Key> wanted;
  auto want = [&](Ino ino) { wanted.insert({format::kOrphanIno, ItemKind::orphan, ino.v}); };
  for (const Ino ino : survey_.facts.orphans) {
    const auto verdict = verdicts_.inodes.find(ino);
    if (!verdicts_.judged || (verdict != verdicts_.inodes.end() && verdict->second.orphan)) want(ino);
    else actions_.add(ActionCode::orphan_removed, ino);
  }
  for (const Key& key : hidden_)
    if (!wanted.contains(key)) edits_[key] = std::nullopt;
}

Edits Corrector::finish() {
  flush_extent();
  for (const Ino ino : verdicts_.made) make_directory(ino);
  correct_orphans();
  return std::move(edits_);
}

}  // namespace

Result<Edits> correct(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan, const Survey& survey,
                      const Verdicts& verdicts, ActionLog& actions) {
  Corrector corrector(super, survey, verdicts, actions);
  InodeCleaner cleaner(super, survey.lost, actions, corrector);
  TRY(for_each_item(device, plan, [&](const format::ItemRef& item, Trust trust) -> Status {
    cleaner.add(item, trust);
    return {};
  }));
  cleaner.finish();
  return corrector.finish();
}

}  // namespace varve::repair

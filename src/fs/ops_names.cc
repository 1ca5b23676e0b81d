// Names: lookup, link, unlink, rmdir, readdir. Making and renaming have files of their own.
#include <fmt/format.h>

#include "fs/engine.h"
#include "fs/inode_util.h"
#include "jobs/jobs.h"

namespace varve::fs {

Result<Attr> Filesystem::lookup(Operation& operation, Ino parent, std::string_view name) {
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    // Handles of files are looked up by ".", too.
    changes::InodePtr directory = name == "." ? TRY(a.inode(parent)) : TRY(a.directory(parent));
    Ino ino;
    {
      ReadLock lock(directory->mutex);
      if (name == ".") {
        ino = parent;
      } else if (name == "..") {
        ino = directory->attributes.parent;
      } else {
        const auto found = TRY(find_name(a, *directory, name));
        if (!found) return Errc::not_found;
        ino = found->ino;
      }
    }
    auto inode = a.inode(ino);
    if (inode.fails_with(Errc::stale)) return Errc::not_found;  // unlinked since
    if (!inode.ok()) return inode.error();
    ReadLock lock((*inode)->mutex);
    if ((*inode)->gone()) return Errc::not_found;
    // The kernel asks by "." for what it does not hold, so an inode without a name is about to go.
    if (name == "." && (*inode)->attributes.nlink == 0) return Errc::stale;
    if (!a.shows_snapshot()) a.operations().references().add(ino, 1);
    return attr_of(**inode, a.view());
  });
}

Result<Attr> Filesystem::link(Operation& operation, Ino ino, Ino parent, std::string_view name) {
  TRY(check_new_name(name));
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    changes::InodePtr directory = TRY(a.directory(parent));
    changes::InodePtr inode = TRY(a.inode(ino));
    const InodeLocks locks(directory, inode);
    if (is_directory(*inode)) return Errc::not_permitted;
    if (directory->gone() || directory->attributes.nlink == 0 || inode->gone()) return Errc::not_found;
    if (TRY(find_name(a, *directory, name))) return Errc::exists;
    TRY(may_extend(*directory));
    TRY(may_alter(*inode));
    if (inode->attributes.nlink >= kMaxLinks) return Errc::too_many_links;
    TRY(a.admit({.record_bytes = entry_record_bytes(name), .new_inodes = 1, .places = kFewPlaces}));
    const Timestamp now = a.now();
    if (inode->attributes.nlink == 0) {  // made without a name
      a.staging().set_orphan(*inode, false);
      a.operations().references().take_orphan(ino);
    }
    ++inode->attributes.nlink;
    inode->attributes.ctime = now;
    a.staging().set_attributes(*inode);
    a.staging().add_entry(*directory, name, ino, entry_type(inode->attributes.mode));
    touch_mtime(*directory, now);
    a.staging().set_attributes(*directory);
    a.operations().references().add(ino, 1);
    return attr_of(*inode, a.view());
  });
}

namespace {

enum class Removed : std::uint8_t { file, directory };

Status must_be(Removed what, const changes::Inode& inode) REQUIRES_SHARED(inode.mutex) {
  if (what == Removed::file) return is_directory(inode) ? Status(Errc::is_directory) : Status();
  if (!is_directory(inode)) return Errc::not_directory;
  if (inode.attributes.entries) return Errc::not_empty;
  return {};
}

// What unlink and rmdir share.
Status remove_name(operation::Operations& operations, Operation& operation, Ino parent, std::string_view name, Removed what) {
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  return operations.attempt(operation, [&](Attempt& a) -> Status {
    changes::InodePtr directory = TRY(a.directory(parent));
    std::optional<changes::FoundEntry> found;
    {
      ReadLock lock(directory->mutex);
      found = TRY(find_name(a, *directory, name));
    }
    if (!found) return Errc::not_found;
    auto child = a.inode(found->ino);
    if (child.fails_with(Errc::stale)) return Errc::not_found;
    const changes::InodePtr inode = TRY(std::move(child));
    const InodeLocks locks(directory, inode);
    const auto again = TRY(find_name(a, *directory, name));
    if (!again) return Errc::not_found;
    if (*again != *found) {  // replaced since, with the same cookie or another: once more
      a.wait().retry = Retry::at_once;
      return Errc::would_block;
    }
    TRY(may_remove_name(*directory, *inode));
    TRY(must_be(what, *inode));
    TRY(a.admit({.record_bytes = entry_record_bytes(name), .places = kFewPlaces, .frees = true}));
    const Timestamp now = a.now();
    a.staging().remove_entry(*directory, found->cookie, name);
    touch_mtime(*directory, now);
    if (is_directory(*inode)) {
      --directory->attributes.nlink;
      inode->attributes.nlink = 0;
    } else {
      --inode->attributes.nlink;
    }
    inode->attributes.ctime = now;
    a.staging().set_attributes(*directory);
    if (inode->attributes.nlink == 0) release_unlinked(a, *inode);
    else a.staging().set_attributes(*inode);
    return {};
  });
}

}  // namespace

Status Filesystem::unlink(Operation& operation, Ino parent, std::string_view name) {
  return remove_name(engine_->operations(), operation, parent, name, Removed::file);
}

Status Filesystem::rmdir(Operation& operation, Ino parent, std::string_view name) {
  if (name == ".") return Errc::invalid;
  if (name == "..") return Errc::not_empty;
  return remove_name(engine_->operations(), operation, parent, name, Removed::directory);
}

void Filesystem::forget(Ino ino, std::uint64_t count) {
  operation::References& references = engine_->operations().references();
  if (references.drop(ino, count) == 0 && references.take_orphan(ino)) engine_->jobs().reaper().soon(ino);
}

void Filesystem::count_reference(Ino ino) { engine_->operations().references().add(ino, 1); }

std::vector<Ino> Filesystem::referenced() const { return engine_->operations().references().all(); }

// --- readdir ------------------------------------------------------------------------------------------------------------

namespace {

struct ListedEntry {
  std::uint64_t cookie;
  Ino ino;
  std::uint8_t type;
  std::string name;
  std::optional<Attr> attr;
};
struct ListedEntries {
  std::vector<ListedEntry> entries;
  bool to_the_end = false;
  std::uint64_t last_cookie = 0;
};
constexpr std::size_t kListBatch = 256;
constexpr std::uint8_t kDirectoryType = S_IFDIR >> 12;
constexpr std::uint64_t kDotCookie = 1, kDotDotCookie = 2;

// Up to kListBatch entries; fewer when more would have to be waited for.
Result<ListedEntries> list(Attempt& a, const changes::Inode& directory, std::uint64_t cookie)
    REQUIRES_SHARED(directory.mutex) {
  std::vector<ListedEntry> entries;
  if (cookie < kDotCookie) entries.push_back({kDotCookie, directory.ino, kDirectoryType, ".", {}});
  if (cookie < kDotDotCookie) entries.push_back({kDotDotCookie, directory.attributes.parent, kDirectoryType, "..", {}});
  const std::size_t dots = entries.size();
  Status status = changes::scan_entries(directory, a.view(), a.source(), std::max(cookie, kDotDotCookie),
                                     [&](std::uint64_t at, Ino ino, std::uint8_t type, std::string_view name) -> Result<bool> {
                                       entries.push_back({at, ino, type, std::string(name), {}});
                                       return entries.size() < kListBatch;
                                     });
  if (!status.ok() && !(status.error().is(Errc::would_block) && entries.size() > dots)) return status.error();
  if (!status.ok()) a.wait().nodes.clear();  // what was found is enough for now
  const bool to_the_end = status.ok() && entries.size() < kListBatch;
  return ListedEntries{std::move(entries), to_the_end, directory.attributes.next_cookie - 1};
}

Status add_attributes(Attempt& a, std::vector<ListedEntry>& entries) {
  bool blocked = false;
  for (ListedEntry& entry : entries) {
    if (entry.cookie <= kDotDotCookie) continue;
    auto inode = a.inode(entry.ino);
    if (inode.fails_with(Errc::would_block)) {
      blocked = true;  // go on: all that is missing is fetched together
      continue;
    }
    if (!inode.ok()) continue;
    ReadLock lock((*inode)->mutex);
    if (!(*inode)->gone()) entry.attr = attr_of(**inode, a.view());
  }
  if (blocked) return Errc::would_block;
  return {};
}

}  // namespace

Status Filesystem::readdir(Operation& operation, Ino directory_ino, std::uint64_t cookie, bool plus,
                           const std::function<bool(const DirectoryEntry&)>& take) {
  ListedEntries listed;
  bool touch = false;
  TRY(engine_->attempt(operation, [&](Attempt& a) -> Status {
    changes::InodePtr directory = TRY(a.directory(directory_ino));
    {
      ReadLock lock(directory->mutex);
      listed = TRY(list(a, *directory, cookie));
      touch = atime_is_due(engine_->options(), *directory, a.now());
    }
    if (plus) TRY(add_attributes(a, listed.entries));
    return {};
  }));
  if (touch) touch_atime(engine_->operations(), operation, directory_ino);
  for (const ListedEntry& entry : listed.entries) {
    const bool last = listed.to_the_end && &entry == &listed.entries.back();
    const Attr* attr = entry.attr ? &*entry.attr : nullptr;
    if (!take({entry.name, entry.ino, entry.type, entry.cookie, attr, last, listed.last_cookie})) break;
  }
  return {};
}

}  // namespace varve::fs

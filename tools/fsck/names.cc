#include "fsck/names.h"

#include <optional>
#include <utility>

#include "format/item.h"
#include "tree/item_tree.h"
#include "tree/node_cache.h"

namespace varve::fsck {

namespace {

using format::ItemKind;

constexpr std::size_t kCacheBytes = 16 << 20;
constexpr unsigned kMostDepth = 1000;  // a damaged tree may have circles

struct Place {
  Ino directory;
  std::string name;
};

class Finder {
 public:
  Finder(io::BlockDevice& device, const format::Superblock& super)
      : cache_(super.identity, kCacheBytes), source_(cache_, device), root_{super.inode_file, super.inode_file_level} {}

  // What has been found when something cannot be read is enough.
  Status look_for(const std::set<Ino>& inodes) {
    std::size_t left = inodes.size();
    tree::Cursor cursor(source_, root_);
    TRY(cursor.seek({kRootIno, ItemKind::dirent, 0}));
    while (cursor.valid() && left > 0) {
      if (cursor.key().kind != ItemKind::dirent) {  // the entries of the next directory are all behind this
        const format::Key key = cursor.key();
        TRY(cursor.seek({key.kind < ItemKind::dirent ? key.ino : key.ino + 1, ItemKind::dirent, 0}));
        continue;
      }
      const auto entry = format::decode_dirent(cursor.value());
      if (entry.ok() && inodes.contains(entry->ino))
        left -= places_.emplace(entry->ino, Place{cursor.key().ino, std::string(entry->name)}).second;
      TRY(cursor.next());
    }
    return {};
  }

  std::optional<std::string> path_of(Ino ino) {
    std::string path;
    for (unsigned depth = 0; ino != kRootIno; ++depth) {
      const Place* place = depth < kMostDepth ? place_of(ino) : nullptr;
      if (!place) return std::nullopt;
      path = path.empty() ? place->name : place->name + "/" + path;
      ino = place->directory;
    }
    return path.empty() ? "/" : path;
  }

 private:
  const Place* place_of(Ino ino) {
    if (!places_.contains(ino)) (void)look_above(ino);  // without a name it is not found
    const auto found = places_.find(ino);
    return found == places_.end() ? nullptr : &found->second;
  }

  // A directory knows the one that has it.
  Status look_above(Ino ino) {
    const auto item = TRY(tree::find_item(source_, root_, {ino, ItemKind::attributes, 0}));
    if (!item) return {};
    const Ino parent = TRY(format::decode_attributes(item->value)).parent;
    tree::Cursor cursor(source_, root_);
    for (TRY(cursor.seek({parent, ItemKind::dirent, 0})); cursor.valid(); TRY(cursor.next())) {
      if (cursor.key().ino != parent || cursor.key().kind != ItemKind::dirent) break;
      const auto entry = format::decode_dirent(cursor.value());
      if (!entry.ok() || entry->ino != ino) continue;
      places_.emplace(ino, Place{parent, std::string(entry->name)});
      break;
    }
    return {};
  }

  tree::NodeCache cache_;
  tree::BlockingSource source_;
  const tree::TreeRoot root_;
  std::map<Ino, Place> places_;
};

}  // namespace

std::map<Ino, std::string> find_names(io::BlockDevice& device, const format::Superblock& super, const std::set<Ino>& inodes) {
  std::map<Ino, std::string> names;
  if (inodes.empty()) return names;
  Finder finder(device, super);
  (void)finder.look_for(inodes);
  for (const Ino ino : inodes)
    if (auto path = finder.path_of(ino)) names.emplace(ino, std::move(*path));
  return names;
}

}  // namespace varve::fsck

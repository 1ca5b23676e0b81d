// Reading the list of snapshots from tables of which a part may be damaged.
#include <fmt/format.h>

#include "snapshots/snapshots.h"
#include "tree/item_tree.h"
#include "tree/node_cache.h"

namespace varve::snapshots {

using format::ItemKind;
using format::Key;

namespace {

// Passes over nodes that cannot be read. Keys only ascend, so a tree made by hand has no more ways than it has nodes.
class ListReader {
 public:
  explicit ListReader(tree::NodeSource& source) : source_(source) {}

  Status read(const Result<tree::NodePtr>& node);
  std::vector<SnapshotItem> take() { return std::move(items_); }
  const Status& damage() const { return damage_; }  // the first

 private:
  static bool is_of_list(const Key& key) { return key.ino.v == 0 && key.kind <= ItemKind::snapshot; }
  Status read_items(const tree::Node& leaf);
  Status miss(const Error& why);

  tree::NodeSource& source_;
  Key last_ = format::kMinKey;
  std::vector<SnapshotItem> items_;
  Status damage_;
};

Status ListReader::miss(const Error& why) {
  if (!tree::is_of_one_node(why)) return why;
  if (damage_.ok()) damage_ = why;
  return {};
}

Status ListReader::read_items(const tree::Node& leaf) {
  for (const format::ItemRef& item : leaf.items()) {
    if (item.key.ino.v != 0 || item.key.kind != ItemKind::snapshot) continue;
    auto decoded = format::decode_snapshot(item.key, item.value);
    if (!decoded.ok()) TRY(miss(decoded.error()));
    else if (!items_.empty() && decoded->serial <= items_.back().serial) return miss(Error(Errc::corrupt, "snapshots are out of order"));
    else items_.push_back(*std::move(decoded));
  }
  return {};
}

Status ListReader::read(const Result<tree::NodePtr>& node) {
  if (!node.ok()) return miss(node.error());
  const tree::Node& parent = **node;
  if (parent.header().level == 0) return read_items(parent);
  const auto children = parent.children();
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i > 0 && !is_of_list(children[i].first)) break;
    if (i > 0 && children[i].first <= last_) return miss(Error(Errc::corrupt, "keys are out of order between nodes"));
    last_ = std::max(last_, children[i].first);
    TRY(read(tree::get_child(source_, parent.header().tree, children[i], static_cast<std::uint8_t>(parent.header().level - 1))));
  }
  return {};
}

}  // namespace

Status Snapshots::load(tree::NodeSource& source, const tree::TreeRoot& tables) {
  ListReader reader(source);
  if (tables.ref) TRY(reader.read(tree::get_root(source, tables)));
  if (!reader.damage().ok()) (void)note_damage(reader.damage().error());
  std::vector<SnapshotItem> items = reader.take();
  const bool purging = tables.ref && items.empty() && reader.damage().ok();
  const std::optional<Timestamp> newest = items.empty() ? std::nullopt : std::optional(items.back().made);
  replace(SnapshotList(std::move(items)), purging, newest);
  return {};
}

Status Snapshots::damage() const {
  const Lock lock(mutex_);
  return damage_;
}

Error Snapshots::note_damage(const Error& why) {
  const Lock lock(mutex_);
  if (damage_.ok())
    damage_ = Error(why.code(), fmt::format("the tables of snapshots are damaged ({}): fsck.varve -n says what of them is lost, "
                                            "fsck.varve -y repairs them", why.message()));
  return Error(why.code(), damage_.error().message());
}

}  // namespace varve::snapshots

#include "snapshots/places.h"

namespace varve::snapshots {

using format::ItemKind;

Result<std::map<BlockAddr, BlockAddr>> moved_since(tree::NodeSource& source, const tree::TreeRoot& tables, BlockAddr first,
                                                   std::uint64_t length, Serial seen) {
  std::map<BlockAddr, BlockAddr> moved;
  const BlockAddr end = first + length;
  tree::Cursor cursor(source, tables);
  for (TRY(cursor.seek(format::place_key(first, Serial{seen.v + 1}))); cursor.valid() && cursor.key().ino.v < end.v;) {
    const format::Key key = cursor.key();
    const BlockAddr named{key.ino.v};
    if (key.kind < ItemKind::place || (key.kind == ItemKind::place && key.offset <= seen.v)) {
      TRY(cursor.seek(format::place_key(named, Serial{seen.v + 1})));
      continue;
    }
    if (key.kind == ItemKind::place) moved.emplace(named, TRY(format::decode_place(cursor.value())).place);
    TRY(cursor.seek(format::place_key(named + 1, Serial{seen.v + 1})));  // what moved away from there later is no business of this tree
  }
  return moved;
}

Result<std::vector<OldName>> names_of(tree::NodeSource& source, const tree::TreeRoot& tables, BlockAddr place) {
  std::vector<OldName> names;
  tree::Cursor cursor(source, tables);
  for (TRY(cursor.seek(format::name_key(place, {}))); cursor.valid(); TRY(cursor.next())) {
    const format::Key key = cursor.key();
    if (key.ino.v != place.v || key.kind != ItemKind::name) break;
    names.push_back({TRY(format::decode_name(cursor.value())), Serial{key.offset}});
  }
  return names;
}

Result<tree::NodeWant> PlaceSource::placed(const tree::NodeWant& want) {
  const auto moved = TRY(moved_since(source_, tables_, want.ref.address, 1, seen_));
  tree::NodeWant there = want;
  if (!moved.empty()) there.place = moved.begin()->second;
  return there;
}

Result<tree::NodePtr> PlaceSource::get(const tree::NodeWant& want) {
  if (!tables_.ref) return source_.get(want);
  if (tree::NodePtr node = cache_.find(want)) return node;
  return source_.get(TRY(placed(want)));
}

void PlaceSource::prefetch(std::span<const tree::NodeWant> wants) {
  std::vector<tree::NodeWant> there;
  for (const tree::NodeWant& want : wants)
    if (auto found = placed(want); found.ok()) there.push_back(*found);
  source_.prefetch(there);
}

}  // namespace varve::snapshots

#include "compare/change_scan.h"

#include <algorithm>

#include "format/record.h"
#include "operation/operation.h"
#include "snapshots/places.h"

namespace varve::compare {

using format::ItemKind;
using format::ItemRef;
using format::Key;

namespace {

// The first key behind all extents of a file, or behind those before `bound`.
constexpr Key behind_extents(Ino ino, const Key& bound) { return std::min(bound, Key{ino, ItemKind::dirent, 0}); }

bool is_extent_of(const ItemRef& item, Ino ino) { return item.key.ino == ino && item.key.kind == ItemKind::extent; }

// Takes the extents of a file away from the beginning.
std::span<const ItemRef> take_extents(std::span<const ItemRef>& items, Ino ino) {
  const auto end = std::ranges::find_if_not(items, [ino](const ItemRef& item) { return is_extent_of(item, ino); });
  const auto taken = items.first(static_cast<std::size_t>(end - items.begin()));
  items = items.subspan(taken.size());
  return taken;
}

template <class Value, class Decode>
Result<std::optional<Value>> decoded(const ItemRef* item, Decode decode) {
  if (!item) return std::optional<Value>();
  return std::optional<Value>(TRY(decode(item->value)));
}

}  // namespace

Status ChangeScan::run() {
  tree::PairWalk walk({before_.source, before_.view.inode_file}, {after_.source, after_.view.inode_file}, answer_.next,
                       [this](const format::NodeRef& one, const format::NodeRef& other) { return mean_the_same(one, other); });
  while (!progress_.is_enough()) {
    const std::uint64_t nodes = walk.nodes();
    const auto stretch = TRY(walk.next());
    progress_.nodes += walk.nodes() - nodes;
    if (!stretch) {
      answer_.ended = true;
      return {};
    }
    answer_.next = stretch->from;  // nothing differs before it
    TRY(scan(*stretch));
  }
  return {};
}

// Where an address has been used again, two trees mean different blocks by it.
Result<bool> ChangeScan::mean_the_same(const format::NodeRef& before, const format::NodeRef& after) {
  const auto place = [&](const TreeSide& side, BlockAddr address) -> Result<BlockAddr> {
    const auto moved = TRY(snapshots::moved_since(side.source, side.view.snapshot_tree(), address, 1, side.view.kept));
    return moved.empty() ? address : moved.begin()->second;
  };
  const BlockAddr was = TRY(place(before_, before.address)), is = TRY(place(after_, after.address));
  return was == is;
}

// False: the answer is full.
bool ChangeScan::tell(const Record& record) {
  append(record, answer_.bytes);
  return !progress_.is_enough();
}

Status ChangeScan::scan(const tree::PairWalk::Stretch& stretch) {
  Items before = stretch.items_before(), after = stretch.items_after();
  const Key from = stretch.from;
  // An extent may reach in here from the leaf before it, of one tree only.
  if (from.kind == ItemKind::extent && from.offset > 0) {
    take_extents(before, from.ino);
    take_extents(after, from.ino);
    TRY(sweep_extents(from.ino, from.offset, stretch.bound));
  }
  while (!progress_.is_enough()) {
    if (before.empty() && after.empty()) {
      answer_.next = stretch.bound;
      return {};
    }
    const bool takes_before = after.empty() || (!before.empty() && before.front().key <= after.front().key);
    const bool takes_after = before.empty() || (!after.empty() && after.front().key <= before.front().key);
    const Key key = takes_before ? before.front().key : after.front().key;
    if (key.kind == ItemKind::extent) {
      const Items were = take_extents(before, key.ino), are = take_extents(after, key.ino);
      if (TRY(are_same(were, are))) answer_.next = behind_extents(key.ino, stretch.bound);
      else TRY(sweep_extents(key.ino, key.offset, stretch.bound));
      continue;
    }
    TRY(compare(takes_before ? &before.front() : nullptr, takes_after ? &after.front() : nullptr));
    if (takes_before) before = before.subspan(1);
    if (takes_after) after = after.subspan(1);
    answer_.next = {key.ino, key.kind, key.offset + 1};
  }
  return {};
}

Status ChangeScan::sweep_extents(Ino ino, std::uint64_t from, const Key& bound) {
  constexpr std::uint64_t kEnd = 1ULL << 62;  // of any file
  const Key behind = behind_extents(ino, bound);
  const std::uint64_t to = behind.kind == ItemKind::extent ? behind.offset : kEnd;
  const std::uint64_t reached = TRY(sweep(before_, after_, ino, from, to, [&](const Record& record) {
    const bool goes_on = tell(record);
    answer_.next = {ino, ItemKind::extent, record.first + record.length};
    return goes_on;
  }));
  answer_.next = reached < to ? Key{ino, ItemKind::extent, reached} : behind;
  return {};
}

Result<bool> ChangeScan::are_same(Items before, Items after) {
  const auto equal = [](const ItemRef& one, const ItemRef& other) {
    return one.key == other.key && std::ranges::equal(one.value, other.value);
  };
  if (!std::ranges::equal(before, after, equal)) return false;
  for (const ItemRef& item : before) {
    if (format::is_tail(item.value)) continue;
    const format::Extent extent = TRY(format::decode_extent(item.value));
    const auto was = TRY(places_of(before_, extent)), is = TRY(places_of(after_, extent));
    if (was != is) return false;
  }
  return true;
}

Status ChangeScan::compare(const ItemRef* before, const ItemRef* after) {
  if (before && after && std::ranges::equal(before->value, after->value)) return {};
  const Key key = before ? before->key : after->key;
  Record record{.ino = key.ino};
  switch (key.kind) {
    case ItemKind::attributes:
      record.kind = Record::Kind::attributes;
      record.attributes_before = TRY(decoded<format::Attributes>(before, format::decode_attributes));
      record.attributes_after = TRY(decoded<format::Attributes>(after, format::decode_attributes));
      break;
    case ItemKind::dirent:
      record.kind = Record::Kind::entry;
      record.cookie = key.offset;
      record.entry_before = TRY(decoded<EntryValue>(before, decode_entry));
      record.entry_after = TRY(decoded<EntryValue>(after, decode_entry));
      break;
    case ItemKind::xattr: record.kind = Record::Kind::xattrs; break;
    case ItemKind::symlink: record.kind = Record::Kind::target; break;
    default: return {};  // follows from the others
  }
  tell(record);
  return {};
}

}  // namespace varve::compare

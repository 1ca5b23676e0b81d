#include "compare/extent_sweep.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"
#include "snapshots/places.h"

namespace varve::compare {

using format::ItemKind;
using format::Key;

Result<std::vector<BlockAddr>> places_of(const TreeSide& side, const format::Extent& extent) {
  std::vector<BlockAddr> places;
  if (extent.unwritten) return places;
  for (std::uint64_t i = 0; i < extent.length; ++i) places.push_back(extent.address + i);
  const auto moved = TRY(snapshots::moved_since(side.source, side.view.snapshot_tree(), extent.address, extent.length, side.view.kept));
  for (const auto& [named, place] : moved) {
    MEMORY_INVARIANT(named - extent.address < places.size());
    places[named - extent.address] = place;
  }
  return places;
}

bool ExtentReader::is_ours() const {
  return cursor_.valid() && cursor_.key().ino == ino_ && cursor_.key().kind == ItemKind::extent;
}

// The first extent that ends behind `at`.
Status ExtentReader::find(std::uint64_t at) {
  if (!began_) {
    TRY(cursor_.seek_floor({ino_, ItemKind::extent, at}));
    while (cursor_.valid() && cursor_.key() < Key{ino_, ItemKind::extent, 0}) TRY(cursor_.next());
    began_ = true;
  }
  for (current_.reset(); is_ours(); TRY(cursor_.next())) {
    const std::uint64_t first = cursor_.key().offset;
    if (format::is_tail(cursor_.value())) {
      if (first < at) continue;
      const auto bytes = TRY(format::decode_tail(cursor_.value()));
      current_ = Current{first, 1, false, {}, {bytes.begin(), bytes.end()}};
      return {};
    }
    const std::uint64_t length = TRY(format::extent_length(cursor_.value()));
    if (first + length <= at) continue;
    const format::Extent extent = TRY(format::decode_extent(cursor_.value()));
    current_ = Current{first, length, extent.unwritten, TRY(places_of(side_, extent)), {}};
    return {};
  }
  return {};
}

Result<ExtentReader::Piece> ExtentReader::piece(std::uint64_t at, std::uint64_t end) {
  if (!began_ || (current_ && current_->first + current_->length <= at)) TRY(find(at));
  if (!current_ || current_->first >= end) return Piece{BlockState::hole, end - at};
  if (current_->first > at) return Piece{BlockState::hole, current_->first - at};
  const std::uint64_t length = std::min(current_->first + current_->length, end) - at;
  if (current_->unwritten) return Piece{BlockState::unwritten, length};
  if (!current_->tail.empty()) return Piece{BlockState::data, length, nullptr, &current_->tail};
  MEMORY_INVARIANT(at - current_->first + length <= current_->places.size());
  return Piece{BlockState::data, length, current_->places.data() + (at - current_->first)};
}

namespace {

// How many of `most` blocks are the same, or are not, as the first one is.
std::uint64_t alike(const ExtentReader::Piece& before, const ExtentReader::Piece& after, std::uint64_t most, bool& same) {
  same = before.state == after.state;
  if (!same || before.state != BlockState::data) return most;
  if (before.tail || after.tail) {  // of one block, and there is a place on one side at most
    same = before.tail && after.tail && *before.tail == *after.tail;
    return most;
  }
  same = before.places[0] == after.places[0];
  std::uint64_t n = 1;
  while (n < most && (before.places[n] == after.places[n]) == same) ++n;
  return n;
}

}  // namespace

Result<std::uint64_t> sweep(const TreeSide& before, const TreeSide& after, Ino ino, std::uint64_t from, std::uint64_t to,
                            const std::function<bool(const Record&)>& take) {
  ExtentReader former(before, ino), present(after, ino);
  std::optional<Record> found;  // may grow
  const auto give = [&] { return !found || take(*std::exchange(found, std::nullopt)); };
  for (std::uint64_t at = from; at < to;) {
    const auto was = TRY(former.piece(at, to)), is = TRY(present.piece(at, to));
    bool same = false;
    const std::uint64_t length = alike(was, is, std::min(was.length, is.length), same);
    if (!INVARIANT(length > 0 && length <= to - at)) return Error(Errc::corrupt, fmt::format("inode {}: a comparison does not go on", ino));
    const bool goes_on = found && !same && found->was == was.state && found->is == is.state;
    if (goes_on) found->length += length;
    else if (!give()) return at;
    else if (!same)
      found = Record{.kind = Record::Kind::blocks, .ino = ino, .first = at, .length = length, .was = was.state, .is = is.state};
    at += length;
  }
  give();
  return to;
}

}  // namespace varve::compare

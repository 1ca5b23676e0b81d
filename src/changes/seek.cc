#include "changes/seek.h"

#include <algorithm>
#include <limits>

namespace varve::changes {

using format::ItemKind;
using format::Key;

namespace {
constexpr std::uint64_t kWindow = 256;   // blocks looked at together
constexpr unsigned kStepsAtOnce = 256;     // windows and leaves in one attempt: about a millisecond
constexpr unsigned kLeavesAhead = 16;
constexpr std::uint64_t kNowhere = std::numeric_limits<std::uint64_t>::max();

// What has data at a place matters here, and not where it stands: a tail counts as an extent of one block.
Result<format::Extent> extent_or_tail(std::span<const std::byte> value) {
  if (!format::is_tail(value)) return format::decode_extent(value);
  TRY(format::decode_tail(value));
  format::Extent extent;
  extent.length = 1;
  return extent;
}

}  // namespace

BlockSeek::BlockSeek(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source)
    : ino_(inode.ino), segments_(view.segments), layers_(layers_of(inode, view)), cursor_(source, view.inode_file), cursor_for_(kNowhere) {}

Status BlockSeek::step() {
  if (steps_ == kStepsAtOnce) return Errc::would_block;
  ++steps_;
  return {};
}

Status BlockSeek::go_to(std::uint64_t block) {
  if (cursor_for_ == block) return {};
  cursor_for_ = kNowhere;
  TRY(cursor_.seek_floor(Key{ino_, ItemKind::extent, block}));
  cursor_for_ = block;
  return {};
}

// Leaf after leaf: fetched one by one, each would be waited for.
void BlockSeek::look_ahead() {
  if (!cursor_.valid() || cursor_.leaf() == leaf_) return;
  leaf_ = cursor_.leaf();
  cursor_.prefetch_leaves(kLeavesAhead);
}

// A long cleared range is skipped in one step, up to the next block that was written since.
std::uint64_t BlockSeek::after_cleared(std::uint64_t at) const {
  std::uint64_t written = kNowhere;
  for (unsigned i = 0; i < layers_.count; ++i) {
    const FileDelta* file = layers_.deltas[i]->file.get();
    if (!file) continue;
    if (auto next = file->blocks.lower_bound(at); next.valid()) written = std::min(written, next->block);
    if (auto range = file->cleared.find(at)) at = std::max(at, std::min(range->to, written));
  }
  return at;
}

std::uint64_t BlockSeek::next_in_deltas(std::uint64_t at, std::uint64_t end) const {
  for (unsigned i = 0; i < layers_.count; ++i) {
    if (!layers_.deltas[i]->file) continue;
    if (auto next = layers_.deltas[i]->file->blocks.lower_bound(at); next.valid()) end = std::min(end, next->block);
  }
  return end;
}

// The next block that has data in one of the layers; another may have cleared it.
Status BlockSeek::next_candidate(std::uint64_t& at, std::uint64_t end) {
  end = next_in_deltas(at, end);
  if (layers_.tree && at < end) TRY(go_to(at));
  for (; layers_.tree && at < end && cursor_.valid(); TRY(cursor_.next())) {
    if (cursor_.leaf() != leaf_) TRY(step());
    look_ahead();
    const Key& key = cursor_.key();
    if (key < Key{ino_, ItemKind::extent, 0}) continue;
    if (key.ino != ino_ || key.kind != ItemKind::extent || key.offset >= end) break;
    const format::Extent extent = TRY(extent_or_tail(cursor_.value()));
    const std::uint64_t stop = key.offset + extent.length;
    if (stop <= at) continue;
    at = extent.unwritten ? std::min(stop, end) : std::max(at, key.offset);
    cursor_for_ = at;
    if (!extent.unwritten || at == end) return {};
  }
  at = end;
  return {};
}

Status BlockSeek::find_in_window(std::uint64_t& at, std::uint64_t end, bool data, bool& found) {
  TRY(step());
  std::vector<MappedBlock> window(std::min(kWindow, end - at));
  resolve_in_deltas(layers_, at, window);
  if (std::ranges::any_of(window, [](const MappedBlock& b) { return b.kind == MappedBlock::Kind::unknown; })) {
    TRY(go_to(at));
    look_ahead();
    TRY(resolve_at(cursor_, segments_, ino_, at, window));
    cursor_for_ = at + window.size();
  }
  const auto hit = std::ranges::find(window, data, &MappedBlock::has_data);
  found = hit != window.end();
  at += static_cast<std::uint64_t>(hit - window.begin());
  return {};
}

Status BlockSeek::data(std::uint64_t& at, std::uint64_t end) {
  for (bool found = false; at < end && !found;) {
    at = std::min(end, after_cleared(at));
    TRY(next_candidate(at, end));
    if (at < end) TRY(find_in_window(at, end, true, found));
  }
  return {};
}

Status BlockSeek::hole(std::uint64_t& at, std::uint64_t end) {
  for (bool found = false; at < end && !found;) TRY(find_in_window(at, end, false, found));
  return {};
}

}  // namespace varve::changes

#include "tree/edit_list.h"

namespace varve::tree {

namespace {
constexpr std::size_t kNodeBytes = 112;  // of the map, about
}

void EditList::put(const format::Key& key, format::Bytes value) {
  memory_ += value.size() + kNodeBytes;
  edits_.insert_or_assign(key, std::move(value));
}

void EditList::erase(const format::Key& key) {
  memory_ += kNodeBytes;
  edits_.insert_or_assign(key, std::nullopt);
}

void EditList::clear() {
  edits_.clear();
  at_ = edits_.begin();
  memory_ = 0;
}

std::optional<format::Key> EditList::next_key() {
  if (at_ == edits_.end()) return std::nullopt;
  return at_->first;
}

std::optional<format::Key> EditList::peek_key(const format::Key& from) {
  const auto next = edits_.lower_bound(from);
  if (next == edits_.end()) return std::nullopt;
  return next->first;
}

Status EditList::edit(std::span<const format::ItemRef> old_items, const format::Key& bound, ItemSink& out) {
  auto old = old_items.begin();
  for (; at_ != edits_.end() && at_->first < bound; ++at_) {
    for (; old != old_items.end() && old->key < at_->first; ++old) TRY(out.put(old->key, old->value));
    if (old != old_items.end() && old->key == at_->first) ++old;
    if (at_->second) TRY(out.put(at_->first, *at_->second));
  }
  for (; old != old_items.end(); ++old) TRY(out.put(old->key, old->value));
  return {};
}

}  // namespace varve::tree

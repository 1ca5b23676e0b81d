#include "repair/edits.h"

namespace varve::repair {

namespace {

// Puts the edits in front of `key`, and tells whether the item with this key stays as it is.
Result<bool> put_edits_to(const format::Key& key, const Edits& edits, Edits::const_iterator& next, tree::ItemSink& out) {
  for (; next != edits.end() && next->first < key; ++next)
    if (next->second) TRY(out.put(next->first, *next->second));
  if (next == edits.end() || next->first != key) return true;
  if (next->second) TRY(out.put(next->first, *next->second));
  ++next;
  return false;
}

}  // namespace

std::optional<format::Key> EditList::next_key() {
  return next_ == edits_.end() ? std::nullopt : std::optional(next_->first);
}

Status EditList::edit(std::span<const format::ItemRef> old_items, const format::Key& bound, tree::ItemSink& out) {
  for (const format::ItemRef& item : old_items)
    if (TRY(put_edits_to(item.key, edits_, next_, out))) TRY(out.put(item.key, item.value));
  for (; next_ != edits_.end() && next_->first < bound; ++next_)
    if (next_->second) TRY(out.put(next_->first, *next_->second));
  return {};
}

std::optional<format::Key> PlanEditor::next_key() { return done_ ? std::nullopt : std::optional(format::kMinKey); }

Status PlanEditor::edit(std::span<const format::ItemRef>, const format::Key&, tree::ItemSink& out) {
  done_ = true;
  auto next = edits_.begin();
  TRY(for_each_item(device_, plan_, [&](const format::ItemRef& item, Trust) -> Status {
    if (TRY(put_edits_to(item.key, edits_, next, out))) return out.put(item.key, item.value);
    return {};
  }));
  for (; next != edits_.end(); ++next)
    if (next->second) TRY(out.put(next->first, *next->second));
  return {};
}

}  // namespace varve::repair

#include "check/directory_index.h"

#include <algorithm>

#include "format/image_mark.h"
#include "format/node.h"

namespace varve::check {

void DirectoryIndex::begin(Ino directory) {
  directory_ = directory;
  entries_.clear();
  index_.clear();
}

void DirectoryIndex::add_entry(Context& context, const format::ItemRef& item, Namespace& names) {
  const auto entry = format::decode_dirent(item.value);
  if (!entry.ok()) {
    context.add(Code::value_damaged, {{}, directory_}, fmt::format("entry {}: {}", item.key.offset, entry.error().message()));
    context.incomplete = true;
    return;
  }
  auto key = context.super().hash_key;
  const std::uint64_t hash = format::name_hash(entry->name, key);
  for (std::uint64_t& word : key) word = ~word;
  entries_.push_back({hash, item.key.offset, format::name_hash(entry->name, key)});
  if (!names.is_full(context)) names.edges.push_back(NameEdge::make(directory_, entry->ino, entry->type));
  else context.incomplete = true;
  ++context.report.statistics.entries;
}

void DirectoryIndex::add_hash(Context& context, const format::ItemRef& item) {
  const auto cookies = format::decode_cookies(item.value);
  if (!cookies.ok()) {
    context.add(Code::value_damaged, {{}, directory_}, fmt::format("hash {:016x}: {}", item.key.offset, cookies.error().message()));
    return;
  }
  for (const std::uint64_t cookie : *cookies) index_.push_back({item.key.offset, cookie, 0});
}

void DirectoryIndex::finish(Context& context, const format::Attributes& attributes) {
  if (entries_.size() != attributes.entries)
    context.add(Code::entry_count_wrong, {{}, directory_}, fmt::format("{} instead of {}", attributes.entries, entries_.size()));
  for (const Entry& entry : entries_)
    if (entry.cookie < 3 || entry.cookie >= attributes.next_cookie)
      context.add(Code::cookie_wrong, {{}, directory_}, fmt::format("{}, the next is {}", entry.cookie, attributes.next_cookie));
  std::ranges::sort(entries_);
  for (std::size_t i = 1; i < entries_.size(); ++i)
    if (entries_[i].hash == entries_[i - 1].hash && entries_[i].second_hash == entries_[i - 1].second_hash)
      context.add(Code::name_twice, {{}, directory_}, fmt::format("cookies {} and {}", entries_[i - 1].cookie, entries_[i].cookie));
  if (format::has_other_names(context.super())) ignore_hashes();
  compare(context);
}

// The index has those of the names that were there.
void DirectoryIndex::ignore_hashes() {
  for (std::vector<Entry>* const all : {&entries_, &index_}) {
    for (Entry& entry : *all) entry.hash = 0;
    std::ranges::sort(*all);
  }
}

void DirectoryIndex::compare(Context& context) const {
  const auto position = [](const Entry& e) { return std::pair(e.hash, e.cookie); };
  auto entry = entries_.begin();
  auto index = index_.begin();  // in key order: sorted by hash, then cookie
  while (entry != entries_.end() || index != index_.end()) {
    if (index == index_.end() || (entry != entries_.end() && position(*entry) < position(*index))) {
      context.add(Code::entry_not_indexed, {{}, directory_}, fmt::format("cookie {} hash {:016x}", entry->cookie, entry->hash));
      ++entry;
    } else if (entry == entries_.end() || position(*index) < position(*entry)) {
      context.add(Code::index_without_entry, {{}, directory_}, fmt::format("cookie {} hash {:016x}", index->cookie, index->hash));
      ++index;
    } else {
      ++entry;
      ++index;
    }
  }
}

}  // namespace varve::check

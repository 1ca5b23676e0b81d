#include "image/names.h"

#include <algorithm>

#include "format/item.h"
#include "format/snapshot.h"

namespace varve::image {

namespace {

bool has_a_form(const std::string& name) { return name == format::kCapability || name.starts_with("system."); }

std::span<std::byte> end_of(std::span<std::byte> value, std::size_t bytes) { return value.last(std::min(bytes, value.size())); }

}  // namespace

bool AttributeValues::take_length(std::byte byte) {
  if (shift_ < 64) number_ |= std::uint64_t{std::to_integer<std::uint8_t>(byte) & 0x7FU} << shift_;
  shift_ += 7;
  if ((byte & std::byte{0x80}) != std::byte{}) return false;
  shift_ = 0;
  return true;
}

void AttributeValues::go_on(std::span<std::byte> piece) {
  for (std::byte& byte : piece) {
    switch (part_) {
      case Part::name_length:
        if (take_length(byte)) part_ = number_ ? Part::name : Part::value_length;
        break;
      case Part::name:
        name_.push_back(static_cast<char>(byte));
        if (--number_ == 0) part_ = Part::value_length;
        break;
      case Part::value_length:
        if (!take_length(byte)) break;
        part_ = number_ ? Part::value : Part::name_length;
        if (!number_) name_.clear();
        break;
      case Part::value:
        if (!has_a_form(name_)) byte = {};
        if (--number_ > 0) break;
        part_ = Part::name_length;
        name_.clear();
        break;
    }
  }
}

void Names::change(const format::Key& key, std::span<std::byte> value) {
  using format::ItemKind;
  switch (key.kind) {
    case ItemKind::dirent:
      if (const auto entry = format::decode_dirent(value); entry.ok()) cipher_.change(end_of(value, entry->name.size()));
      break;
    case ItemKind::symlink: cipher_.change_path(value); break;
    case ItemKind::xattr:
      if (key.offset == 0) attributes_.begin();
      attributes_.go_on(value);
      break;
    case ItemKind::snapshot: {
      const auto item = format::decode_snapshot(key, value);
      if (!item.ok() || item->automatic || format::is_passing_name(item->name)) break;
      const std::string other = cipher_.ascii_only(item->name);
      std::ranges::copy(std::as_bytes(std::span(other)), end_of(value, other.size()).begin());
      break;
    }
    default: break;
  }
}

void Names::leave(BlockAddr place) {
  if (!attributes_.is_at_an_end()) unfinished_[place.v] = attributes_;
}

void Names::pass_by(BlockAddr place) {
  const auto at = unfinished_.find(place.v);
  if (at == unfinished_.end()) attributes_.begin();
  else attributes_ = at->second;
}

}  // namespace varve::image

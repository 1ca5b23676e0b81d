#include "fuzz/structure/draft.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "format/superblock_layout.h"

namespace varve::fuzz {

namespace {

constexpr std::uint16_t kFormer = 0xF000;  // blocks from here on are of former checkpoints
constexpr std::uint8_t kOnlySuperblock = 1, kAnyElement = 2, kMatches = 4;  // bits of Mutation::other
constexpr std::size_t kNodeAddressAt = 24;

constexpr const char* kParts[] = {"superblock", "leaf", "interior node", "slots", "owners", "segments", "image", "chunk"};

bool is_of_map(Part part) { return part == Part::slots || part == Part::reverse || part == Part::free; }

void alter_text(const Mutation& m, const Field& field, Bytes& bytes) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(field.at);
  const auto place = begin + static_cast<std::ptrdiff_t>(field.size ? m.value % field.size : 0);
  const auto byte = static_cast<std::byte>(m.value >> 8);
  switch (m.how % 6) {
    case 0:
      if (field.size) *place = byte;
      return;
    case 1: bytes.insert(place, byte); return;
    case 2:
      if (field.size) bytes.erase(place);
      return;
    case 3: bytes.erase(place, begin + static_cast<std::ptrdiff_t>(field.size)); return;
    case 4: bytes.insert(place, m.value % 300, byte); return;
    default:
      if (field.size) *place = static_cast<std::byte>("/\0.\xFF\n, "[m.value % 7]);
  }
}

}  // namespace

unsigned Draft::pick(std::uint16_t number) const {
  if (only_tables_) return base_.tables[number % base_.tables.size()];
  const std::size_t former = base_.blocks.size() - base_.current;
  if (number >= kFormer && former) return static_cast<unsigned>(base_.current + number % former);
  return static_cast<unsigned>(number % base_.current);
}

unsigned Draft::pick_alike(Part part, unsigned number) const {
  std::vector<unsigned> alike;
  for (unsigned i = 0; i < base_.blocks.size(); ++i)
    if (base_.blocks[i].part == part) alike.push_back(i);
  return alike[number % alike.size()];
}

View Draft::bytes(unsigned block) const {
  const auto changed = changed_.find(block);
  return changed == changed_.end() ? base_.blocks[block].bytes : changed->second;
}

Bytes& Draft::own(unsigned block) { return changed_.try_emplace(block, base_.blocks[block].bytes).first->second; }

void Draft::apply(const Mutation& m) {
  const unsigned block = pick(m.block);
  switch (m.act) {
    case Act::alter_header: return alter_header(m, block);
    case Act::raw_bytes: return raw_bytes(m, block);
    case Act::copy_block: return copy_block(m, block);
    case Act::one_copy: copies_ = m.other; return;
    case Act::lose: std::ranges::fill(own(block), std::byte{0}); return;
    case Act::spoil: return spoil(m);
    case Act::keep_reference: kept_.insert(block); return;
    default: return change_elements(m, block);
  }
}

void Draft::change_elements(const Mutation& m, unsigned block) {
  const Part part = base_.blocks[block].part;
  if (part == Part::superblock || part == Part::image) return alter_header(m, block);
  auto elements = take_apart(part, bytes(block), base_.super.segment_blocks);
  if (elements && !elements->empty() && change(m, block, *elements)) put(block, *elements);
}

bool Draft::put(unsigned block, const Elements& elements) {
  const Part part = base_.blocks[block].part;
  Bytes changed(bytes(block).begin(), bytes(block).end());
  if (!put_together(part, elements, changed)) return false;
  seal(part, changed);
  own(block) = std::move(changed);
  return true;
}

bool Draft::edit(unsigned block, const std::function<void(std::vector<Element>&)>& change) {
  auto elements = take_apart(base_.blocks[block].part, bytes(block), base_.super.segment_blocks);
  if (!elements) return false;
  change(*elements);
  return put(block, *elements);
}

// Most records and slots of a map say nothing.
std::size_t Draft::element_of(const Mutation& m, Part part, const Elements& elements) {
  std::vector<std::size_t> full;
  for (std::size_t i = 0; is_of_map(part) && !(m.other & kAnyElement) && i < elements.size(); ++i)
    if (!elements[i].empty()) full.push_back(i);
  return full.empty() ? m.element % elements.size() : full[m.element % full.size()];
}

std::string Draft::place_of(const Mutation& m) const {
  const unsigned block = pick(m.block);
  const Part part = base_.blocks[block].part;
  std::string text = fmt::format("{} at block {}", kParts[static_cast<unsigned>(part)], base_.blocks[block].address);
  if (block >= base_.current) text += ", of a former checkpoint";
  if (m.act == Act::copy || m.act == Act::copy_block)
    text += fmt::format(", from block {}", base_.blocks[pick_alike(part, m.other)].address);
  const auto elements = take_apart(part, bytes(block), base_.super.segment_blocks);
  if (!elements || elements->empty()) return text;
  const std::size_t at = element_of(m, part, *elements);
  const format::Key& key = (*elements)[at].key;
  text += fmt::format(", element {} of {}", at, elements->size());
  if (part == Part::leaf || part == Part::interior)
    text += fmt::format(", key {} {} {}", key.ino, static_cast<unsigned>(key.kind), key.offset);
  const std::size_t fields = fields_of(part, (*elements)[at]).size();
  return fields && m.act == Act::alter_field ? text + fmt::format(", field {} of {}", m.field % fields, fields) : text;
}

bool Draft::change(const Mutation& m, unsigned block, Elements& elements) {
  const Part part = base_.blocks[block].part;
  const bool is_map = is_of_map(part);
  const std::size_t at = element_of(m, part, elements);
  Element& element = elements[at];
  const std::size_t other = m.value % elements.size();
  switch (m.act) {
    case Act::alter_key: alter_key(m, element.key); break;
    case Act::remove:
      if (is_map) std::ranges::fill(element.value, std::byte{0});
      else elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case Act::swap: std::swap(element.value, elements[other].value); break;
    case Act::duplicate: add_copy(m, part, elements, element); break;
    case Act::copy: {
      const auto from = take_apart(part, bytes(pick_alike(part, m.other)), base_.super.segment_blocks);
      if (!from || from->empty()) return false;
      add_copy(m, part, elements, (*from)[m.element % from->size()]);
      break;
    }
    default: alter_field(m, part, elements, element);
  }
  // Few readers get past keys that do not ascend.
  const bool ascends = m.how % 16 != 15;
  if (ascends && (part == Part::leaf || part == Part::interior)) {
    std::ranges::stable_sort(elements, {}, &Element::key);
    const auto same = [](const Element& left, const Element& right) { return left.key == right.key; };
    elements.erase(std::unique(elements.begin(), elements.end(), same), elements.end());
  }
  return !elements.empty() || part == Part::chunk;
}

void Draft::add_copy(const Mutation& m, Part part, Elements& elements, Element element) const {
  const std::size_t to = m.value % elements.size();
  if (is_of_map(part)) {
    elements[to].value = std::move(element.value);
    return;
  }
  if (part != Part::chunk) alter_key(m, element.key);
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(to), std::move(element));
}

void Draft::alter_key(const Mutation& m, format::Key& key) const {
  switch (m.field % 4) {
    case 0: key.ino = Ino{number_for(m, {Wire::fixed, Meaning::ino, 0, 8, key.ino.v})}; return;
    case 1: key.kind = static_cast<format::ItemKind>(m.value % 12); return;
    case 2: key.offset = number_for(m, {Wire::fixed, Meaning::plain, 0, 8, key.offset}); return;
    default: ++key.offset;
  }
}

void Draft::alter_field(const Mutation& m, Part part, const Elements& elements, Element& element) const {
  const Fields fields = fields_of(part, element);
  if (fields.empty()) return;
  const Field& field = fields[m.field % fields.size()];
  if (m.act == Act::splice) {
    const auto begin = element.value.begin() + static_cast<std::ptrdiff_t>(field.at), end = begin + static_cast<std::ptrdiff_t>(field.size);
    const Bytes copy(begin, end);
    if (m.how % 2) element.value.erase(begin, end);
    else element.value.insert(end, copy.begin(), copy.end());
  } else if (field.wire == Wire::text) {
    alter_text(m, field, element.value);
  } else if (m.how % 8 == 5) {
    const Element& from = elements[m.value % elements.size()];
    const Fields theirs = fields_of(part, from);
    if (m.field % fields.size() < theirs.size()) put_number(element.value, field, theirs[m.field % fields.size()].number);
  } else {
    put_number(element.value, field, number_for(m, field));
  }
  if (m.other & kMatches) match_content(part, element);
}

// Checksums of an extent for what stands where it leads to.
void Draft::match_content(Part part, Element& element) const {
  if (part != Part::leaf || element.key.kind != format::ItemKind::extent) return;
  constexpr std::size_t kCrcsAt = 12;
  const std::uint64_t address = get_fixed(element.value, 1, std::min<std::size_t>(6, element.value.size() - 1));
  std::array<std::byte, kBlockSize> block;
  for (std::size_t i = 0; kCrcsAt + 4 * i + 4 <= element.value.size() && address + i < base_.super.device_blocks; ++i) {
    base_.store.read((address + i) * kBlockSize, block);
    put_fixed(element.value, kCrcsAt + 4 * i, 4, crc32c(block));
  }
}

void Draft::alter_header(const Mutation& m, unsigned block) {
  const Part part = base_.blocks[block].part;
  if (part == Part::superblock) return alter_superblock(m);
  const Fields fields = header_fields(part, bytes(block));
  const Field& field = fields[m.field % fields.size()];
  Bytes& changed = own(block);
  put_number(changed, field, number_for(m, field));
  seal(part, changed);
}

// Mostly in the superblock's image as well, or a check would see no further than that they differ.
void Draft::alter_superblock(const Mutation& m) {
  const Fields fields = header_fields(Part::superblock, bytes(0));
  const Field& field = fields[m.field % fields.size()];
  const std::uint64_t number = number_for(m, field);
  put_number(own(0), field, number);
  const auto image = base_.by_address.find(base_.super.image.address.v);
  if (m.other & kOnlySuperblock || image == base_.by_address.end()) return;
  put_fixed(own(image->second), format::kNodeHeaderBytes + field.at, field.size, number);
}

void Draft::raw_bytes(const Mutation& m, unsigned block) {
  Bytes& changed = own(block);
  const std::size_t at = (m.element * 256U + m.field) % changed.size();
  const std::size_t size = std::min<std::size_t>(1 + m.how % 8, changed.size() - at);
  put_fixed(changed, at, size, m.value);
  seal(base_.blocks[block].part, changed);
}

void Draft::copy_block(const Mutation& m, unsigned block) {
  const Part part = base_.blocks[block].part;
  const View from = bytes(pick_alike(part, m.other));
  Bytes& to = own(block);
  if (from.size() != to.size() || part == Part::superblock) return;
  const std::uint64_t address = get_fixed(to, part == Part::chunk ? 48 : kNodeAddressAt, 6);
  std::ranges::copy(from, to.begin());
  put_fixed(to, part == Part::chunk ? 48 : kNodeAddressAt, 6, address);
  seal(part, to);
}

void Draft::spoil(const Mutation& m) {
  if (base_.data.empty()) return;
  const std::uint64_t address = base_.data[m.element % base_.data.size()].v;
  Bytes& block = content_.try_emplace(address, Bytes(kBlockSize)).first->second;
  base_.store.read(address * kBlockSize, block);
  block[m.value % kBlockSize] ^= std::byte{1};
}

}  // namespace varve::fuzz

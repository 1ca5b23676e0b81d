#include "fuzz/structure/fields.h"

#include <algorithm>
#include <array>

#include "format/node.h"
#include "format/superblock_layout.h"
#include "format/varint.h"

namespace varve::fuzz {

using format::ItemKind;

namespace {

// Cuts fields off the front of some bytes, as long as they last.
class Cutter {
 public:
  explicit Cutter(View bytes, std::size_t at = 0) : bytes_(bytes), at_(std::min(at, bytes.size())) {}

  std::uint64_t fixed(std::size_t size, Meaning meaning = Meaning::plain) {
    if (left() < size) return end();
    const std::uint64_t number = get_fixed(bytes_, at_, size);
    fields_.push_back({Wire::fixed, meaning, at_, size, number});
    at_ += size;
    return number;
  }
  std::uint64_t varint(Meaning meaning = Meaning::plain) {
    std::uint64_t number = 0;
    const std::byte* const past = format::read_varint(bytes_.data() + at_, bytes_.data() + bytes_.size(), number);
    if (!past) return end();
    const auto size = static_cast<std::size_t>(past - bytes_.data()) - at_;
    fields_.push_back({Wire::varint, meaning, at_, size, number});
    at_ += size;
    return number;
  }
  void text(std::size_t size) {
    size = std::min(size, left());
    fields_.push_back({Wire::text, Meaning::plain, at_, size, 0});
    at_ += size;
  }
  void rest() { text(left()); }
  std::size_t left() const { return bytes_.size() - at_; }
  Fields finish() { return std::move(fields_); }

 private:
  std::uint64_t end() {
    at_ = bytes_.size();
    return 0;
  }
  View bytes_;
  std::size_t at_;
  Fields fields_;
};

void cut_time(Cutter& cut) {
  cut.varint();
  cut.fixed(4);
}

void cut_attributes(Cutter& cut) {
  const std::uint64_t presence = cut.fixed(1, Meaning::flags);
  for (int i = 0; i < 6; ++i) cut.varint(i == 0 ? Meaning::flags : Meaning::plain);
  cut.fixed(4);
  if (presence & 1) cut.varint();
  if (presence & 2) cut.varint(Meaning::flags);
  if (presence & 4) {
    cut.varint(Meaning::ino);
    cut.varint();
    cut.varint();
  }
  cut_time(cut);
  for (const std::uint64_t bit : {8U, 16U, 32U})
    if (presence & bit) cut_time(cut);
}

void cut_crcs(Cutter& cut) {
  while (cut.left() >= 4) cut.fixed(4, Meaning::crc);
}

void cut_written(Cutter& cut) {
  cut.fixed(6, Meaning::address);
  cut.fixed(4, Meaning::clock);
  cut.fixed(1);
  cut_crcs(cut);
}

void cut_extent(Cutter& cut) {
  const std::uint64_t flags = cut.fixed(1, Meaning::flags);
  if (flags & 2) cut.rest();
  else if (flags & 1) cut.varint();
  else cut_written(cut);
}

void cut_dirent(Cutter& cut) {
  cut.fixed(1, Meaning::flags);
  cut.varint(Meaning::ino);
  cut.rest();
}

void cut_xattrs(Cutter& cut) {
  while (cut.left() > 0) {
    cut.text(cut.varint());
    cut.text(cut.varint());
  }
}

void cut_snapshot(Cutter& cut) {
  cut.fixed(1, Meaning::flags);
  cut.fixed(1);
  cut.fixed(6, Meaning::address);
  cut.fixed(4, Meaning::crc);
  cut.fixed(8);
  cut.fixed(4);
  cut.varint(Meaning::clock);
  for (int i = 0; i < 7; ++i) cut.varint();
  cut.rest();
}

void cut_dead(Cutter& cut) {
  cut.varint(Meaning::serial);
  while (cut.left() > 0) {
    const std::uint64_t head = cut.varint(Meaning::flags);
    cut.varint();
    cut.varint(head & 1 ? Meaning::serial : Meaning::clock);
    if (!(head & 1)) cut.fixed(1);
  }
}

void cut_place(Cutter& cut) {
  cut.fixed(6, Meaning::address);
  cut.fixed(1, Meaning::flags);
  cut.varint();
}

void cut_body(Cutter& cut, std::uint64_t kind) {
  switch (kind) {
    case 1: return cut_attributes(cut);
    case 5:
      cut.varint();
      return cut_dirent(cut);
    case 6:
      cut.varint();
      return cut.rest();
    case 7:
      cut.text(cut.fixed(1));
      return cut.rest();
    case 8:
    case 9: return cut.rest();
    case 10:
      cut.varint();
      cut.fixed(1, Meaning::flags);
      return cut_written(cut);
    case 11:
      cut.varint();
      cut.varint();
      cut.fixed(1, Meaning::flags);
      return;
    default: return;
  }
}

struct Place {
  std::size_t at, size;
  Meaning meaning = Meaning::plain;
};

Fields fields_at(View block, std::span<const Place> places) {
  Fields fields;
  for (const Place& place : places)
    if (place.at + place.size <= block.size())
      fields.push_back({Wire::fixed, place.meaning, place.at, place.size, get_fixed(block, place.at, place.size)});
  return fields;
}

void add_run(std::vector<Place>& places, std::size_t at) {
  places.push_back({at, 8, Meaning::address});
  places.push_back({at + 8, 4});
}

void add_reference(std::vector<Place>& places, std::size_t at) {
  places.push_back({at, 8, Meaning::address});
  places.push_back({at + 8, 8});
  places.push_back({at + 16, 4, Meaning::crc});
}

void add_numbers(std::vector<Place>& places, std::size_t at, unsigned count) {
  for (unsigned i = 0; i < count; ++i) places.push_back({at + 8 * i, 8});
}

std::vector<Place> superblock_places() {
  using namespace format::superblock_layout;
  std::vector<Place> all{{kVersionAt, 4}, {kFeaturesAt, 8, Meaning::flags}, {kFeaturesAt + 8, 8, Meaning::flags},
                         {kFeaturesAt + 16, 8, Meaning::flags}, {kLabelAt, 8}, {kIdentityAt, 8}, {kIdentityAt + 8, 8},
                         {kMadeAt, 8}, {kMadeAt + 8, 4}, {kDeviceBlocksAt, 8}, {kDeviceBlocksAt + 8, 8},
                         {kFirstSegmentAt, 8, Meaning::address}, {kFirstSegmentAt + 8, 4}, {kFlagsAt, 4, Meaning::flags},
                         {kSerialAt, 8, Meaning::serial}, {kSerialAt + 8, 8}, {kSerialAt + 24, 8}, {kSerialAt + 32, 4, Meaning::crc},
                         {kSerialAt + 36, 1}, {kClockAt, 8, Meaning::clock}, {kClockAt + 8, 8}, {kClockAt + 16, 8, Meaning::ino}};
  for (const std::size_t run : {kChainAt, kChainAt + 16, kNodeHeadAt}) add_run(all, run);
  for (std::size_t group = 0; group < format::kMaxGroups; ++group) add_run(all, kHeadsAt + 16 * group);
  for (std::size_t i = 0; i < 4; ++i) add_reference(all, kRefsAt + 24 * i);
  add_numbers(all, kCentresAt, format::kMaxGroups);
  add_numbers(all, kCountsAt, 4);
  add_numbers(all, kLifetimeAt, 10);
  for (const std::size_t error : {kErrorsAt, kErrorsAt + 32}) {
    all.insert(all.end(), {{error, 8}, {error + 8, 4}, {error + 12, 4}, {error + 16, 8, Meaning::address}, {error + 24, 8, Meaning::ino}});
  }
  add_numbers(all, kScrubAt, 2);
  all.insert(all.end(), {{kScrubAt + 16, 1}, {kScrubAt + 17, 1}});
  add_numbers(all, kScrubAt + 24, 4);
  all.insert(all.end(), {{kCostsAt, 4}, {kCostsAt + 4, 4}, {kAreaAt, 8, Meaning::address}, {kAreaAt + 8, 4}, {kAreaAt + 12, 4},
                         {kProfileAt, 4}, {kStreamsAt, 2}, {kStreamsAt + 2, 2}});
  add_reference(all, kSnapshotsAt);
  all.push_back({kSnapshotsAt + 24, 1});
  add_numbers(all, kSnapshotsAt + 32, 5);
  return all;
}

}  // namespace

std::uint64_t get_fixed(View bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < size; ++i) number |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return number;
}

void put_fixed(std::span<std::byte> bytes, std::size_t at, std::size_t size, std::uint64_t number) {
  for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(number >> (8 * i));
}

void put_number(Bytes& bytes, const Field& field, std::uint64_t number) {
  if (field.wire == Wire::fixed) return put_fixed(bytes, field.at, field.size, number);
  std::array<std::byte, format::kMaxVarintBytes> raw;
  std::byte* const end = format::write_varint(raw.data(), number);
  const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(field.at);
  bytes.insert(bytes.erase(place, place + static_cast<std::ptrdiff_t>(field.size)), raw.data(), end);
}

Fields fields_of_value(ItemKind kind, View value) {
  Cutter cut(value);
  switch (kind) {
    case ItemKind::extent: cut_extent(cut); break;
    case ItemKind::dirent: cut_dirent(cut); break;
    case ItemKind::name_hash:
      while (cut.left() > 0) cut.varint();
      break;
    case ItemKind::xattr: cut_xattrs(cut); break;
    case ItemKind::attributes: cut_attributes(cut); break;
    case ItemKind::snapshot: cut_snapshot(cut); break;
    case ItemKind::dead: cut_dead(cut); break;
    case ItemKind::place: cut_place(cut); break;
    case ItemKind::name: cut.fixed(6, Meaning::address); break;
    case ItemKind::symlink:
    case ItemKind::orphan: cut.rest(); break;
  }
  return cut.finish();
}

Fields fields_of_record(View record) {
  Cutter cut(record);
  const std::uint64_t kind = cut.fixed(1);
  cut.varint(Meaning::ino);
  cut_body(cut, kind);
  return cut.finish();
}

Fields fields_of_child(View child) {
  Cutter cut(child);
  cut.fixed(6, Meaning::address);
  cut.fixed(4, Meaning::crc);
  cut.varint();
  return cut.finish();
}

Fields fields_of_slot(View slot) {
  static constexpr Place kPlaces[] = {{0, 6, Meaning::address}, {6, 4, Meaning::crc}, {10, 2}};
  return fields_at(slot, kPlaces);
}

Fields fields_of_reverse_entry(View record) {
  static constexpr Place kPlaces[] = {{0, 1}, {1, 1}, {2, 8, Meaning::ino}, {10, 6}, {16, 4, Meaning::clock}, {20, 4, Meaning::crc},
                                      {2, 1}};
  return fields_at(record, kPlaces);
}

Fields fields_of_segment_record(View record) {
  static constexpr Place kPlaces[] = {{0, 1}, {1, 1, Meaning::flags}, {2, 2}, {4, 4}, {8, 4, Meaning::clock}, {12, 4}, {16, 8},
                                      {24, 8}, {32, 8, Meaning::flags}};
  return fields_at(record, kPlaces);
}

Fields fields_of_node_header(View block) {
  static constexpr Place kPlaces[] = {{8, 8}, {16, 8, Meaning::serial}, {24, 6, Meaning::address}, {30, 1}, {31, 1}, {32, 2}, {34, 2},
                                      {36, 8, Meaning::ino}, {44, 1}, {45, 8}};
  return fields_at(block, kPlaces);
}

Fields fields_of_chunk_header(View block) {
  static constexpr Place kPlaces[] = {{8, 8}, {16, 8}, {24, 8}, {32, 4, Meaning::crc}, {36, 2}, {38, 2}, {40, 4}, {44, 4},
                                      {48, 6, Meaning::address}, {54, 6, Meaning::address}, {60, 4}, {64, 6, Meaning::address}, {70, 4},
                                      {74, 8}, {82, 8, Meaning::serial}, {90, 8, Meaning::clock}, {98, 8, Meaning::ino},
                                      {106, 4, Meaning::crc}, {110, 6, Meaning::address}, {116, 4}};
  return fields_at(block, kPlaces);
}

Fields fields_of_superblock(View block) {
  static const std::vector<Place> places = superblock_places();
  return fields_at(block, places);
}

}  // namespace varve::fuzz

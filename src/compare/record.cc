#include "compare/record.h"

#include <fmt/format.h>

#include "compare/bytes.h"
#include "format/codec.h"

namespace varve::compare {

namespace {

// Of the values before and after there may be one or both.
constexpr std::uint64_t kBefore = 1, kAfter = 2;

template <class Value, class Encode>
void append_sides(const std::optional<Value>& before, const std::optional<Value>& after, Bytes& out, Encode encode) {
  put(out, (before ? kBefore : 0) | (after ? kAfter : 0));
  for (const std::optional<Value>* value : {&before, &after}) {
    if (!*value) continue;
    Bytes bytes;
    encode(**value, bytes);
    put(out, bytes);
  }
}

template <class Value, class Decode>
Status read_sides(format::Reader& in, std::optional<Value>& before, std::optional<Value>& after, Decode decode) {
  const std::uint64_t sides = in.varint();
  if (sides > (kBefore | kAfter)) return Error(Errc::corrupt, "a change with more than two sides");
  for (const auto& [side, value] : {std::pair(kBefore, &before), std::pair(kAfter, &after)})
    if (sides & side) *value = TRY(decode(in.bytes(in.varint())));
  return {};
}

void encode_entry(const EntryValue& entry, Bytes& out) { format::encode_dirent({entry.ino, entry.type, entry.name}, out); }

Result<BlockState> state_from(std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(BlockState::data)) return Error(Errc::corrupt, fmt::format("{}: no state of a block", number));
  return static_cast<BlockState>(number);
}

Status read_blocks(format::Reader& in, Record& record) {
  record.first = in.varint();
  record.length = in.varint();
  record.was = TRY(state_from(in.varint()));
  record.is = TRY(state_from(in.varint()));
  if (record.length == 0 || record.first + record.length < record.first)
    return Error(Errc::corrupt, "a range of file blocks without an end");
  return {};
}

Status read_body(format::Reader& in, Record& record) {
  switch (record.kind) {
    case Record::Kind::attributes:
      return read_sides(in, record.attributes_before, record.attributes_after, format::decode_attributes);
    case Record::Kind::entry:
      record.cookie = in.varint();
      return read_sides(in, record.entry_before, record.entry_after, decode_entry);
    case Record::Kind::blocks: return read_blocks(in, record);
    case Record::Kind::xattrs:
    case Record::Kind::target: return {};
  }
  return Error(Errc::corrupt, "a change of a kind that there is not");
}

}  // namespace

Result<EntryValue> decode_entry(std::span<const std::byte> value) {
  const format::Dirent entry = TRY(format::decode_dirent(value));
  return EntryValue{entry.ino, entry.type, std::string(entry.name)};
}

void append(const Record& record, Bytes& out) {
  put(out, static_cast<std::uint64_t>(record.kind));
  put(out, record.ino.v);
  switch (record.kind) {
    case Record::Kind::attributes:
      return append_sides(record.attributes_before, record.attributes_after, out, format::encode_attributes);
    case Record::Kind::entry:
      put(out, record.cookie);
      return append_sides(record.entry_before, record.entry_after, out, encode_entry);
    case Record::Kind::blocks:
      put(out, record.first);
      put(out, record.length);
      put(out, static_cast<std::uint64_t>(record.was));
      put(out, static_cast<std::uint64_t>(record.is));
      return;
    case Record::Kind::xattrs:
    case Record::Kind::target: return;
  }
}

Result<std::vector<Record>> decode_records(std::span<const std::byte> bytes) {
  std::vector<Record> records;
  format::Reader in(bytes);
  while (in.ok() && in.left() > 0) {
    Record record;
    const std::uint64_t kind = in.varint();
    record.kind = static_cast<Record::Kind>(kind > 0xFF ? 0xFF : kind);
    record.ino = Ino{in.varint()};
    TRY(read_body(in, record));
    records.push_back(std::move(record));
  }
  if (!in.ok()) return Error(Errc::corrupt, "an answer about changes ends in the middle of one");
  return records;
}

}  // namespace varve::compare

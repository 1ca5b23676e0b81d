#include "format/record.h"

#include "format/append.h"
#include "format/codec.h"

namespace varve::format {

namespace {

constexpr std::uint8_t kMoved = 1;
constexpr std::uint8_t kUnwrittenRange = 1;

// --- bodies, written -----------------------------------------------------------------------------------------------
void append_body(const SetAttributes& r, Bytes& out) {
  append_varint(out, r.ino.v);
  Attributes attributes = r.attributes;
  attributes.blocks = 0;
  encode_attributes(attributes, out);
}
void append_body(const FreeInode& r, Bytes& out) { append_varint(out, r.ino.v); }
void append_body(const SetOrphan& r, Bytes& out) { append_varint(out, r.ino.v); }
void append_body(const ClearOrphan& r, Bytes& out) { append_varint(out, r.ino.v); }
void append_body(const SetDirent& r, Bytes& out) {
  append_varint(out, r.directory.v);
  append_varint(out, r.cookie);
  encode_dirent(r.entry, out);
}
void append_body(const DeleteDirent& r, Bytes& out) {
  append_varint(out, r.directory.v);
  append_varint(out, r.cookie);
  append_text(out, r.name);
}
void append_body(const SetXattr& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append8(out, static_cast<std::uint8_t>(r.name.size()));
  append_text(out, r.name);
  append_bytes(out, r.value);
}
void append_body(const DeleteXattr& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append_text(out, r.name);
}
void append_body(const SetSymlink& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append_text(out, r.target);
}
void append_body(const MapBlocks& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append_varint(out, r.first);
  append8(out, r.moved ? kMoved : 0);
  append_fixed(out, r.address.v, 6);
  append_fixed(out, r.clock, 4);
  append8(out, r.estimate);
  for (const std::uint32_t crc : r.crcs) append_fixed(out, crc, 4);
}
void append_body(const ClearRange& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append_varint(out, r.from);
  append_varint(out, r.to - r.from);
  append8(out, r.unwritten ? kUnwrittenRange : 0);
}
void append_body(const SetTail& r, Bytes& out) {
  append_varint(out, r.ino.v);
  append_varint(out, r.block);
  append_bytes(out, r.bytes);
}

// --- bodies, read ----------------------------------------------------------------------------------------------------
Result<Ino> read_ino(Reader& in) {
  const Ino ino{in.varint()};
  if (!in.ok() || !ino) return corrupt("record: no inode number");
  return ino;
}

template <class R>
Result<Record> read_bare(Reader& in) {  // records that are an inode number and nothing else
  const Ino ino = TRY(read_ino(in));
  return Record{R{ino}};
}

Result<Record> read_set_attributes(Reader& in) {
  SetAttributes r;
  r.ino = TRY(read_ino(in));
  r.attributes = TRY(decode_attributes(in.bytes(in.left())));
  return Record{r};
}

Result<Record> read_set_dirent(Reader& in) {
  SetDirent r;
  r.directory = TRY(read_ino(in));
  r.cookie = in.varint();
  r.entry = TRY(decode_dirent(in.bytes(in.left())));
  return Record{r};
}

Result<Record> read_delete_dirent(Reader& in) {
  DeleteDirent r;
  r.directory = TRY(read_ino(in));
  r.cookie = in.varint();
  r.name = in.text(in.left());
  if (!is_valid_name(r.name)) return corrupt("record: impossible name of {} bytes", r.name.size());
  return Record{r};
}

bool is_valid_xattr_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.find('\0') == std::string_view::npos;
}

Result<Record> read_set_xattr(Reader& in) {
  SetXattr r;
  r.ino = TRY(read_ino(in));
  r.name = in.text(in.u8());
  r.value = in.bytes(in.left());
  if (!is_valid_xattr_name(r.name) || r.value.size() > kMaxXattrValue) return corrupt("record: bad extended attribute");
  return Record{r};
}

Result<Record> read_delete_xattr(Reader& in) {
  DeleteXattr r;
  r.ino = TRY(read_ino(in));
  r.name = in.text(in.left());
  if (!is_valid_xattr_name(r.name)) return corrupt("record: bad name of an extended attribute");
  return Record{r};
}

Result<Record> read_set_symlink(Reader& in) {
  SetSymlink r;
  r.ino = TRY(read_ino(in));
  r.target = in.text(in.left());
  if (r.target.empty() || r.target.size() > kMaxSymlink || r.target.find('\0') != std::string_view::npos)
    return corrupt("record: bad symlink target of {} bytes", r.target.size());
  return Record{r};
}

Result<Record> read_map_blocks(Reader& in, std::vector<std::uint32_t>& spare) {
  MapBlocks r;
  r.ino = TRY(read_ino(in));
  r.first = in.varint();
  const std::uint8_t flags = in.u8();
  r.address = BlockAddr{in.u48()};
  r.clock = in.u32();
  r.estimate = in.u8();
  const std::size_t blocks = in.left() / 4;
  if (!in.ok() || (flags & ~kMoved) || in.left() % 4 != 0 || blocks == 0 || blocks > kMaxExtentBlocks)
    return corrupt("record: malformed mapping of inode {}", r.ino);
  if (!r.address || r.address.v + blocks > kMaxAddress || r.first >= kMaxFileBlocks ||
      r.first + blocks > kMaxFileBlocks)
    return corrupt("record: inode {} maps block {} to block {}", r.ino, r.first, r.address);
  r.moved = flags & kMoved;
  r.crcs = std::move(spare);
  r.crcs.resize(blocks);
  for (std::uint32_t& crc : r.crcs) crc = in.u32();
  return Record{std::move(r)};
}

Result<Record> read_clear_range(Reader& in) {
  ClearRange r;
  r.ino = TRY(read_ino(in));
  r.from = in.varint();
  r.to = r.from + in.varint();
  const std::uint8_t flags = in.u8();
  // Versions up to 0.1 wrote empty ones when a file as large as can be became a little smaller: nothing is cleared by them.
  if (!in.ok() || (flags & ~kUnwrittenRange) || r.to < r.from) return corrupt("record: bad range of inode {}", r.ino);
  r.unwritten = flags & kUnwrittenRange;
  if (r.unwritten && r.to > kMaxFileBlocks) return corrupt("record: inode {} allocated up to block {}", r.ino, r.to);
  return Record{r};
}

Result<Record> read_set_tail(Reader& in) {
  SetTail r;
  r.ino = TRY(read_ino(in));
  r.block = in.varint();
  if (!in.ok() || r.block >= kMaxFileBlocks) return corrupt("record: inode {} has a tail at block {}", r.ino, r.block);
  r.bytes = in.bytes(in.left());
  if (r.bytes.empty() || r.bytes.size() > kMaxLoggedTail)
    return corrupt("record: inode {} has a tail of {} bytes", r.ino, r.bytes.size());
  return Record{r};
}

Result<Record> read_body(std::uint8_t kind, Reader& in, std::vector<std::uint32_t>& spare) {
  switch (kind) {
    case 1: return read_set_attributes(in);
    case 2: return read_bare<FreeInode>(in);
    case 3: return read_bare<SetOrphan>(in);
    case 4: return read_bare<ClearOrphan>(in);
    case 5: return read_set_dirent(in);
    case 6: return read_delete_dirent(in);
    case 7: return read_set_xattr(in);
    case 8: return read_delete_xattr(in);
    case 9: return read_set_symlink(in);
    case 10: return read_map_blocks(in, spare);
    case 11: return read_clear_range(in);
    case 12: return read_set_tail(in);
    default: return corrupt("record: unknown kind {}", kind);
  }
}
static_assert(std::variant_size_v<Record> == 12, "give the new record a kind in read_body");

}  // namespace

std::size_t encode_record(const Record& record, Bytes& out) {
  const std::size_t start = out.size();
  append8(out, static_cast<std::uint8_t>(record.index() + 1));
  // The length is known only afterwards: leave one byte, enough for most, and make room if it takes more.
  const std::size_t length_at = out.size();
  append8(out, 0);
  std::visit([&](const auto& r) { append_body(r, out); }, record);
  const std::uint64_t length = out.size() - length_at - 1;
  std::array<std::byte, kMaxVarintBytes> raw;
  const auto length_bytes = static_cast<std::size_t>(write_varint(raw.data(), length) - raw.data());
  out[length_at] = raw[0];
  if (length_bytes > 1)
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(length_at) + 1, raw.data() + 1, raw.data() + length_bytes);
  return out.size() - start;
}

Status decode_records(std::span<const std::byte> bytes, const std::function<Status(const Record&)>& visit) {
  Reader in(bytes);
  std::vector<std::uint32_t> spare;  // recycles the CRC vector of one mapping for the next
  while (in.left() > 0) {
    const std::size_t at = in.position();
    const std::uint8_t kind = in.u8();
    const std::uint64_t length = in.varint();
    if (!in.ok() || length > in.left()) return corrupt("record at byte {}: length {} runs past the end", at, length);
    Reader body(in.bytes(length));
    auto record = read_body(kind, body, spare);
    if (!record.ok()) return corrupt("record at byte {}: {}", at, record.error().message());
    if (!body.ok() || body.left() != 0) return corrupt("record at byte {}: body of {} bytes is malformed", at, length);
    TRY(visit(*record));
    if (auto* map = std::get_if<MapBlocks>(&*record)) spare = std::move(map->crcs);
  }
  return {};
}

}  // namespace varve::format

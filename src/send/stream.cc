#include "send/stream.h"

#include <algorithm>
#include <array>

#include "base/crc32c.h"
#include "compare/bytes.h"
#include "send/record_codec.h"

namespace varve::send {

using compare::put;

namespace {

constexpr std::array<unsigned char, 8> kMagic{'V', 'A', 'R', 'V', 'E', 'S', 0x1A, 0x01};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kGoesOn = 1;  // feature: it begins in the middle

bool is_magic(std::span<const std::byte> bytes) { return std::ranges::equal(bytes, std::as_bytes(std::span(kMagic))); }

}  // namespace

// Of data only where it is: a sender that begins in the middle has not read what was before.
void Position::pass(const Record& record) {
  if (const auto* const data = std::get_if<Data>(&record)) return pass_data(data->offset, data->bytes.size());
  Bytes bytes;
  format::append8(bytes, encode(record, bytes));
  digest = crc32c(bytes, digest);
  ++records;
}

void Position::pass_data(std::uint64_t offset, std::uint64_t length) {
  Bytes bytes;
  put(bytes, offset);
  put(bytes, length);
  format::append8(bytes, kData);
  digest = crc32c(bytes, digest);
  ++records;
}

// --- writing --------------------------------------------------------------------------------------------------------------

Status StreamWriter::frame(std::uint8_t kind, const Bytes& body) {
  Bytes bytes;
  format::append_fixed(bytes, body.size(), 4);
  format::append8(bytes, kind);
  format::append_bytes(bytes, body);
  crc_ = crc32c(bytes, crc_);
  format::append_fixed(bytes, crc_, 4);
  return sink_(bytes);
}

Status StreamWriter::begin(const Begin& begin) {
  skipped_ = begin.position;
  TRY(sink_(std::as_bytes(std::span(kMagic))));
  Bytes body;
  put(body, kVersion);
  put(body, skipped_.records > 0 ? kGoesOn : 0);
  put_state(body, begin.snapshot);
  put(body, std::uint64_t{begin.base.has_value()});
  if (begin.base) put_state(body, *begin.base);
  if (skipped_.records > 0) {
    put(body, skipped_.records);
    put(body, std::uint64_t{skipped_.digest});
  }
  return frame(kBegin, body);
}

Status StreamWriter::check_skipped() const {
  if (position_.records != skipped_.records || position_ == skipped_) return {};
  return Error(Errc::unsupported, "what was sent before does not fit to what this version of Varve sends: send it from the beginning");
}

Status StreamWriter::add(const Record& record) {
  const bool is_skipped = skips();
  position_.pass(record);
  if (is_skipped) return check_skipped();
  Bytes body;
  const std::uint8_t kind = encode(record, body);
  if (body.size() > kMostBody) return Error(Errc::argument_too_big, "more extended attributes than a stream has room for");
  return frame(kind, body);
}

Status StreamWriter::skip_data(std::uint64_t offset, std::uint64_t length) {
  position_.pass_data(offset, length);
  return check_skipped();
}

Status StreamWriter::end() {
  if (skips()) return Error(Errc::invalid, "more was sent before than there is");
  Bytes body;
  put(body, position_.records);
  return frame(kEnd, body);
}

// --- reading --------------------------------------------------------------------------------------------------------------

Status StreamReader::fill(std::span<std::byte> out) {
  const Status filled = source_(out);
  bytes_ += out.size();
  if (filled.fails_with(Errc::out_of_range)) return bad("it ends too early, before byte {}", bytes_);
  return filled;
}

Result<StreamReader::Frame> StreamReader::frame() {
  std::array<std::byte, 5> head;
  TRY(fill(head));
  format::Reader in(head);
  const std::uint32_t length = in.u32();
  if (length > kMostBody) return bad("a record of {} bytes before byte {}", length, bytes_);
  Frame found{in.u8(), Bytes(length)};
  TRY(fill(found.body));
  crc_ = crc32c(found.body, crc32c(head, crc_));
  std::array<std::byte, 4> crc;
  TRY(fill(crc));
  if (format::Reader(crc).u32() != crc_) return bad("a checksum does not match before byte {}", bytes_);
  return found;
}

Result<Begin> StreamReader::begin() {
  std::array<std::byte, kMagic.size()> magic;
  const Status first = source_(std::span(magic).first(1));
  if (first.fails_with(Errc::out_of_range)) return Error(Errc::invalid, "the stream is empty: varve send has failed, and says why");
  TRY(first);
  const Status filled = source_(std::span(magic).subspan(1));
  if (!filled.ok() && !filled.fails_with(Errc::out_of_range)) return filled.error();
  if (!filled.ok() || !is_magic(magic)) return Error(Errc::invalid, "this is no stream of varve send");
  return begin_behind_magic();
}

Result<std::optional<Begin>> StreamReader::another() {
  std::array<std::byte, kMagic.size()> magic{};
  const Status first = source_(std::span(magic).first(1));
  if (first.fails_with(Errc::out_of_range)) return std::optional<Begin>();
  TRY(first);
  const Status rest = source_(std::span(magic).subspan(1));
  if (!rest.ok() && !rest.fails_with(Errc::out_of_range)) return rest.error();
  if (!rest.ok() || !is_magic(magic)) return Error(Errc::invalid, "more follows the stream, and it is no stream of varve send");
  return std::optional<Begin>(TRY(begin_behind_magic()));
}

Result<Begin> StreamReader::begin_behind_magic() {
  bytes_ += kMagic.size();
  crc_ = 0;
  const Frame first = TRY(frame());
  format::Reader in(first.body);
  const std::uint64_t version = in.varint(), features = in.varint();
  if (first.kind != kBegin || !in.ok()) return bad("it has no beginning");
  if (version > kVersion || (features & ~kGoesOn)) return Error(Errc::unknown_feature, "this stream needs a newer Varve");
  Begin found{state(in), {}, {}};
  if (TRY(flag(in))) found.base = state(in);
  if (features & kGoesOn) {
    found.position.records = in.varint();
    found.position.digest = static_cast<std::uint32_t>(in.varint());
  }
  if (!in.ok() || in.left() || found.position.records >= kMostRecords) return bad("its beginning makes no sense");
  position_ = found.position;
  return found;
}

Result<std::optional<Record>> StreamReader::next() {
  const Frame one = TRY(frame());
  format::Reader in(one.body);
  if (one.kind == kEnd) {
    if (in.varint() != position_.records || !in.ok() || in.left()) return bad("its end belongs to another stream");
    return std::optional<Record>();
  }
  Record record = TRY(decode(one.kind, in));
  if (!in.ok() || in.left()) return bad("a record that makes no sense before byte {}", bytes_);
  position_.pass(record);
  return std::optional<Record>(std::move(record));
}

}  // namespace varve::send

#include "format/lease.h"

#include <algorithm>

#include "format/codec.h"
#include "format/fields.h"

namespace varve::format {

namespace {

constexpr std::uint64_t kLeaseMagic = 0x1A4C'5645'5652'4156ULL;      // "VARVEVL\x1A"
constexpr std::uint64_t kChallengeMagic = 0x1A43'5645'5652'4156ULL;  // "VARVEVC\x1A"
constexpr std::uint64_t kAnswerMagic = 0x1A41'5645'5652'4156ULL;     // "VARVEVA\x1A"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kLeaseBytes = 512;
constexpr std::size_t kLeaseCrcAt = 8;
constexpr std::size_t kBodyAt = 16;
constexpr std::size_t kProcessAt = 96;
constexpr std::size_t kHostBytes = 64, kProgramBytes = 32, kPlaceBytes = 160;
static_assert(kProcessAt + 16 + 4 + 4 + 8 + 8 + kHostBytes + kProgramBytes + kPlaceBytes <= kLeaseBytes);

void put_text(Writer& out, const std::string& text, std::size_t room) {
  const std::size_t end = out.size() + room;
  out.put_text(std::string_view(text).substr(0, room));
  out.skip_to(end);
}

std::string get_text(Reader& in, std::size_t room) {
  std::string text(in.text(room));
  text.resize(std::min(text.find('\0'), room));
  // What a made-up record says goes into messages: nothing in it may move a terminal's cursor.
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return text;
}

void put_process(Writer& out, const Process& process) {
  for (const std::uint8_t byte : process.boot) out.put(byte);
  out.put(process.pid);
  out.put(std::uint32_t{0});
  out.put(process.pid_namespace);
  out.put(process.started);
  put_text(out, process.host, kHostBytes);
  put_text(out, process.program, kProgramBytes);
  put_text(out, process.place, kPlaceBytes);
}

Process get_process(Reader& in) {
  Process process;
  for (std::uint8_t& byte : process.boot) byte = in.u8();
  process.pid = in.u32();
  in.u32();
  process.pid_namespace = in.u64();
  process.started = in.u64();
  process.host = get_text(in, kHostBytes);
  process.program = get_text(in, kProgramBytes);
  process.place = get_text(in, kPlaceBytes);
  return process;
}

void put_time(Writer& out, const Timestamp& time) {
  out.put(static_cast<std::uint64_t>(time.seconds));
  out.put(time.nanoseconds);
  out.put(std::uint32_t{0});
}

Timestamp get_time(Reader& in) {
  Timestamp time;
  time.seconds = static_cast<std::int64_t>(in.u64());
  time.nanoseconds = in.u32();
  in.u32();
  return time;
}

// magic, CRC of the sector, version, then the body up to the process.
template <class Body>
void encode(std::uint64_t magic, const Process& process, std::span<std::byte> block, Body put_body) {
  std::ranges::fill(block, std::byte{0});
  const auto sector = block.first(kLeaseBytes);
  Writer out(sector);
  out.put(magic);
  out.put(std::uint32_t{0});
  out.put(kVersion);
  put_body(out);
  out.skip_to(kProcessAt);
  put_process(out, process);
  store32(sector, kLeaseCrcAt, crc_without_field(sector, kLeaseCrcAt));
}

bool is_valid(std::uint64_t magic, std::span<const std::byte> block) {
  const auto sector = block.first(kLeaseBytes);
  Reader in(sector);
  const bool has_magic = in.u64() == magic;
  const std::uint32_t crc = in.u32();
  return has_magic && in.u32() == kVersion && crc == crc_without_field(sector, kLeaseCrcAt);
}

}  // namespace

void encode_lease(const Lease& lease, std::span<std::byte> block) {
  encode(kLeaseMagic, lease.process, block, [&](Writer& out) {
    out.put(lease.holder);
    out.put(lease.promise_ms);
    out.put(std::uint32_t{0});
    put_time(out, lease.taken);
    out.put(lease.object.device);
    out.put(lease.object.inode);
  });
}

void encode_challenge(const Challenge& challenge, std::span<std::byte> block) {
  encode(kChallengeMagic, challenge.process, block, [&](Writer& out) {
    out.put(challenge.nonce);
    put_time(out, challenge.made);
    out.put(std::uint32_t{challenge.demands});
  });
}

void encode_answer(const Answer& answer, std::span<std::byte> block) {
  encode(kAnswerMagic, {}, block, [&](Writer& out) {
    out.put(answer.nonce);
    out.put(answer.holder);
  });
}

std::optional<Lease> decode_lease(std::span<const std::byte> block) {
  if (!is_valid(kLeaseMagic, block)) return std::nullopt;
  Reader in(block.subspan(kBodyAt));
  Lease lease;
  lease.holder = in.u64();
  lease.promise_ms = in.u32();
  in.u32();
  lease.taken = get_time(in);
  lease.object.device = in.u64();
  lease.object.inode = in.u64();
  Reader rest(block.subspan(kProcessAt));
  lease.process = get_process(rest);
  if (lease.holder == 0) return std::nullopt;
  return lease;
}

std::optional<Challenge> decode_challenge(std::span<const std::byte> block) {
  if (!is_valid(kChallengeMagic, block)) return std::nullopt;
  Reader in(block.subspan(kBodyAt));
  Challenge challenge;
  challenge.nonce = in.u64();
  challenge.made = get_time(in);
  challenge.demands = (in.u32() & 1) != 0;
  Reader rest(block.subspan(kProcessAt));
  challenge.process = get_process(rest);
  if (challenge.nonce == 0) return std::nullopt;
  return challenge;
}

std::optional<Answer> decode_answer(std::span<const std::byte> block) {
  if (!is_valid(kAnswerMagic, block)) return std::nullopt;
  Reader in(block.subspan(kBodyAt));
  Answer answer;
  answer.nonce = in.u64();
  answer.holder = in.u64();
  if (answer.nonce == 0) return std::nullopt;
  return answer;
}

}  // namespace varve::format

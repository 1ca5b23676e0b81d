#include "format/superblock.h"

#include "base/utf8.h"

namespace varve::format {

const char* name_of(Source source) {
  switch (source) {
    case Source::unknown: return "not known";
    case Source::assumed: return "assumed";
    case Source::told: return "told by the device";
    case Source::given: return "given";
    case Source::measured: return "measured";
  }
  return "?";
}

std::string uuid_text(const Uuid& uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  Uuid uuid{};
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const bool decimal = c >= '0' && c <= '9';
    const char lower = static_cast<char>(c | 0x20);
    if (digits == 2 * uuid.size() || (!decimal && (lower < 'a' || lower > 'f'))) return {};
    const int value = decimal ? c - '0' : lower - 'a' + 10;
    uuid[digits / 2] = static_cast<std::uint8_t>(uuid[digits / 2] << 4 | value);
    ++digits;
  }
  return digits == 2 * uuid.size() && uuid != Uuid{} ? std::optional(uuid) : std::nullopt;
}

Status check_label(std::string_view label) {
  if (label.size() > 63) return Error(Errc::invalid, fmt::format("the label has {} bytes, at most 63 are possible", label.size()));
  if (!is_printable(label)) return Error(Errc::invalid, "a label is UTF-8 without control characters");
  return {};
}

}  // namespace varve::format

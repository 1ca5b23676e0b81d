#include "fuse/protocol/message_reader.h"

#include "format/layout.h"

namespace varve::fuse {

Result<std::string_view> MessageReader::take_string() {
  const std::string_view text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
  const std::size_t length = text.find('\0');
  if (length == std::string_view::npos) return Errc::invalid;
  advance(length + 1);
  return text.substr(0, length);
}

Result<std::string_view> MessageReader::take_name() {
  const std::string_view name = TRY(take_string());
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  if (name.empty() || name.find('/') != std::string_view::npos) return Errc::invalid;
  return name;
}

Result<std::span<const std::byte>> MessageReader::take_bytes(std::size_t count) {
  if (rest_.size() < count) return Errc::invalid;
  const auto bytes = rest_.first(count);
  advance(count);
  return bytes;
}

}  // namespace varve::fuse

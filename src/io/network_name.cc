#include "io/network_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace varve::io {

namespace {

// As a value in a URI.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte < 0x80 && (std::isalnum(byte) || std::string_view("/-._~").find(c) != std::string_view::npos);
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

bool is_relative_path(std::string_view key, std::string_view value) {
  const bool is_path = key == "socket" || key == "tls-psk-file" || key == "tls-certificates";
  return is_path && !value.empty() && !value.starts_with('/') && !value.starts_with("%2F") && !value.starts_with("%2f");
}

// The daemon leaves this folder, and connects again later.
std::string with_whole_paths(std::string uri) {
  std::error_code error;
  const std::string folder = escaped(std::filesystem::current_path(error).string());
  if (error) return uri;
  for (std::size_t at = uri.find('?'); at != std::string::npos; at = uri.find_first_of("&;", at)) {
    const std::string_view rest = std::string_view(uri).substr(++at);
    const std::string_view parameter = rest.substr(0, rest.find_first_of("&;#"));
    const std::size_t sign = parameter.find('=');
    if (sign == std::string_view::npos) continue;
    if (is_relative_path(parameter.substr(0, sign), parameter.substr(sign + 1)))
      uri.insert(at + sign + 1, folder == "/" ? folder : folder + "/");
  }
  return uri;
}

}  // namespace

bool is_network_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kSchemes = {"nbd://", "nbds://", "nbd+unix://", "nbds+unix://", "rbd:"};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return name.starts_with(scheme); });
}

std::string absolute_name(const std::string& name) {
  if (name.starts_with("nbd") && is_network_name(name)) return with_whole_paths(name);
  if (is_network_name(name)) return name;
  std::error_code error;
  const auto whole = std::filesystem::absolute(name, error);
  return error ? name : whole.lexically_normal().string();
}

}  // namespace varve::io

#include "remote/network_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace varve::remote {

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

bool is_relative_path(std::string_view value) {
  return !value.empty() && !value.starts_with('/') && !value.starts_with("%2F") && !value.starts_with("%2f");
}

// The daemon leaves this folder, and connects again later.
std::string with_whole_paths(std::string uri) {
  std::error_code error;
  const std::string folder = escaped(std::filesystem::current_path(error).string());
  if (error) return uri;
  for (const std::string_view key : {"socket", "tls-psk-file", "tls-certificates"}) {
    const auto value = parameter_of(uri, key);
    if (!value || !is_relative_path(*value)) continue;
    const auto at = static_cast<std::size_t>(value->data() - uri.data());
    uri.insert(at, folder == "/" ? folder : folder + "/");
  }
  return uri;
}

}  // namespace

bool is_network_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kSchemes = {"nbd://", "nbds://", "nbd+unix://", "nbds+unix://", "rbd:"};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return name.starts_with(scheme); });
}

std::optional<std::string_view> parameter_of(std::string_view uri, std::string_view key) {
  for (std::size_t at = uri.find('?'); at != std::string_view::npos; at = uri.find_first_of("&;", at)) {
    const std::string_view rest = uri.substr(++at);
    const std::string_view parameter = rest.substr(0, rest.find_first_of("&;#"));
    if (parameter.starts_with(key) && parameter.substr(key.size()).starts_with('=')) return parameter.substr(key.size() + 1);
  }
  return {};
}

std::string absolute_name(const std::string& name) {
  if (name.starts_with("nbd") && is_network_name(name)) return with_whole_paths(name);
  if (is_network_name(name)) return name;
  std::error_code error;
  const auto whole = std::filesystem::absolute(name, error);
  if (error) return name;
  // Behind a link ".." is not where the link stands.
  const bool goes_up = std::ranges::find(whole, "..") != whole.end();
  const auto folder = goes_up ? std::filesystem::canonical(whole.parent_path(), error) : whole.parent_path();
  return (error ? whole : folder / whole.filename()).lexically_normal().string();
}

}  // namespace varve::remote

#include "io/network_name.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

namespace varve::io {

bool is_network_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kSchemes = {"nbd://", "nbds://", "nbd+unix://", "nbds+unix://", "rbd:"};
  return std::ranges::any_of(kSchemes, [&](std::string_view scheme) { return name.starts_with(scheme); });
}

std::string absolute_name(const std::string& name) {
  if (is_network_name(name)) return name;
  std::error_code error;
  const auto whole = std::filesystem::absolute(name, error);
  return error ? name : whole.lexically_normal().string();
}

}  // namespace varve::io

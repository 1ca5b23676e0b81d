#include "remote/rbd_name.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

namespace varve::remote {

namespace {

constexpr std::string_view kScheme = "rbd:";

// The text up to one of `ends` that no backslash precedes; leaves `rest` in front of that.
std::string take(std::string_view& rest, std::string_view ends) {
  std::string taken;
  std::size_t at = 0;
  for (; at < rest.size() && ends.find(rest[at]) == std::string_view::npos; ++at) {
    if (rest[at] == '\\' && at + 1 < rest.size()) ++at;
    taken += rest[at];
  }
  rest.remove_prefix(at);
  return taken;
}

bool skip(std::string_view& rest, char expected) {
  if (!rest.starts_with(expected)) return false;
  rest.remove_prefix(1);
  return true;
}

Error malformed(const std::string& name, std::string_view why) {
  return {Errc::invalid, fmt::format("{}: {}: the name of a Ceph image is rbd:pool/image, rbd:pool/namespace/image or "
                                     "rbd:pool/image@snapshot, with :conf=FILE:id=USER behind it where they are needed", name, why)};
}

void take_setting(RbdName& parsed, const std::string& key, std::string value) {
  if (key == "conf") parsed.conf = std::move(value);
  else if (key == "id") parsed.id = std::move(value);
  else parsed.settings.emplace_back(key, std::move(value));
}

}  // namespace

Result<RbdName> parse_rbd_name(const std::string& name) {
  std::string_view rest = name;
  if (!rest.starts_with(kScheme)) return malformed(name, "does not begin with rbd:");
  rest.remove_prefix(kScheme.size());
  RbdName parsed;
  parsed.pool = take(rest, "/@:");
  if (!skip(rest, '/')) return malformed(name, "no image is named");
  parsed.image = take(rest, "/@:");
  if (skip(rest, '/')) {
    parsed.space = std::move(parsed.image);
    parsed.image = take(rest, "/@:");
  }
  if (parsed.pool.empty() || parsed.image.empty()) return malformed(name, "the pool or the image has no name");
  if (skip(rest, '@')) {
    parsed.snapshot = take(rest, "/@:");
    if (parsed.snapshot.empty()) return malformed(name, "the snapshot has no name");
  }
  while (skip(rest, ':')) {
    const std::string key = take(rest, "=:");
    if (key.empty() || !skip(rest, '=')) return malformed(name, fmt::format("\"{}\" is no setting with a value", key));
    take_setting(parsed, key, take(rest, ":"));
  }
  if (!rest.empty()) return malformed(name, fmt::format("\"{}\" is not understood", rest));
  return parsed;
}

}  // namespace varve::remote

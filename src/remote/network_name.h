// Names of storage that is reached through a network connection of Varve's own: "nbd://host[:port]/export", "rbd:pool/image".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace varve::remote {

// Whether this is the name of an export or of a Ceph image, not a path: nbd://, nbds:// (TLS), nbd+unix://, nbds+unix:// and rbd:.
bool is_network_name(std::string_view name);

// The value of a parameter behind the '?' of a URI, as it is written there; nothing: there is none of that name.
std::optional<std::string_view> parameter_of(std::string_view uri, std::string_view key);

// A device as mount tables and messages know it: a path becomes absolute, and so do paths in the name of an export.
std::string absolute_name(const std::string& name);

}  // namespace varve::remote

// The name of a Ceph image: "rbd:pool/[namespace/]image[@snapshot][:setting=value]...", as qemu and the rbd command write it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace varve::remote {

struct RbdName {
  std::string pool;
  std::string space;  // namespace; mostly empty
  std::string image;
  std::string snapshot;
  std::string conf;  // path of a ceph.conf; empty: where Ceph looks for it
  std::string id;    // of the user, without "client."; empty: Ceph's own choice
  std::vector<std::pair<std::string, std::string>> settings;  // of Ceph's configuration: keyring, mon_host, ...
};

// A backslash takes the meaning from the character behind it: "mon_host=[\:\:1]". Errc::invalid says what is wrong.
Result<RbdName> parse_rbd_name(const std::string& name);

}  // namespace varve::remote

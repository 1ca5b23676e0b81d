// What a user asks to be changed in the snapshots (snapshots.h).
#pragma once

#include <cstdint>
#include <string>

namespace varve::snapshots {

struct SnapshotChange {
  enum class Kind : std::uint8_t { create, rename, remove };  // an automatic one that is renamed is so no more
  Kind kind = Kind::create;
  std::string name;
  std::string new_name;  // rename
};

}  // namespace varve::snapshots

// What mkfs made: one list of facts, shown as text or as JSON.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "format/superblock.h"

namespace varve::mkfs {

struct Fact {
  const char* key;    // in JSON
  const char* label;  // in text
  std::variant<std::string, std::uint64_t, bool> value;
  bool is_size = false;  // bytes, which the text shows with a unit as well
};

struct Report {
  bool dry_run = false;
  std::vector<Fact> facts;
};

Report report_of(const format::Superblock& super, const std::string& path, bool dry_run);
std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace varve::mkfs

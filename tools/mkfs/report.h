// What mkfs made: one list of facts, shown as text or as JSON.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "format/superblock.h"
#include "mkfs/trial.h"

namespace varve::mkfs {

struct Fact {
  const char* key;    // in JSON; null: not there
  const char* label;  // in text; null: not there
  std::variant<std::string, std::uint64_t, bool> value;
  bool is_size = false;  // bytes, which the text shows with a unit as well
  std::string note = {};  // behind it in the text
};

struct Report {
  bool dry_run = false;
  std::vector<Fact> facts;
};

Report report_of(const format::Superblock& super, const std::string& path, bool dry_run);
// What a trial has found, and in what time.
void add_findings(Report& report, const Findings& findings);
std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace varve::mkfs

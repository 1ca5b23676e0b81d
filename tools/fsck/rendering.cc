#include "fsck/rendering.h"

#include <nlohmann/json.hpp>

namespace varve::fsck {

namespace {

struct Number {
  const char* key;
  const char* label;
  std::uint64_t value;
};

std::vector<Number> numbers_of(const check::Statistics& s) {
  return {{"inodes", "inodes", s.inodes},
          {"directories", "directories", s.directories},
          {"files", "files", s.files},
          {"symlinks", "symlinks", s.symlinks},
          {"entries", "directory entries", s.entries},
          {"orphans", "unlinked but open", s.orphans},
          {"extents", "extents", s.extents},
          {"data_blocks", "data blocks", s.data_blocks},
          {"unwritten_blocks", "unwritten blocks", s.unwritten_blocks},
          {"node_blocks", "metadata blocks", s.node_blocks},
          {"verified_blocks", "data blocks verified", s.verified_blocks}};
}

const char* name_of(check::Severity severity) {
  switch (severity) {
    case check::Severity::note: return "note";
    case check::Severity::warning: return "warning";
    case check::Severity::error: return "error";
  }
  return "";
}

const char* verdict_of(const check::Report& report) {
  if (report.errors() > 0) return "damaged";
  return report.needs_recovery ? "needs recovery" : "clean";
}

nlohmann::ordered_json problem_json(const check::Problem& problem) {
  nlohmann::ordered_json json;
  json["code"] = static_cast<unsigned>(problem.code);
  json["name"] = check::name_of(problem.code);
  json["severity"] = name_of(check::severity_of(problem.code));
  if (problem.where.address) json["block"] = problem.where.address.v;
  if (problem.where.ino) json["inode"] = problem.where.ino.v;
  json["text"] = check::text_of(problem.code);
  json["detail"] = problem.detail;
  return json;
}

std::string verdict_lines(const Findings& f) {
  const check::Report& report = f.report;
  if (report.quick) return fmt::format("{}: clean, not checked further\n", f.device);
  if (report.errors() > 0) {
    std::string text = fmt::format("{}: {} errors found, nothing was changed\n", f.device, report.errors());
    if (f.repair_wanted) text += "Repairs are not possible yet: mount it read-only and copy what is needed.\n";
    return text;
  }
  if (report.needs_recovery)
    return fmt::format("{}: no errors in the checkpoint; the log will be replayed by the next mount\n", f.device);
  return fmt::format("{}: no errors\n", f.device);
}

}  // namespace

std::string to_text(const Findings& f) {
  std::string text;
  for (const check::Problem& problem : f.report.problems.kept()) text += to_line(problem) + "\n";
  for (const auto& [code, count] : f.report.problems.counts())
    if (count > check::ProblemLog::kMostPerCode)
      text += fmt::format("… and {} more: {}\n", count - check::ProblemLog::kMostPerCode, check::text_of(code));
  if (!f.report.quick)
    for (const Number& number : numbers_of(f.report.statistics))
      if (number.value > 0) text += fmt::format("{:>12} {}\n", number.value, number.label);
  return text + verdict_lines(f);
}

std::string to_json(const Findings& f) {
  const check::Report& report = f.report;
  nlohmann::ordered_json json;
  json["device"] = f.device;
  json["label"] = report.super.label;
  json["format_version"] = report.super.version;
  json["checkpoint"] = report.super.serial.v;
  json["verdict"] = verdict_of(report);
  json["unmounted_cleanly"] = report.super.clean;
  json["needs_recovery"] = report.needs_recovery;
  json["quick"] = report.quick;
  json["data_verified"] = f.data_verified;
  json["errors"] = report.errors();
  json["warnings"] = report.warnings();
  for (const Number& number : numbers_of(report.statistics)) json["statistics"][number.key] = number.value;
  json["problems"] = nlohmann::ordered_json::array();
  for (const check::Problem& problem : report.problems.kept()) json["problems"].push_back(problem_json(problem));
  json["counts"] = nlohmann::ordered_json::object();
  for (const auto& [code, count] : report.problems.counts()) json["counts"][check::name_of(code)] = count;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace varve::fsck

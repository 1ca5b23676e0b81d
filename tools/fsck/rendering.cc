#include "fsck/rendering.h"

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "format/image_mark.h"
#include "fsck/consequences.h"
#include "fsck/names.h"

namespace varve::fsck {

namespace {

struct Number {
  const char* key;
  const char* label;
  const char* one;
  std::uint64_t value;
};

std::vector<Number> numbers_of(const check::Statistics& s) {
  return {{"inodes", "inodes", "inode", s.inodes},
          {"directories", "directories", "directory", s.directories},
          {"files", "files", "file", s.files},
          {"symlinks", "symlinks", "symlink", s.symlinks},
          {"entries", "directory entries", "directory entry", s.entries},
          {"orphans", "unlinked but open", "unlinked but open", s.orphans},
          {"extents", "extents", "extent", s.extents},
          {"data_blocks", "data blocks", "data block", s.data_blocks},
          {"unwritten_blocks", "unwritten blocks", "unwritten block", s.unwritten_blocks},
          {"node_blocks", "metadata blocks", "metadata block", s.node_blocks},
          {"verified_blocks", "data blocks verified", "data block verified", s.verified_blocks}};
}

const char* name_of(check::Severity severity) {
  switch (severity) {
    case check::Severity::note: return "note";
    case check::Severity::warning: return "warning";
    case check::Severity::error: return "error";
  }
  return "";
}

const char* verdict_of(const Findings& f) {
  if (!f.outcome.ended.ok()) return "damaged";
  if (f.outcome.before.errors() == 0) return f.outcome.before.needs_recovery ? "needs recovery" : "clean";
  if (!f.in_place) return "damaged";
  return f.outcome.errors_left() > 0 ? "damaged" : "repaired";
}

bool is_done(const Findings& f, check::Code code) {
  return f.in_place && !f.outcome.actions.empty() && f.outcome.after.problems.count(code) == 0;
}

Json problem_json(const Findings& f, const check::Problem& problem) {
  Json json;
  json["code"] = static_cast<unsigned>(problem.code);
  json["name"] = check::name_of(problem.code);
  json["severity"] = name_of(check::severity_of(problem.code));
  if (problem.where.address) json["block"] = problem.where.address.v;
  if (problem.where.ino) json["inode"] = problem.where.ino.v;
  if (const auto name = f.names.find(problem.where.ino); name != f.names.end()) json["path"] = name->second;
  json["text"] = check::text_of(problem.code);
  json["detail"] = check::detail_of(problem);
  if (!problem.snapshot.empty()) json["snapshot"] = problem.snapshot;
  if (problem.blocks > 1) json["blocks"] = problem.blocks;
  json["repair"] = repair::remedy_of(problem.code);
  json["done"] = is_done(f, problem.code);
  return json;
}

Json action_json(const Findings& f, const repair::Action& action) {
  Json json;
  json["code"] = static_cast<unsigned>(action.code);
  json["name"] = repair::name_of(action.code);
  json["safe"] = repair::safety_of(action.code) == repair::Safety::safe;
  if (action.ino) json["inode"] = action.ino.v;
  if (action.last_ino) json["last_inode"] = action.last_ino.v;
  if (const auto name = f.names.find(action.ino); name != f.names.end()) json["path"] = name->second;
  if (!action.entry.empty()) json["entry"] = action.entry;
  json["text"] = repair::text_of(action.code);
  json["detail"] = action.detail;
  return json;
}

std::string problem_lines(const Findings& f, const check::ProblemLog& problems) {
  std::string text;
  for (const check::Problem& problem : problems.kept()) {
    const auto name = f.names.find(problem.where.ino);
    text += to_line(problem, name == f.names.end() ? "" : printable(name->second)) + "\n";
  }
  for (const auto& [code, count] : problems.counts())
    if (const std::uint64_t more = problems.not_kept(code))
      text += fmt::format("… and {} more of {}: {}\n", more, count, check::text_of(code));
  return text;
}

std::string action_lines(const Findings& f) {
  const repair::ActionLog& actions = f.outcome.actions;
  if (actions.empty()) return "";
  std::string text = f.in_place ? "Done:\n" : "A repair would do:\n";
  for (const repair::Action& action : actions.kept()) {
    const bool one = !action.last_ino || action.last_ino == action.ino;
    const auto name = one ? f.names.find(action.ino) : f.names.end();
    text += "  " + printable(to_line(action, name == f.names.end() ? "" : name->second)) + "\n";
  }
  for (const auto& [code, count] : actions.counts())
    if (count > repair::ActionLog::kMostPerCode)
      text += fmt::format("  … and {} more: {}\n", count - repair::ActionLog::kMostPerCode, repair::text_of(code));
  return text;
}

bool is_data(check::Code code) { return code == check::Code::data_damaged || code == check::Code::data_unreadable; }

// What is damaged of a snapshot goes away with it.
std::string snapshot_lines(const check::ProblemLog& problems) {
  std::set<std::string> snapshots;
  for (const check::Problem& problem : problems.kept())
    if (!problem.snapshot.empty()) snapshots.insert(problem.snapshot);
  std::string text;
  for (const std::string& name : snapshots)
    text += fmt::format("What is damaged of snapshot {0} goes away with it: mount, then varve snapshot delete DIRECTORY {0}\n",
                        printable(name));
  return text;
}

// What a repair cannot bring back, and what its user can do.
std::string left_lines(const Findings& f, const check::ProblemLog& problems, std::uint64_t left) {
  const std::uint64_t data = problems.count(check::Code::data_damaged) + problems.count(check::Code::data_unreadable);
  std::string text = fmt::format("A repair {} {} of them.\n", f.in_place ? "has left" : "would leave", left);
  const bool in_use = std::ranges::any_of(problems.kept(), [](const check::Problem& p) { return is_data(p.code) && p.snapshot.empty(); });
  if (data > 0) text += counted(data, "block of files is", "blocks of files are") + " damaged: all else can be read.\n";
  if (in_use) text += "Restore the files that are named above from a backup, or write them anew.\n";
  text += snapshot_lines(problems);
  if (data + problems.count(check::Code::snapshot_damaged) < left)
    text += fmt::format("varve salvage {} DIRECTORY copies out what can be read.\n", f.device);
  return text;
}

std::string verdict_lines(const Findings& f) {
  const check::Report& before = f.outcome.before;
  const std::uint64_t left = f.outcome.errors_left();
  if (before.quick) return fmt::format("{}: clean, not checked further\n", f.device);
  if (!f.outcome.ended.ok())
    return fmt::format("{}: {} found; the repair {} early: run it again when what stopped it is gone\n", f.device,
                       counted(before.errors(), "error"), f.in_place ? "has ended" : "would end");
  if (f.in_place && !f.outcome.actions.empty()) {
    if (left > 0)
      return fmt::format("{}: {} found, {} left\n", f.device, counted(before.errors(), "error"), left) +
             left_lines(f, f.outcome.after.problems, left);
    if (before.errors() > 0)
      return fmt::format("{}: {} found and repaired\n", f.device, counted(before.errors(), "error"));
    const bool replayed = f.outcome.actions.count(repair::ActionCode::log_replayed) > 0;
    return fmt::format("{}: no errors; {}\n", f.device, replayed ? "the log was replayed" : "warnings were seen to");
  }
  if (before.errors() == 0 && !f.outcome.actions.empty())
    return fmt::format("{}: no errors; the log will be replayed by the next mount\n", f.device);
  if (before.errors() == 0) return fmt::format("{}: no errors\n", f.device);
  std::string text = fmt::format("{}: {} found, nothing was changed\n", f.device, counted(before.errors(), "error"));
  if (left < before.errors())
    text += fmt::format("fsck.varve -y {} repairs {} of them (--undo FILE makes that revocable).\n", f.device, before.errors() - left);
  if (left > 0) text += left_lines(f, f.outcome.after.problems, left);
  if (f.preening && !f.outcome.actions.is_safe())
    text += "A repair would lose or move something: look at the list above, then run fsck.varve -y.\n";
  return text;
}

}  // namespace

std::string to_text(const Findings& f) {
  const check::Report& before = f.outcome.before;
  std::string text = problem_lines(f, before.problems);
  const bool log_only = before.errors() == 0 && before.warnings() == 0;
  if (!log_only) text += action_lines(f);
  if (f.in_place && f.outcome.errors_left() > 0) text += "Left:\n" + problem_lines(f, f.outcome.after.problems);
  const check::Report& shown = f.in_place ? f.outcome.after : before;
  if (!shown.quick)
    for (const Number& number : numbers_of(shown.statistics))
      if (number.value > 0) text += fmt::format("{:>12} {}\n", number.value, number.value == 1 ? number.one : number.label);
  if (format::is_image(shown.super))
    text += fmt::format("An image of metadata, as `varve image` makes them{}: data of files is not there, and is not verified.\n",
                        format::has_other_names(shown.super) ? ", with other names" : "");
  if (f.ended_errors) text += "All data was read, and nothing is damaged: the errors of before are over.\n";
  return text + verdict_lines(f) + consequence_lines(f);
}

std::string to_json(const Findings& f) {
  const check::Report& before = f.outcome.before;
  Json json;
  json["device"] = f.device;
  json["label"] = before.super.label;
  json["format_version"] = before.super.version;
  json["checkpoint"] = before.super.serial.v;
  json["verdict"] = verdict_of(f);
  json["unmounted_cleanly"] = before.super.clean;
  json["needs_recovery"] = before.needs_recovery;
  json["quick"] = before.quick;
  json["data_verified"] = f.data_verified;
  json["errors"] = before.errors();
  json["warnings"] = before.warnings();
  json["in_place"] = f.in_place;
  json["errors_left"] = f.outcome.errors_left();
  if (!f.outcome.ended.ok()) json["ended_early"] = f.outcome.ended.error().message();
  json["former_errors_are_over"] = f.ended_errors;
  for (const Number& number : numbers_of(before.statistics)) json["statistics"][number.key] = number.value;
  json["problems"] = Json::array();
  for (const check::Problem& problem : before.problems.kept()) json["problems"].push_back(problem_json(f, problem));
  json["counts"] = Json::object();
  for (const auto& [code, count] : before.problems.counts()) json["counts"][check::name_of(code)] = count;
  json["actions"] = Json::array();
  for (const repair::Action& action : f.outcome.actions.kept()) json["actions"].push_back(action_json(f, action));
  json["left"] = Json::object();
  for (const auto& [code, count] : f.outcome.after.problems.counts()) json["left"][check::name_of(code)] = count;
  return json_text(json, 2) + "\n";
}

}  // namespace varve::fsck

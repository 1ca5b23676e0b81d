// varve salvage: repairs an image in memory, as far as that goes, and copies out what can be read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/counted.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/rescue/salvage_copy.h"
#include "varve/rescue/salvage_source.h"

namespace varve::tool {

namespace {

struct SalvageArguments {
  std::string source, target, snapshot;
  bool json = false;
};

struct Salvaged {
  repair::Outcome repair;
  std::string failure;  // of the repair
  std::string warning;  // of another machine that may write
  SalvageReport copy;
};

// Counts all that there may be to copy, as far as the trees tell.
std::uint64_t bytes_to_copy(fs::Filesystem& filesystem, const std::string& snapshot) {
  const fs::SnapshotState state = filesystem.snapshots();
  const auto found = std::ranges::find(state.snapshots, snapshot, &fs::SnapshotFacts::name);
  return (found == state.snapshots.end() ? state.data_blocks : found->data_blocks) << kBlockShift;
}

Result<SalvageReport> copy_out(fs::Filesystem& filesystem, const SalvageArguments& arguments, std::ostream& err) {
  ProgressMeter meter(err, !arguments.json);
  const std::uint64_t all = std::max<std::uint64_t>(bytes_to_copy(filesystem, arguments.snapshot), 1);
  const Interruptible interruptible;
  return salvage_copy(filesystem, arguments.target, [&](const SalvageReport& copied) -> Status {
    if (Interruptible::asked())
      return Error(Errc::interrupted, fmt::format("interrupted: {} with {} were copied to {}. To begin anew, remove them or give another "
                                                  "directory", counted(copied.files, "file"), size_text(copied.bytes), arguments.target));
    const auto text = [&] {
      return fmt::format("{} with {} of about {} copied", counted(copied.files, "file"), size_text(copied.bytes), size_text(all));
    };
    meter.show(text, ProgressMeter::share_of(copied.bytes, all));
    return {};
  });
}

Result<Salvaged> salvage(const SalvageArguments& arguments, std::ostream& err) {
  const auto source = TRY(SalvageSource::open(arguments.source, arguments.snapshot));
  Salvaged result{source->repaired(), source->failure(), {}, {}};
  result.copy = TRY(copy_out(source->filesystem(), arguments, err));
  result.warning = source->warning();
  return result;
}

bool has_losses(const Salvaged& s) { return s.copy.loss_count > 0 || !s.repair.actions.is_safe(); }

void print_text(const Salvaged& s, const SalvageArguments& arguments, std::ostream& out) {
  for (const repair::Action& action : s.repair.actions.kept()) {
    using repair::ActionCode;  // these two are told by a line about all such inodes
    const bool is_told = action.code == ActionCode::inode_older || action.code == ActionCode::attributes_older;
    if (repair::safety_of(action.code) == repair::Safety::lossy && !is_told) out << printable(to_line(action)) << "\n";
  }
  if (!s.failure.empty()) out << fmt::format("It could not be repaired, this is what it shows as it is: {}\n", s.failure);
  for (const SalvageLoss& loss : s.copy.losses) out << fmt::format("{}: {}\n", printable(loss.path), printable(loss.what));
  out << fmt::format("{}, {}, {}, {} with {} copied to {}\n", counted(s.copy.files, "file"),
                     counted(s.copy.directories, "directory", "directories"), counted(s.copy.symlinks, "symlink"),
                     counted(s.copy.others, "other"), size_text(s.copy.bytes), arguments.target);
  if (has_losses(s))
    out << fmt::format("Not everything could be had: {} lost something, {} could not be copied, {}.\n",
                       counted(s.repair.actions.losses(), "repair"), counted(s.copy.loss_count, "thing"),
                       counted(s.copy.damaged_blocks, "block is a hole", "blocks are holes"));
}

void print_json(const Salvaged& s, std::ostream& out) {
  std::uint64_t repairs = 0;
  for (const auto& [code, count] : s.repair.actions.counts()) repairs += count;
  Json json;
  json["files"] = s.copy.files;
  json["directories"] = s.copy.directories;
  json["symlinks"] = s.copy.symlinks;
  json["others"] = s.copy.others;
  json["bytes"] = s.copy.bytes;
  json["damaged_blocks"] = s.copy.damaged_blocks;
  json["errors"] = s.repair.before.errors();
  if (!s.failure.empty()) json["not_repaired"] = s.failure;
  json["repair_count"] = repairs;
  json["lossy_repair_count"] = s.repair.actions.losses();
  json["loss_count"] = s.copy.loss_count;
  json["repairs"] = Json::array();
  for (const repair::Action& action : s.repair.actions.kept()) {
    Json one{{"code", static_cast<unsigned>(action.code)}, {"name", repair::name_of(action.code)}};
    if (action.ino) one["inode"] = action.ino.v;
    if (action.last_ino) one["last_inode"] = action.last_ino.v;
    one["detail"] = action.detail;
    json["repairs"].push_back(one);
  }
  json["losses"] = Json::array();
  for (const SalvageLoss& loss : s.copy.losses) json["losses"].push_back({{"path", loss.path}, {"what", loss.what}});
  out << json_text(json, 2) << "\n";
}

}  // namespace

void declare_salvage(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<SalvageArguments>();
  CLI::App* command = app.add_subcommand("salvage", "Copy out what can still be read of a damaged filesystem");
  command->add_option("source", arguments->source, "Block device or image file; it is only read")->required();
  command->add_option("directory", arguments->target, "Where to; created, or empty")->required();
  command->add_option("--snapshot", arguments->snapshot, "The files of this snapshot instead of the newest");
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] {
    chosen = [arguments](IoLayer& io) -> Status {
      const Salvaged salvaged = TRY(salvage(*arguments, io.err));
      if (!salvaged.warning.empty()) io.err << fmt::format("varve: warning: {}: {}\n", arguments->source, salvaged.warning);
      io.answered = true;
      if (arguments->json) print_json(salvaged, io.out);
      else print_text(salvaged, *arguments, io.out);
      if (!has_losses(salvaged) && salvaged.failure.empty()) return {};
      return Error(Errc::io, fmt::format("{}: not everything could be had", arguments->source));
    };
  });
}

}  // namespace varve::tool

// `varve snapshot`: states of a filesystem that stay, of one that is mounted or not.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "control/place.h"
#include "control/status_fields.h"
#include "format/snapshot.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/diff_command.h"
#include "varve/snapshots/restore_command.h"
#include "varve/snapshots/snapshot_choice.h"
#include "varve/volume/kernel_wait.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

using snapshots::SnapshotChange;

struct SnapshotArguments {
  std::string path, name, new_name;
  std::vector<std::string> names;
  bool json = false, automatic = false;
  bool is_named = false;  // also with nothing, as by a variable of a script that has no value
};

constexpr unsigned kMostInASecond = 1000;

// All of them, even if some fail. Of a mount many at a time, since one checkpoint carries out all that is asked for when it begins.
Status change_all(Volume& volume, const std::vector<SnapshotChange>& changes) {
  const std::size_t at_a_time = volume.is_mounted() ? 64 : 1;
  std::vector<Status> done(changes.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(at_a_time, changes.size()); ++i)
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < changes.size(); at = next++) done[at] = volume.change_snapshot(changes[at]);
      });
  }
  std::string all;
  const Status* first = nullptr;
  for (const Status& one : done) {
    if (one.ok() || (first && !volume.is_mounted())) continue;
    all += (first ? "\n  " : "") + one.error().message();
    if (!first) first = &one;
  }
  return first ? Status(Error(first->error().code(), all)) : Status();
}

Result<Volume> open_volume(const std::string& path, Volume::Use use) { return Volume::open(path, "varve snapshot", use); }

// Would it go well? Of a filesystem that is not mounted, which is not opened for writing only to be told no.
Status foresee(const std::string& path, const std::vector<SnapshotChange>& changes) {
  Volume image = TRY(Volume::of_image(path, "varve snapshot", Volume::Use::looks));
  const auto state = image.snapshots();
  TRY(image.close());
  if (!state.ok()) return state.error();
  std::set<std::string> names;
  for (const Json& one : (*state)["snapshots"]) names.insert(one.value("name", ""));
  for (const SnapshotChange& change : changes) {
    const bool makes = change.kind == SnapshotChange::Kind::create, renames = change.kind == SnapshotChange::Kind::rename;
    const std::string& fresh = renames ? change.new_name : change.name;
    if (makes || (renames && fresh != change.name)) TRY(format::check_snapshot_name(fresh));
    if (!makes && names.erase(change.name) == 0)
      return Error(Errc::not_found, fmt::format("{}: there is no snapshot '{}'", path, change.name));
    if ((makes || renames) && !names.insert(fresh).second)
      return Error(Errc::exists, fmt::format("{}: there is a snapshot '{}' already", path, fresh));
  }
  return {};
}

Status change(const std::string& path, const std::vector<SnapshotChange>& changes, bool json, IoLayer& io) {
  for (const SnapshotChange& one : changes)  // of tools the daemon takes them
    if (one.kind == SnapshotChange::Kind::create && format::is_passing_name(one.name)) TRY(format::check_snapshot_name(one.name));
  const control::Place place = TRY(control::find_place(path));
  if (!place.is_mounted() && !place.is_dead) TRY(foresee(place.source, changes));
  Volume volume = TRY(Volume::open(place, "varve snapshot", Volume::Use::changes));
  std::optional<KernelWait> wait;
  if (volume.is_mounted())
    wait.emplace(io, KernelWait::Words{"waiting for a checkpoint", std::string(kMountGoesOn) + "; varve snapshot list shows it", json});
  Status done = change_all(volume, changes);
  wait.reset();
  const Status closed = volume.close();
  TRY(std::move(done));
  return closed;
}

// The time, and for the second one of it a number.
Result<std::string> create_unnamed(const std::string& path, bool json, IoLayer& io) {
  const std::string time = local_time(Clock::system().now().seconds, "%Y-%m-%d_%H:%M:%S");
  for (unsigned number = 1;; ++number) {
    std::string name = number == 1 ? time : fmt::format("{}-{}", time, number);
    const Status made = change(path, {{SnapshotChange::Kind::create, name, {}}}, json, io);
    if (made.ok()) return name;
    if (!made.fails_with(Errc::exists) || number == kMostInASecond) return made.error();
  }
}

Status check_is_no_slip(bool is_named, const std::string& name) {
  if (!is_named || !name.empty()) return {};
  return Error(Errc::invalid, "the name of the snapshot is empty: leave it out, and it gets the time, or give one");
}

Status create(const SnapshotArguments& arguments, IoLayer& io) {
  TRY(check_is_no_slip(arguments.is_named, arguments.name));
  std::string name = arguments.name;
  if (arguments.is_named) TRY(change(arguments.path, {{SnapshotChange::Kind::create, name, {}}}, arguments.json, io));
  else name = TRY(create_unnamed(arguments.path, arguments.json, io));
  if (arguments.json) io.out << json_text(Json{{"name", name}}, 2) << std::endl;
  else if (!arguments.is_named) io.out << name << std::endl;
  return {};
}

Status rename(const SnapshotArguments& arguments, IoLayer& io) {
  return change(arguments.path, {{SnapshotChange::Kind::rename, arguments.name, arguments.new_name}}, arguments.json, io);
}

Status remove(const SnapshotArguments& arguments, IoLayer& io) {
  std::vector<SnapshotChange> changes;
  for (const std::string& name : arguments.names) changes.push_back({SnapshotChange::Kind::remove, name, {}});
  TRY(change(arguments.path, changes, arguments.json, io));
  if (arguments.json) io.out << json_text(Json{{"deleted", arguments.names}}, 2) << std::endl;
  return {};
}

// One that somebody wants to stay: it gets a name, and is automatic no more.
Status keep(SnapshotArguments arguments, IoLayer& io) {
  TRY(check_is_no_slip(arguments.is_named, arguments.new_name));
  Json state;
  {
    Volume volume = TRY(open_volume(arguments.path, Volume::Use::looks));
    state = TRY(volume.snapshots());
    TRY(volume.close());
  }
  const ChosenSnapshot chosen = TRY(choose_automatic(state, arguments.name, Clock::system().now().seconds));
  if (!arguments.is_named) arguments.new_name = local_time(chosen.made, "%Y-%m-%d_%H:%M:%S");
  TRY(change(arguments.path, {{SnapshotChange::Kind::rename, chosen.name, arguments.new_name}}, arguments.json, io));
  if (arguments.is_named) io.out << fmt::format("{} is as of {}", arguments.new_name, local_time(chosen.made)) << std::endl;
  else io.out << arguments.new_name << std::endl;
  return {};
}

// All that were made without being asked for, in a line.
std::string automatic_text(const Json& state) {
  std::int64_t first = 0, last = 0;
  std::size_t count = 0;
  for (const Json& one : state["snapshots"]) {
    if (!one.value("automatic", false)) continue;
    last = one.value("made", std::int64_t{0});
    if (count++ == 0) first = last;
  }
  if (count == 0) return "";
  return fmt::format("Automatic ones: {}, from {} to {}. They hold {} that goes when it is needed; --auto shows them.\n", count,
                     local_time(first), local_time(last), size_text(state.value("automatic_bytes", std::uint64_t{0})));
}

// Where it is mounted by itself, if it is.
std::string mounted_text(const Json& one, std::string_view before, std::string_view after) {
  std::string places;
  for (const Json& place : one.value("mounted_at", Json::array()))
    places += (places.empty() ? "" : ", ") + (place.is_string() ? place.get<std::string>() : "");
  return places.empty() ? "" : fmt::format("{}{}{}", before, places, after);
}

// Those that were asked for, or the others.
std::string list_text(const Json& state, bool automatic) {
  Json list = Json::array();
  for (const Json& one : state["snapshots"])
    if (one.value("automatic", false) == automatic) list.push_back(one);
  std::string text;
  const bool has_others = state["snapshots"].size() > list.size();
  if (list.empty()) text = automatic ? "No automatic snapshots.\n" : has_others ? "No snapshots but automatic ones.\n" : "No snapshots.\n";
  else text = fmt::format("{:<20} {:>10} {:>12} {:>12}  {}\n", "made", "inodes", "data", "alone", "name");
  for (const Json& one : list)
    text += fmt::format("{:<20} {:>10} {:>12} {:>12}  {}{}\n", local_time(one.value("made", std::int64_t{0}), "%Y-%m-%d %H:%M:%S"),
                        one.value("inodes", std::uint64_t{0}), size_text(one.value("data_bytes", std::uint64_t{0})),
                        size_text(one.value("alone_bytes", std::uint64_t{0})), one.value("name", ""),
                        mounted_text(one, "  (mounted at ", ")"));
  if (!automatic) text += automatic_text(state);
  const auto held = state.value("held_bytes", std::uint64_t{0});
  if (held) text += fmt::format("Together they hold {} that nothing else needs, beside {} of data in the filesystem in use.\n",
                                size_text(held), size_text(state.value("data_bytes", std::uint64_t{0})));
  if (state.value("giving_back", false)) text += "What deleted ones held is being given back.\n";
  if (state.contains("damage")) text += fmt::format("Perhaps these are not all: {}.\n", state.value("damage", ""));
  return text;
}

Status list(const SnapshotArguments& arguments, IoLayer& io) {
  Volume volume = TRY(open_volume(arguments.path, Volume::Use::looks));
  auto state = volume.snapshots();
  if (const auto status = volume.status(); state.ok() && status.ok())
    if (const std::string damage = control::words_of(*status, "snapshots.damage"); !damage.empty()) (*state)["damage"] = damage;
  const Status closed = volume.close();
  if (!state.ok()) return state.error();
  io.out << (arguments.json ? json_text(*state, 2) + "\n" : list_text(*state, arguments.automatic)) << std::flush;
  return closed;
}

std::string show_text(const Json& one) {
  const auto number = [&one](const char* name) { return one.value(name, std::uint64_t{0}); };
  return fmt::format("{:<10} {}\n{:<10} {}\n{:<10} {}\n{:<10} {}\n{:<10} {}\n{:<10} {}\n", "Name", one.value("name", ""), "Made",
                     local_time(one.value("made", std::int64_t{0}), "%Y-%m-%d %H:%M:%S"), "Checkpoint", number("serial"), "Inodes",
                     number("inodes"), "Data", size_text(number("data_bytes")), "Alone", size_text(number("alone_bytes"))) +
         mounted_text(one, fmt::format("{:<10} ", "Mounted"), "\n");
}

Status show(const SnapshotArguments& arguments, IoLayer& io) {
  Volume volume = TRY(open_volume(arguments.path, Volume::Use::looks));
  const auto state = volume.snapshots();
  const Status closed = volume.close();
  if (!state.ok()) return state.error();
  const Json& all = (*state)["snapshots"];
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(all, [&](const Json& one) { return one.value("name", "") == name; });
  };
  auto found = named(arguments.name);
  if (found == all.end()) {
    const auto chosen = choose_snapshot(*state, arguments.name, Clock::system().now().seconds);
    if (!chosen.ok()) return Error(chosen.error().code(), fmt::format("{}: {}", arguments.path, chosen.error().message()));
    found = named(chosen->name);
  }
  io.out << (arguments.json ? json_text(*found, 2) + "\n" : show_text(*found)) << std::flush;
  return closed;
}

}  // namespace

void declare_snapshot(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<SnapshotArguments>();
  CLI::App* command =
      app.add_subcommand("snapshot", "Keep states of a filesystem: create, list, show, keep, rename, delete, diff, restore");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* one = command->add_subcommand(name, help);
    one->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
    return one;
  };
  CLI::App* making = add("create", "Keep the state of this moment, with all that has been written");
  const CLI::Option* const given = making->add_option("name", arguments->name, "Without: the time");
  making->add_flag("--json", arguments->json, "For programs");
  making->callback([arguments, given, &chosen] {
    arguments->is_named = given->count() > 0;
    chosen = [arguments](IoLayer& io) { return create(*arguments, io); };
  });

  CLI::App* listing = add("list", "Which there are, oldest first, and what each holds alone");
  listing->add_flag("--json", arguments->json, "For programs: all of them");
  listing->add_flag("--auto", arguments->automatic, "Those that come and go by themselves (mount option protect=)");
  listing->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return list(*arguments, io); }; });

  CLI::App* showing = add("show", "What one has");
  showing->add_option("which", arguments->name, "Its name, how long ago (10m), or a time (14:30): the last one by then")->required();
  showing->add_flag("--json", arguments->json, "For programs");
  showing->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return show(*arguments, io); }; });

  CLI::App* keeping = add("keep", "Make an automatic one stay");
  keeping->add_option("which", arguments->name, "Its name, how long ago (10m), or a time (14:30): the last one by then")->required();
  const CLI::Option* const kept_name = keeping->add_option("name", arguments->new_name, "Without: its time");
  keeping->callback([arguments, kept_name, &chosen] {
    arguments->is_named = kept_name->count() > 0;
    chosen = [arguments](IoLayer& io) { return keep(*arguments, io); };
  });

  CLI::App* naming = add("rename", "Give one another name");
  naming->add_option("name", arguments->name)->required();
  naming->add_option("new_name", arguments->new_name)->required();
  naming->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return rename(*arguments, io); }; });

  CLI::App* deleting = add("delete", "Its space comes back in the background");
  deleting->add_option("names", arguments->names)->required();
  deleting->add_flag("--json", arguments->json, "For programs");
  deleting->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return remove(*arguments, io); }; });
  add_diff(*command, chosen);
  add_restore(*command, chosen);
  command->footer("A snapshot is read in DIR/.varve-snapshots/NAME, or by mounting it: varve mount IMAGE DIR -o snapshot=NAME\n");
}

}  // namespace varve::tool

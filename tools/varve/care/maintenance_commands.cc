#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>

#include "base/duration.h"
#include "base/json_text.h"
#include "cleaner/victim_rule.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/steps.h"
#include "varve/volume/kernel_wait.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct Words {
  std::string directory;
  std::vector<std::string> settings;
  bool json = false;
};

CLI::App* declare(CLI::App& app, Action& chosen, const char* name, const char* help, const std::shared_ptr<Words>& words,
                  Status (*action)(Volume&, const Words&, IoLayer&)) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("directory", words->directory, "Where it is mounted")->required();
  command->add_flag("--json", words->json, "For programs");
  command->callback([=, &chosen] {
    chosen = [=](IoLayer& io) -> Status {
      const std::string mounted = TRY(control::find_mounted(words->directory));
      Volume client = TRY(Volume::of_mount(mounted));
      return action(client, *words, io);
    };
  });
  return command;
}

Status checkpoint(Volume& client, const Words& words, IoLayer& io) {
  {
    const KernelWait wait(io, {"making a checkpoint", kMountGoesOn, words.json});
    TRY(client.checkpoint());
  }
  if (words.json) {
    const auto status = TRY(client.status());
    io.out << json_text(Json{{"checkpoint", status["log"].value("serial", std::uint64_t{0})}}, 2) << "\n";
  }
  return {};
}

// One piece after the other, so that it can be seen how far it has come, and ended. A segment belongs to the piece that it begins in.
Result<std::uint64_t> trim_in_pieces(Volume& client, const Json& space, const Words& words, IoLayer& io) {
  constexpr std::uint64_t kLeastPiece = 64ULL << 20, kPieces = 200;
  const std::uint64_t all = space.value("device_blocks", std::uint64_t{0}) << kBlockShift;
  const std::uint64_t segment = space.value("segment_blocks", std::uint64_t{1}) << kBlockShift;
  const std::uint64_t piece = std::max(kLeastPiece, all / kPieces) >> kBlockShift << kBlockShift;
  std::uint64_t trimmed = 0;
  Steps steps(io, !words.json, "what was trimmed stays so; the rest is as it was");
  for (std::uint64_t at = 0; at < all; at += piece) {
    const auto text = [&] { return fmt::format("{} of {} looked through, {} trimmed", size_text(at), size_text(all), size_text(trimmed)); };
    TRY(steps.next(text, ProgressMeter::share_of(at, all)));
    trimmed += TRY(client.trim(at, piece + segment - kBlockSize));
  }
  return trimmed;
}

Status trim(Volume& client, const Words& words, IoLayer& io) {
  const Json status = TRY(client.status());  // other filesystems know this ioctl, too
  const std::uint64_t bytes = TRY(trim_in_pieces(client, status["space"], words, io));
  if (words.json)
    io.out << json_text(Json{{"trimmed_bytes", bytes}}, 2) << "\n";
  else
    io.out << fmt::format("{}: {} trimmed ({} bytes)\n", words.directory, size_text(bytes), bytes);
  return {};
}

// A mount begins with what its option of the same name says.
bool is_mount_option(const std::string& setting) {
  constexpr std::array<std::string_view, 5> kOptions = {"strategy", "policy", "placement", "protect", "protect_every"};
  return std::ranges::find(kOptions, std::string_view(setting).substr(0, setting.find('='))) != kOptions.end();
}

Status tune(Volume& client, const Words& words, IoLayer& io) {
  for (const std::string& setting : words.settings) TRY(client.tune(setting));
  if (!words.settings.empty() && !words.json) {
    if (std::ranges::any_of(words.settings, is_mount_option))
      io.out << "Until it is unmounted. The mount option (-o, fstab) of the same name makes it last.\n";
    return {};
  }
  const auto status = TRY(client.status());
  Json present;
  for (const auto& [setting, key] : {std::pair{"strategy", "strategy"}, {"policy", "victim_policy"}, {"placement", "placement"}})
    present[setting] = status["cleaner"].value(key, "");
  const Json& protection = status["protection"];
  const std::string plain = protection.value("on", false) ? varve::duration_text(protection.value("seconds", std::uint64_t{0})) : "off";
  present["protect"] = protection.value("protect", plain);  // a daemon of before has no rules
  present["protect_every"] = varve::duration_text(protection.value("every_seconds", std::uint64_t{30}));
  if (words.json)
    io.out << json_text(present, 2) << "\n";
  else
    for (const auto& [setting, value] : present.items()) io.out << fmt::format("{}={}\n", setting, value.get<std::string>());
  return {};
}

}  // namespace

void declare_checkpoint(CLI::App& app, Action& chosen) {
  declare(app, chosen, "checkpoint", "Bring the trees on the disk up to the present", std::make_shared<Words>(), checkpoint);
}

void declare_trim(CLI::App& app, Action& chosen) {
  declare(app, chosen, "trim", "Tell the device what is free", std::make_shared<Words>(), trim);
}

void declare_tune(CLI::App& app, Action& chosen) {
  auto words = std::make_shared<Words>();
  CLI::App* command = declare(app, chosen, "tune", "Change settings of a mounted filesystem", words, tune);
  command->add_option("settings", words->settings,
                      "strategy=…, policy=…, placement=…, protect=…, protect_every=…, as mount options; history=ROUNDS. "
                      "None: show the present ones");
  std::string footer = "Strategies:\n";
  for (const auto& [name, help] : cleaner::registry().strategies.names()) footer += fmt::format("  {:14} {}\n", name, help);
  footer += "Policies:\n";
  for (const auto& [name, help] : cleaner::victim_rules()) footer += fmt::format("  {:14} {}\n", name, help);
  footer += "Placements:\n";
  for (const auto& [name, help] : cleaner::registry().placements.names()) footer += fmt::format("  {:14} {}\n", name, help);
  command->footer(footer);
}

}  // namespace varve::tool

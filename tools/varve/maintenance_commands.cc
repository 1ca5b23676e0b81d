#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <ostream>

#include "cleaner/victim_rule.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/mount_client.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

void declare(CLI::App& app, Action& chosen, const char* name, const char* help,
             Status (*action)(MountClient&, const std::string&, IoLayer&)) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("directory", *directory, "Where it is mounted")->required();
  command->callback([=, &chosen] {
    chosen = [=](IoLayer& io) -> Status {
      const std::string mounted = TRY(fuse::find_mounted(*directory));
      MountClient client = TRY(MountClient::open(mounted));
      return action(client, *directory, io);
    };
  });
}

}  // namespace

void declare_checkpoint(CLI::App& app, Action& chosen) {
  declare(app, chosen, "checkpoint", "Bring the trees on the disk up to the present",
          [](MountClient& client, const std::string&, IoLayer&) { return client.checkpoint(); });
}

void declare_trim(CLI::App& app, Action& chosen) {
  declare(app, chosen, "trim", "Tell the device what is free",
          [](MountClient& client, const std::string& directory, IoLayer& io) -> Status {
            TRY(client.status());  // other filesystems know this ioctl, too
            const std::uint64_t bytes = TRY(client.trim());
            io.out << fmt::format("{}: {} trimmed ({} bytes)\n", directory, size_text(bytes), bytes);
            return {};
          });
}

void declare_tune(CLI::App& app, Action& chosen) {
  struct Words {
    std::string directory;
    std::vector<std::string> settings;
  };
  auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand("tune", "Change settings of a mounted filesystem");
  command->add_option("directory", words->directory, "Where it is mounted")->required();
  command->add_option("settings", words->settings,
                      "strategy=…, policy=…, placement=…, as mount options; history=ROUNDS. None: show the present ones");
  std::string footer = "Strategies:\n";
  for (const auto& [name, help] : cleaner::registry().strategies.names()) footer += fmt::format("  {:14} {}\n", name, help);
  footer += "Policies:\n";
  for (const auto& [name, help] : cleaner::victim_rules()) footer += fmt::format("  {:14} {}\n", name, help);
  footer += "Placements:\n";
  for (const auto& [name, help] : cleaner::registry().placements.names()) footer += fmt::format("  {:14} {}\n", name, help);
  command->footer(footer);
  command->callback([=, &chosen] {
    chosen = [=](IoLayer& io) -> Status {
      const std::string directory = TRY(fuse::find_mounted(words->directory));
      MountClient client = TRY(MountClient::open(directory));
      if (words->settings.empty()) {
        const auto status = TRY(client.status());
        for (const auto& [setting, key] : {std::pair{"strategy", "strategy"}, {"policy", "victim_policy"}, {"placement", "placement"}})
          io.out << fmt::format("{}={}\n", setting, status["cleaner"].value(key, ""));
      }
      for (const std::string& setting : words->settings) TRY(client.tune(setting));
      return {};
    };
  });
}

}  // namespace varve::tool

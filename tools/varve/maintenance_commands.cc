#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <ostream>

#include "varve/command.h"
#include "varve/mount_client.h"

namespace varve::tool {

namespace {

void declare(CLI::App& app, Action& chosen, const char* name, const char* help,
             Status (*action)(MountClient&, const std::string&, IoLayer&)) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("directory", *directory, "Where it is mounted")->required();
  command->callback([=, &chosen] {
    chosen = [=](IoLayer& io) -> Status {
      MountClient client = TRY(MountClient::open(*directory));
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
            io.out << fmt::format("{}: {} bytes trimmed\n", directory, bytes);
            return {};
          });
}

}  // namespace varve::tool

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "control/mount_table.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/metrics_server.h"
#include "varve/metrics_text.h"
#include "varve/mount_client.h"

namespace varve::tool {

namespace {

using Json = nlohmann::ordered_json;

struct MetricsArguments {
  std::vector<std::string> places;
  bool all = false;
  std::string listen;
};

// Mounts that cannot be asked (another user's, or dead) are left out, with a word why; those that are named must be there.
Result<std::vector<Json>> statuses_of(const MetricsArguments& arguments, std::ostream& err) {
  std::vector<Json> statuses;
  for (const std::string& place : arguments.places)
    statuses.push_back(TRY(mount_status(TRY(fuse::find_mounted(place)))));
  if (!arguments.all) return statuses;
  for (const fuse::MountEntry& entry : fuse::varve_mounts()) {
    auto status = mount_status(entry.directory);
    if (status.ok())
      statuses.push_back(std::move(status).value());
    else
      err << "varve metrics: left out: " << status.error().message() << std::endl;
  }
  return statuses;
}

Status metrics(const MetricsArguments& arguments, IoLayer& io) {
  if (arguments.places.empty() != arguments.all)
    return Error(Errc::invalid, "metrics: name mounts, or --all, not both");
  if (arguments.listen.empty()) {
    io.out << metrics_text(TRY(statuses_of(arguments, io.err))) << std::flush;
    return {};
  }
  return serve_text(arguments.listen, [&]() -> std::string {
    const auto statuses = statuses_of(arguments, io.err);
    if (!statuses.ok()) io.err << "varve metrics: " << statuses.error().message() << std::endl;
    return metrics_text(statuses.ok() ? *statuses : std::vector<Json>());
  });
}

}  // namespace

void declare_metrics(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<MetricsArguments>();
  CLI::App* command = app.add_subcommand("metrics", "Counters and latencies as OpenMetrics text, for Prometheus");
  command->add_option("directory", arguments->places, "Where it is mounted");
  command->add_flag("--all", arguments->all, "All mounts of Varve that you may ask");
  command->add_option("--listen", arguments->listen,
                      "Serve them over HTTP at unix:PATH or 127.0.0.1:PORT, until interrupted");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return metrics(*arguments, io); }; });
}

}  // namespace varve::tool

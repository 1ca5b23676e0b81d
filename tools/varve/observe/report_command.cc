#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "base/clock.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/observe/map/owner_names.h"
#include "varve/observe/map/palette.h"
#include "varve/observe/place_facts.h"
#include "varve/observe/report_html.h"
#include "varve/observe/status_text.h"
#include "varve/observe/superblock_json.h"
#include "varve/output_file.h"
#include "varve/steps.h"
#include "varve/volume/kernel_wait.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct ReportArguments {
  std::string path, output;
  bool json = false;
};

constexpr std::size_t kCells = 128 * 48;

Result<ReportFacts> collect(const control::Place& place, bool json, IoLayer& io) {
  ReportFacts facts;
  facts.made = local_time_text(Clock::system().now().seconds);
  if (place.is_mounted() && !place.is_dead) {
    Volume client = TRY(Volume::of_mount(place.directory));
    const KernelWait wait(io, {"making a checkpoint", kMountGoesOn, json});
    (void)client.checkpoint();  // what has not been merged yet is on no map; without the right to ask, the last one is drawn
    facts.status = TRY(client.status());
    facts.history = TRY(client.ask("history"));
  } else {
    ImageReader image = TRY(ImageReader::open(place.source));
    facts.status = superblock_status(image.super(), place.source);
  }
  add_place_facts(facts.status, place);
  Steps steps(io, !json);
  const ViewedPlace viewed{place.source, place.directory};
  auto map = read_device_map(viewed, {.cells = kCells, .owners = true, .advance = showing(steps)});
  steps.wipe();
  if (map.fails_with(Errc::interrupted)) return map.error();
  if (map.ok()) {
    facts.map = std::move(map).value();
    facts.names = owner_names(Palette(*facts.map, Aspect::owner, kDistinctColours).named_owners(),
                              place.is_mounted() && !place.is_dead ? place.directory : "");
  } else {
    facts.no_map = map.error().message();
  }
  for (const auto& found : {check_system(), check_storage(place), check_mount(place)})
    facts.findings.insert(facts.findings.end(), found.begin(), found.end());
  return facts;
}

// The page is made of this, but for the map: `varve map --json` has that.
std::string report_json(const ReportFacts& facts) {
  Json json{{"made", facts.made}, {"status", facts.status}, {"history", facts.history}, {"findings", Json::array()}};
  for (const Finding& finding : facts.findings) json["findings"].push_back(to_json(finding));
  return json_text(json, 2) + "\n";
}

Status report(const ReportArguments& arguments, IoLayer& io) {
  const ReportFacts facts = TRY(collect(TRY(control::find_place(arguments.path)), arguments.json, io));
  if (arguments.json) {
    io.out << report_json(facts) << std::flush;
    return {};
  }
  const std::string page = report_html(facts);
  if (arguments.output.empty() || arguments.output == "-") {
    io.out << page << std::flush;
    return {};
  }
  TRY(write_output(arguments.output, page, {"page", "<!doctype html>"}));
  io.out << fmt::format("{}: written; open it in a browser\n", arguments.output);
  return {};
}

}  // namespace

void declare_report(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Everything about a filesystem as one HTML page");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  auto* output = command->add_option("-o,--output", arguments->output, "The file to write; - or none: to the terminal");
  command->add_flag("--json", arguments->json, "For programs: what it tells, without the map")->excludes(output);
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return report(*arguments, io); }; });
}

}  // namespace varve::tool

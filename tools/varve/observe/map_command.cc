#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "base/json_text.h"
#include "base/utf8.h"
#include "shared/number_value.h"
#include "shared/terminal.h"
#include "varve/command.h"
#include "varve/observe/map/drawing.h"
#include "varve/observe/map/owner_names.h"
#include "varve/observe/map/picture.h"
#include "varve/observe/status_text.h"
#include "varve/output_file.h"
#include "varve/steps.h"
#include "varve/volume/image_reader.h"

namespace varve::tool {

namespace {

constexpr std::size_t kPngRows = 192;

const std::map<std::string, Aspect> kAspects{
    {"live", Aspect::live}, {"age", Aspect::age}, {"group", Aspect::group}, {"owner", Aspect::owner}};

struct MapArguments {
  std::string path;
  std::string by = "live";
  std::string png;
  std::size_t columns = 0;
  std::size_t rows = 24;
  std::string colour = "auto";
  bool json = false;
};

bool wants_colours(const MapArguments& arguments, IoLayer& io) {
  if (arguments.colour != "auto") return arguments.colour == "always";
  return &io.out == &std::cout && shows_colours(STDOUT_FILENO);
}

Json json_of(const DeviceMap& map, const std::map<Ino, std::string>& names) {
  Json cells = Json::array(), owners = Json::array();
  for (const MapCell& cell : map.cells) {
    Json one{{"blocks", cell.blocks}, {"live", cell.live}};
    if (cell.live) one.update({{"age", cell.age}, {"group", cell.group}});
    if (cell.owner) one["inode"] = cell.owner.v;
    cells.push_back(std::move(one));
  }
  for (const auto& [owner, blocks] : map.owners) {
    Json one{{"inode", owner.v}, {"live", blocks}};
    if (const auto name = names.find(owner); name != names.end()) one["name"] = name->second;
    owners.push_back(std::move(one));
  }
  Json json{{"blocks", map.blocks},     {"live", map.live},
            {"segments", map.segments}, {"empty_segments", map.empty_segments},
            {"cell_blocks", map.blocks_per_cell}, {"cells", std::move(cells)}};
  if (!owners.empty()) json["owners"] = std::move(owners);
  return json;
}

std::vector<Ino> owners_of(const DeviceMap& map) {
  std::vector<Ino> owners;
  for (const auto& [owner, blocks] : map.owners) owners.push_back(owner);
  return owners;
}

std::string title_of(const ViewedPlace& place, const Palette& palette) {
  return fmt::format("{}: {}", printable(place.directory.empty() ? place.device : place.directory), palette.title());
}

using Names = std::map<Ino, std::string>;

Status draw_picture(const MapArguments& arguments, const ViewedPlace& place, Aspect aspect, const Names& names, Steps& steps,
                    std::ostream& out) {
  const PngSize size;
  const bool owners = aspect == Aspect::owner;
  const DeviceMap map = TRY(read_device_map(place, {.cells = size.columns * kPngRows, .owners = owners, .advance = showing(steps)}));
  steps.wipe();
  const Palette palette(map, aspect, kDistinctColours);  // a picture has no signs
  const auto legend = palette.legend(names);
  const std::string picture = TRY(png_of(map, palette, legend, title_of(place, palette), size));
  TRY(write_output(arguments.png, picture, {"PNG", "\x89PNG"}));
  out << fmt::format("{}: drawn, a cell is {}\n\n", arguments.png, size_text(map.blocks_per_cell << kBlockShift));
  return {};
}

Status draw(const MapArguments& arguments, IoLayer& io) {
  const Aspect aspect = kAspects.at(arguments.by);
  const ViewedPlace place = TRY(viewed_place(arguments.path, io, arguments.json));
  Steps steps(io, !arguments.json);
  constexpr std::size_t kMargin = 13;  // what stands before the cells of a line
  const std::size_t width = std::max<std::size_t>(size_of_terminal(STDOUT_FILENO).columns, 40);
  const std::size_t columns = arguments.columns ? arguments.columns : width - kMargin;
  const bool owners = aspect == Aspect::owner;
  const DeviceMap map = TRY(read_device_map(place, {.cells = columns * arguments.rows, .owners = owners, .advance = showing(steps)}));
  steps.wipe();
  const Palette palette(map, aspect);
  const Names names = owner_names(arguments.json ? owners_of(map) : palette.named_owners(), place.directory);  // more than a picture needs
  if (!arguments.png.empty()) TRY(draw_picture(arguments, place, aspect, names, steps, arguments.json ? io.err : io.out));
  if (arguments.json) {
    io.out << json_text(json_of(map, names), 1) << "\n";
    return {};
  }
  const bool colours = wants_colours(arguments, io);
  io.out << title_of(place, palette) << "\n\n"
         << map_text(map, palette, columns, colours)
         << legend_text(palette.legend(names), colours, palette.has_signs());
  return {};
}

}  // namespace

void declare_map(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<MapArguments>();
  CLI::App* command = app.add_subcommand("map", "Draw what stands where on the device");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option("--by", arguments->by, "What is drawn: the share of live blocks, age, group or owner")
      ->check(CLI::IsMember({"live", "age", "group", "owner"}))
      ->capture_default_str();
  command->add_option("--png", arguments->png, "Write a picture as well");
  command->add_flag("--json", arguments->json, "The cells, for programs");
  command->add_option("--columns", arguments->columns, "Cells a line (as wide as the terminal)")->check(number_value(1, 10000, "80"));
  command->add_option("--rows", arguments->rows, "Lines, at most")->check(number_value(1, 10000, "20"))->capture_default_str();
  command->add_option("--color", arguments->colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return draw(*arguments, io); }; });
}

}  // namespace varve::tool

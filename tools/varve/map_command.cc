#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "base/json_text.h"
#include "daemon/mount_point.h"
#include "control/place.h"
#include "io/network_name.h"
#include "varve/command.h"
#include "varve/map/drawing.h"
#include "varve/mount_client.h"
#include "varve/output_file.h"
#include "varve/scrub_names.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

// A mount may use blocks of the checkpoint again while they are looked at.
constexpr int kTries = 5;
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

// Where the blocks are, and where their names are, if it is mounted.
struct Place {
  std::string device;
  std::string directory;
};

Result<Place> place_of_mount(const std::string& device, const std::string& directory) {
  MountClient client = TRY(MountClient::open(directory));
  const auto state = TRY(client.status());
  if (!io::is_network_name(device) && ::access(device.c_str(), R_OK) != 0)
    return Error(Errc::not_permitted,
                 fmt::format("{}: cannot be read by you: a map looks at the device below {}", device, directory));
  if (!state.value("read_only", false)) TRY(client.checkpoint());  // what has not been merged yet is on no map
  return Place{device, directory};
}

Result<Place> place_of(const std::string& path) {
  const control::Place found = TRY(control::find_place(path));
  if (found.is_dead) return control::daemon_gone(found);
  return found.is_mounted() ? place_of_mount(found.source, found.directory) : Result<Place>(Place{found.source, ""});
}

Result<DeviceMap> read_map(const Place& place, const MapRequest& request) {
  Status last;
  for (int i = 0; i < kTries; ++i) {
    auto image = TRY(place.directory.empty() ? ImageReader::open(place.device) : ImageReader::open_beside_mount(place.device));
    auto map = read_device_map(image, request);
    if (map.ok() || place.directory.empty() || !map.fails_with(Errc::corrupt)) return map;
    last = map.error();
  }
  return last.error();
}

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 80;
  return size.ws_col;
}

bool wants_colours(const MapArguments& arguments, IoLayer& io) {
  if (arguments.colour != "auto") return arguments.colour == "always";
  return &io.out == &std::cout && ::isatty(STDOUT_FILENO);
}

std::map<Ino, std::string> names_of(const std::vector<Ino>& owners, const std::string& directory) {
  std::map<Ino, std::string> names;
  if (directory.empty() || owners.empty()) return names;
  std::set<std::uint64_t> inodes;
  for (const Ino owner : owners) inodes.insert(owner.v);
  for (const auto& [inode, paths] : find_names(directory, inodes))
    names[Ino{inode}] = paths.front() + (paths.size() > 1 ? fmt::format(" (one of {} names)", paths.size()) : "");
  return names;
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

Status draw_picture(const MapArguments& arguments, const Place& place, Aspect aspect, std::ostream& out) {
  const PngSize size;
  const DeviceMap map = TRY(read_map(place, {.cells = size.columns * kPngRows, .owners = aspect == Aspect::owner}));
  const std::string picture = TRY(png_of(map, Palette(map, aspect), size));
  TRY(write_output(arguments.png, picture, {"PNG", "\x89PNG"}));
  out << fmt::format("{}: drawn, a cell is {}\n\n", arguments.png, size_text(map.blocks_per_cell << kBlockShift));
  return {};
}

Status draw(const MapArguments& arguments, IoLayer& io) {
  const Aspect aspect = kAspects.at(arguments.by);
  const Place place = TRY(place_of(arguments.path));
  constexpr std::size_t kMargin = 13;  // what stands before the cells of a line
  const std::size_t columns = arguments.columns ? arguments.columns : terminal_columns() - kMargin;
  const bool owners = aspect == Aspect::owner;
  if (!arguments.png.empty()) TRY(draw_picture(arguments, place, aspect, arguments.json ? io.err : io.out));
  const DeviceMap map = TRY(read_map(place, {.cells = columns * arguments.rows, .owners = owners}));
  if (arguments.json) {
    io.out << json_text(json_of(map, names_of(owners_of(map), place.directory)), 1) << "\n";
    return {};
  }
  const Palette palette(map, aspect);
  const bool colours = wants_colours(arguments, io);
  io.out << map_text(map, palette, columns, colours)
         << legend_text(palette.legend(names_of(palette.named_owners(), place.directory)), colours);
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
  command->add_option("--columns", arguments->columns, "Cells a line (as wide as the terminal)")->check(CLI::Range(1, 10000));
  command->add_option("--rows", arguments->rows, "Lines, at most")->check(CLI::Range(1, 10000))->capture_default_str();
  command->add_option("--color", arguments->colour, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return draw(*arguments, io); }; });
}

}  // namespace varve::tool

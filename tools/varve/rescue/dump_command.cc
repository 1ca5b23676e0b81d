#include <CLI/CLI.hpp>
#include <charconv>
#include <ostream>

#include "base/counted.h"
#include "base/json_text.h"
#include "varve/command.h"
#include "varve/rescue/dump.h"
#include "varve/steps.h"

namespace varve::tool {

namespace {

struct DumpArguments {
  std::string what, path, which;
  bool json = false;
};

struct Kind {
  const char* name;
  const char* which;  // null: nothing to choose
  Result<Json> (*dump)(ImageReader&, std::uint64_t, const EachPart&);
};

constexpr Kind kKinds[] = {
    {"segment", "its number", [](ImageReader& image, std::uint64_t n, const EachPart&) { return dump_segment(image, n); }},
    {"chunk", "its first block", [](ImageReader& image, std::uint64_t n, const EachPart&) { return dump_chunk(image, BlockAddr{n}); }},
    {"chain", nullptr, [](ImageReader& image, std::uint64_t, const EachPart& each) { return dump_chain(image, each); }},
    {"node", "its block", [](ImageReader& image, std::uint64_t n, const EachPart&) { return dump_node(image, BlockAddr{n}); }},
    {"inode", "its number", [](ImageReader& image, std::uint64_t n, const EachPart& each) { return dump_inode(image, Ino{n}, each); }},
    {"directory", "its inode number",
     [](ImageReader& image, std::uint64_t n, const EachPart& each) { return dump_directory(image, Ino{n}, each); }},
};
constexpr const char* kSuperblock = "superblock";

Result<std::uint64_t> parse_which(const DumpArguments& arguments, const Kind& kind) {
  if (!kind.which) return 0;
  std::uint64_t number = 0;
  const char* const end = arguments.which.data() + arguments.which.size();
  const auto [at, error] = std::from_chars(arguments.which.data(), end, number);
  if (arguments.which.empty() || error != std::errc() || at != end)
    return Error(Errc::invalid, fmt::format("dump {}: which one? Give {}", kind.name, kind.which));
  return number;
}

Result<Json> make(const DumpArguments& arguments, const EachPart& each) {
  if (arguments.what == kSuperblock) return dump_superblocks(arguments.path);
  for (const Kind& kind : kKinds) {
    if (arguments.what != kind.name) continue;
    const std::uint64_t which = TRY(parse_which(arguments, kind));
    ImageReader image = TRY(ImageReader::open(arguments.path));
    return kind.dump(image, which, each);
  }
  return Errc::invalid;  // the parser has checked
}

// Each copy has a number of its own in the area that it stands in.
Json without_sequence(Json super) {
  if (super.contains("area") && super["area"].is_object()) super["area"].erase("sequence");
  return super;
}

// For people: two copies that say the same are shown once.
Json without_repetition(const Json& json, const std::string& what) {
  if (what != kSuperblock || without_sequence(json["first"]) != without_sequence(json["second"])) return json;
  Json once;
  once["first and second, which are equal"] = without_sequence(json["first"]);
  return once;
}

Status dump(const DumpArguments& arguments, IoLayer& io) {
  Steps steps(io, !arguments.json, "nothing was shown, and nothing is left of it");
  const auto each = [&steps](std::uint64_t parts) { return steps.next([&] { return fmt::format("{} read", counted(parts, "part")); }); };
  const Json json = TRY(make(arguments, each));
  steps.wipe();
  if (arguments.json)
    io.out << json_text(json, 2) << "\n";
  else
    io.out << dump_text(without_repetition(json, arguments.what));
  return {};
}

}  // namespace

void declare_dump(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<DumpArguments>();
  std::vector<std::string> names = {kSuperblock};
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  CLI::App* command = app.add_subcommand("dump", "Show a structure of an unmounted filesystem");
  command->add_option("what", arguments->what, "What to show")->required()->check(CLI::IsMember(names));
  command->add_option("source", arguments->path, "Block device or image file")->required();
  command->add_option("which", arguments->which, "Which one: a segment's number, the (first) block of a chunk or node, an inode number");
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return dump(*arguments, io); }; });
}

}  // namespace varve::tool

// `varve resize`: another size for a filesystem, mounted or not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/json_text.h"
#include "control/place.h"
#include "segments/segment_table.h"
#include "shared/interruptible.h"
#include "shared/size_value.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/progress.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct ResizeArguments {
  std::string path;
  std::uint64_t size = 0;  // bytes; 0: that of the device
  bool minimum = false, cancel = false, json = false;
};

std::uint64_t bytes_of(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

// As SIZE takes it: the largest unit that it is a whole number of.
std::string exact_size(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes && bytes % 1024 == 0) bytes /= 1024, ++unit;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

double resize_share(const Json& state) {
  const std::uint64_t first = bytes_of(state, "left_bytes_at_first"), left = std::min(first, bytes_of(state, "left_bytes"));
  return first ? static_cast<double>(first - left) / static_cast<double>(first) : 0;
}

std::string resize_progress(const Json& state) {
  const std::string doing = state.value("doing", "");
  return fmt::format("{:.0f} % done, {} moved{}{}", 100 * resize_share(state), size_text(bytes_of(state, "moved_bytes")),
                     doing.empty() ? "" : "; ", doing);
}

Result<Json> work(Volume& volume, const ResizeArguments& arguments, IoLayer& io) {
  const Interruptible interruptible;
  TRY(volume.tell("resize_start", {{"bytes", arguments.size}}));
  return wait_for_end(volume, {"resize", resize_progress, resize_share, !arguments.json}, io);
}

// Each segment takes memory: few large ones are what a filesystem of that size would have been made with.
constexpr std::uint64_t kManySegments = 4u << 20;

// With the size in words where the exact one is hard to read.
std::string told_size(std::uint64_t bytes) {
  const std::string exact = exact_size(bytes);
  return bytes % (1U << 20) == 0 ? exact : fmt::format("{} ({})", exact, size_text(bytes));
}

std::string resize_report(const Json& state) {
  const std::uint64_t from = bytes_of(state, "from_bytes"), to = bytes_of(state, "to_bytes"), now = bytes_of(state, "bytes");
  const std::string reason = state.value("reason", "");
  if (from == to) return fmt::format("The filesystem has {} already.\n", told_size(now));
  const std::string why = reason.empty() ? "" : ", " + reason;
  std::string text = fmt::format("The filesystem has {} now, {} before{}.\n", told_size(now), told_size(from), why);
  const std::uint64_t segments = now / std::max<std::uint64_t>(1, bytes_of(state, "segment_bytes"));
  if (segments > kManySegments)
    text += fmt::format("It has {} segments of {}: when it is full, the table of them takes {} of memory. One that is made anew with this "
                        "size takes less.\n", segments, exact_size(bytes_of(state, "segment_bytes")),
                        size_text(segments * sizeof(segments::SegmentInfo)));
  return text;
}

Status tell_end(const Json& state, const ResizeArguments& arguments, IoLayer& io) {
  const std::string end = state.value("state", "");
  io.answered = true;
  if (arguments.json) io.out << json_text(state, 2) << "\n" << std::flush;
  else if (end == "finished") io.out << resize_report(state) << std::flush;
  const std::string kept = fmt::format("it has {} as before", exact_size(bytes_of(state, "bytes")));
  if (end == "failed") return Error(Errc::no_space, fmt::format("{}: {}: {}", arguments.path, state.value("reason", ""), kept));
  if (end == "stopped")
    return Error(Errc::interrupted, fmt::format("{}: stopped before it was done: {}, and nothing is lost", arguments.path, kept));
  return {};
}

Status tell_minimum(Volume& volume, const ResizeArguments& arguments, IoLayer& io) {
  const Json state = TRY(volume.ask("resize_report"));
  if (arguments.json) io.out << json_text(state, 2) << "\n";
  else io.out << "Smallest possible size: " << exact_size(bytes_of(state, "least_bytes")) << "\n";
  return {};
}

Status cancel(Volume& volume, const ResizeArguments& arguments, IoLayer& io) {
  TRY(volume.tell("resize_stop"));
  if (arguments.json) io.out << json_text(TRY(volume.ask("resize_report")), 2) << "\n";
  return {};
}

Status check_new_size(const ResizeArguments& arguments) {
  constexpr std::uint64_t kLeast = 8U << 20, kMost = 64ULL << 40;
  if (arguments.size && arguments.size < kLeast)
    return Error(Errc::invalid, fmt::format("{}: too small: Varve needs at least 8M", arguments.size));
  if (arguments.size > kMost) return Error(Errc::invalid, fmt::format("{}: too big: at most 64T", arguments.size));
  return {};
}

Status resize(const ResizeArguments& arguments, IoLayer& io) {
  TRY(check_new_size(arguments));
  const control::Place place = TRY(control::find_place(arguments.path));
  if (arguments.cancel && !place.is_mounted())
    return Error(Errc::invalid, fmt::format("{}: is not mounted: only what a mount does can be cancelled", arguments.path));
  Volume volume = TRY(Volume::open(place, "varve resize", arguments.minimum ? Volume::Use::looks : Volume::Use::changes));
  if (arguments.minimum) {
    TRY(tell_minimum(volume, arguments, io));
    return volume.close();
  }
  if (arguments.cancel) return cancel(volume, arguments, io);
  auto state = work(volume, arguments, io);
  const Status closed = volume.close();
  if (!state.ok()) return state.error();
  TRY(tell_end(*state, arguments, io));
  return closed;
}

}  // namespace

void declare_resize(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ResizeArguments>();
  CLI::App* command = app.add_subcommand("resize", "Grow or shrink a filesystem, mounted or not");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  auto* size = command->add_option("size", arguments->size, "With suffix K, M, G or T; without: as large as the device is")
                   ->transform(positive_size_value());
  auto* minimum = command->add_flag("-n,--minimum", arguments->minimum, "Only say to which size it could be shrunk")->excludes(size);
  command->add_flag("--cancel", arguments->cancel, "End a change of size that goes on; the former size stays")
      ->excludes(size)
      ->excludes(minimum);
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return resize(*arguments, io); }; });
}

}  // namespace varve::tool

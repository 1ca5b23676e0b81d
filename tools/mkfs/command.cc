#include "mkfs/command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <ostream>

#include "mkfs/report.h"
#include "mkfs/signature.h"
#include "mkfs/target.h"
#include "mkfs/trial.h"
#include "mkfs/writer.h"
#include "shared/interruptible.h"
#include "shared/json_error.h"
#include "shared/number_value.h"
#include "shared/output.h"
#include "shared/progress_meter.h"
#include "shared/size_value.h"
#include "shared/usage.h"

namespace varve::mkfs {

namespace {

struct Arguments {
  std::string path;
  bool force = false;
  bool quiet = false;
  bool dry_run = false;
  bool json = false;
  bool prewrite = false;
  bool no_discard = false;
  std::string label;
  std::string uuid;
  std::uint64_t size = 0;          // bytes, 0: that of the device
  std::uint64_t segment_size = 0;  // bytes, 0: chosen
  bool in_place = false;
  bool probe = false;
  std::uint16_t streams = 0;       // 0: not known
  std::uint64_t erase_unit = 0;    // bytes, 0: as the device tells
  std::uint32_t tails = 0;         // bytes, 0: none
};

void declare(CLI::App& app, Arguments& a) {
  app.set_version_flag("-V,--version", std::string("mkfs.varve ") + VARVE_VERSION);
  app.add_flag("-f,--force", a.force, "Overwrite another filesystem, a partition table or a Varve filesystem");
  app.add_flag("-q,--quiet", a.quiet, "Print errors only");
  app.add_flag("-n,--dry-run", a.dry_run, "Check everything, say what would be made, write nothing");
  app.add_option("-L,--label", a.label, "Label, at most 63 bytes");
  app.add_option("-U,--uuid", a.uuid, "UUID; random by default");
  app.add_option("--size", a.size, "Size, with suffix K, M, G or T; creates the image if there is none")
      ->transform(positive_size_value());
  app.add_option("--segment-size", a.segment_size, "A power of two from 256K to 64M")
      ->transform(positive_size_value());
  app.add_option("--erase-unit", a.erase_unit, "What the device erases as a whole, as 8M (what it tells, else 4M)")
      ->transform(positive_size_value());
  app.add_option("--streams", a.streams, "How many places the device keeps open for writing at once, as 5 (not known)")
      ->check(number_value(1, 1000, "5"));
  app.add_option("--tails", a.tails, "Up to so many bytes of a file stand beside its inode, without a block: 1 to 1024 (none)")
      ->check(number_value<std::uint64_t>(1, format::kMaxTail, "1024"));
  app.add_flag("--probe", a.probe, "Find both by timed writes first: seconds, on slow cards a minute or two");
  app.add_flag("--superblocks-in-place", a.in_place, "So that older versions can mount it; dearer on cards and sticks");
  app.add_flag("--json", a.json, "Print what was made as JSON");
  app.add_flag("--prewrite", a.prewrite, "Write zeros to the whole target first");
  app.add_flag("--no-discard", a.no_discard, "Do not tell the device that its old content is garbage");
  app.add_option("target", a.path, "Block device or image file")->required();
}

// A unit that the device tells and that cannot be one (some cards tell their whole speed class) counts as none.
Result<format::EraseUnit> erase_unit_of(const Arguments& a, const io::Geometry& geometry) {
  constexpr std::uint64_t kLeast = 64U << 10, kMost = 64U << 20;
  if (a.erase_unit % kBlockSize != 0)
    return Error(Errc::invalid, fmt::format("--erase-unit {}: not a multiple of {} bytes", a.erase_unit, kBlockSize));
  const bool makes_sense = geometry.erase_unit >= kLeast && geometry.erase_unit <= kMost && geometry.erase_unit % kBlockSize == 0;
  const std::uint64_t told = makes_sense ? geometry.erase_unit : 0;
  const bool aligned = geometry.before % kBlockSize == 0;  // else nothing can be
  return format::EraseUnit{(a.erase_unit ? a.erase_unit : told) >> kBlockShift, aligned ? geometry.before >> kBlockShift : 0};
}

// What the layout goes by, and how it came to be known.
Status describe_device(const Arguments& a, const io::Geometry& geometry, format::MakeParameters& p) {
  p.erase_unit = TRY(erase_unit_of(a, geometry));
  p.erase_source = a.erase_unit ? format::Source::given : p.erase_unit.blocks ? format::Source::told : format::Source::unknown;
  p.streams = a.streams;
  p.streams_source = a.streams ? format::Source::given : format::Source::unknown;
  return {};
}

Result<format::MakeParameters> parameters_of(const Arguments& a, const io::Geometry& geometry, World& world) {
  format::MakeParameters p;
  p.device_blocks = a.size ? a.size >> kBlockShift : geometry.blocks();
  if (p.device_blocks > geometry.blocks())
    return Error(Errc::invalid, fmt::format("{}: only {} bytes, --size asks for {}", a.path, geometry.size_bytes.get(), a.size));
  if (a.segment_size % kBlockSize != 0 || a.segment_size > (1ULL << 30))
    return Error(Errc::invalid, "the segment size must be a power of two from 256 KiB to 64 MiB");
  p.segment_blocks = static_cast<std::uint32_t>(a.segment_size >> kBlockShift);
  TRY(describe_device(a, geometry, p));
  if (a.tails) p.tails = {a.tails, format::kUsualLoggedTail};
  p.superblocks_in_place = a.in_place;
  p.label = a.label;
  if (!a.uuid.empty()) {
    const auto uuid = format::parse_uuid(a.uuid);
    if (!uuid) return Error(Errc::invalid, fmt::format("-U {}: not a UUID", a.uuid));
    p.uuid = *uuid;
  }
  p.now = world.clock.now();
  p.uid = geometry.is_block_device ? 0 : ::getuid();
  p.gid = geometry.is_block_device ? 0 : ::getgid();
  return p;
}

// Before a file of this size is made, or a map for it in memory. Linux addresses no file beyond 8 EiB; that much of `.mfile` and
// `.ffile` fits no machine, and what has been tested ends far below.
Status check_size(const Arguments& a) {
  constexpr std::uint64_t kLeast = format::kMinDeviceBlocks << kBlockShift, kMost = 64ULL << 40;
  if (a.size && a.size < kLeast) return Error(Errc::invalid, fmt::format("--size {}: too small: Varve needs at least 8M", a.size));
  if (a.size > kMost) return Error(Errc::invalid, fmt::format("--size {}: too big: at most 64T", a.size));
  return {};
}

// The trial writes wherever it likes, so nothing may be taken for whole from then on.
Result<Findings> try_device(const Arguments& a, Target& target, std::uint64_t bytes, World& world) {
  const bool says = !a.quiet;
  if (says) world.err << "mkfs.varve: timed writes on " << a.path << ": seconds, on slow cards a minute or two" << std::endl;
  TRY(wipe_signatures(target.device()));
  return Trial(target.device(), bytes, world.clock, world.random, [&](const std::string& line) {
           if (says) world.err << "  " << line << std::endl;
         }, HostWaits::of_system()).run();
}

struct Made {
  format::EmptyFilesystem filesystem;
  std::optional<Findings> findings;
};

// All that was asked for is checked before the trial destroys anything.
Result<Made> plan(const Arguments& a, Target& target, World& world) {
  auto parameters = TRY(parameters_of(a, target.geometry(), world));
  Made made{TRY(format::make_filesystem(parameters, world.random)), {}};
  if (!a.probe) return made;
  made.findings.emplace();
  if (a.dry_run) {
    made.findings->outcome = "not in a dry run";
    return made;
  }
  made.findings = TRY(try_device(a, target, parameters.device_blocks * kBlockSize, world));
  adopt(*made.findings, parameters);
  // Where a given segment size and the unit that was found leave too few segments, the size counts.
  if (auto better = format::make_filesystem(parameters, world.random); better.ok()) made.filesystem = std::move(*better);
  else made.findings->outcome += fmt::format("; not used: {}", better.error().message());
  return made;
}

// An interruption leaves nothing of an image that was made for this.
Error explained(const Error& why, const Arguments& a, const Target& target) {
  if (!why.is(Errc::interrupted)) return why;
  return {Errc::interrupted, target.is_new() ? fmt::format("interrupted: {} was removed again", a.path)
                                             : fmt::format("interrupted: {} has no filesystem now: give the same command again", a.path)};
}

Status write(const Arguments& a, Target& target, const Made& made, World& world) {
  ProgressMeter meter(world.err, !a.quiet && !a.json);
  const auto during_prewrite = [&](std::uint64_t done, std::uint64_t all) -> Status {
    if (Interruptible::asked()) return Errc::interrupted;
    const double share = ProgressMeter::share_of(done, all);
    meter.show([&] { return fmt::format("writing zeros: {} of {} MiB ({:.0f} %)", done >> 20, all >> 20, 100 * share); }, share);
    return {};
  };
  return write_filesystem(target.device(), made.filesystem,
                          {.discard = !a.no_discard, .prewrite = a.prewrite, .during_prewrite = during_prewrite});
}

Result<Report> make(const Arguments& a, World& world) {
  TRY(check_size(a));
  Target target = TRY(Target::open({a.path, a.size, a.dry_run}));
  if (!target.holder().empty())
    world.err << fmt::format("mkfs.varve: warning: mkfs would be refused if {}, still has {}\n", target.holder(), a.path);
  if (!a.force) TRY(refuse_known_content(target.device()));
  TRY(target.grow());
  const auto planned = plan(a, target, world);
  if (!planned.ok()) return explained(planned.error(), a, target);
  const Made& made = *planned;
  const Status written = a.dry_run ? Status() : write(a, target, made, world);
  if (!written.ok()) return explained(written.error(), a, target);
  target.keep();
  Report report = report_of(made.filesystem.super, a.path, a.dry_run);
  if (made.findings) add_findings(report, *made.findings);
  return report;
}

}  // namespace

int run(int argc, const char* const* argv, World world) {
  CLI::App app("Makes a Varve filesystem on a block device or in an image file.", "mkfs.varve");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return finish_parsing(app, error, 1, world.out, world.err);
  }
  const Interruptible interruptible;
  const auto report = make(arguments, world);
  if (!report.ok()) {
    const int status = Interruptible::exit_status(1);
    world.err << "mkfs.varve: " << report.error().message() << "\n";
    if (arguments.json) world.out << json_error(report.error().message(), status);
    return status;
  }
  if (arguments.json) world.out << to_json(*report) << "\n";
  else if (!arguments.quiet) world.out << to_text(*report);
  return is_written("mkfs.varve", world.out, world.err) ? 0 : 1;
}

}  // namespace varve::mkfs

#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/errc.h"
#include "base/types.h"
#include "shared/interruptible.h"
#include "shared/number_value.h"
#include "shared/progress_meter.h"
#include "shared/size_value.h"
#include "varve/command.h"
#include "varve/observe/place_facts.h"
#include "varve/observe/status_text.h"
#include "varve/output_file.h"
#include "varve/trial/child.h"
#include "varve/trial/contender.h"
#include "varve/trial/machine_facts.h"
#include "varve/trial/trial_report.h"

namespace varve::tool {

namespace {

constexpr std::uint64_t kLeastDevice = 64u << 20;
constexpr unsigned kPartOfDevice = 4;  // that the large file takes at most

struct TrialArguments {
  std::string device, report = "varve-trial.json";
  std::vector<std::string> with{"ext4"};
  std::uint64_t file_bytes = 512u << 20;
  unsigned seconds = 10;
  bool force = false, yes = false, json = false;
};

Result<std::uint64_t> bytes_of(const std::string& device) {
  const std::uint64_t bytes = length_of(device);
  if (bytes >= kLeastDevice) return bytes;
  if (bytes == 0) return Error(Errc::invalid, fmt::format("{}: give a device, or an image file: `truncate -s 4G FILE` makes one", device));
  return Error(Errc::invalid, fmt::format("{}: has {}; a trial takes at least {}", device, size_text(bytes), size_text(kLeastDevice)));
}

bool is_file(const std::string& device) {
  struct stat status {};
  return ::stat(device.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

Result<std::vector<Contender>> contenders(const TrialArguments& arguments) {
  const bool is_image = is_file(arguments.device);
  std::vector<Contender> all{TRY(contender("varve", is_image))};
  for (const std::string& name : arguments.with)
    if (name != "varve") all.push_back(TRY(contender(name, is_image)));
  return all;
}

// As mkfs.varve would refuse it: in use, mounted, something on it.
Status look_at_target(const TrialArguments& arguments) {
  std::vector<std::string> words{find_own_program("mkfs.varve"), "-n", "-q"};
  if (arguments.force) words.emplace_back("-f");
  words.push_back(arguments.device);
  const auto looked = run_program(words);
  if (looked.ok()) return {};
  std::string why = looked.error().message();
  if (!arguments.force) why += "\n(--force of this command stands for -f there.)";
  return Error(looked.error().code(), why);
}

Status ask(const TrialArguments& arguments, const std::vector<Contender>& all, std::uint64_t bytes, const Json& about, IoLayer& io) {
  std::string names;
  for (const Contender& one : all) names += (names.empty() ? "" : ", ") + one.name;
  const std::string model = about.value("/disk/model"_json_pointer, std::string());
  io.err << fmt::format("All that is on {} ({}{}{}) will be lost. Filesystems are made on it, one after the other: {}.\n"
                        "It takes up to {} minutes, longer where the device is very slow.\n",
                        arguments.device, size_text(bytes), model.empty() ? "" : ", ", model, names,
                        all.size() * arguments.seconds * 10 / 60 + 1);
  if (arguments.yes) return {};
  if (&io.in == &std::cin && !::isatty(STDIN_FILENO))
    return Error(Errc::invalid, "nobody is there to say yes: --yes says that all that is on the device may be lost");
  io.err << "Type yes to go on: " << std::flush;
  std::string answer;
  std::getline(io.in, answer);
  if (answer != "yes") return Error(Errc::interrupted, fmt::format("{}: nothing has been changed", arguments.device));
  return {};
}

Result<Tried> attempt(const Contender& contender, const TrialArguments& arguments, const Effort& effort, ProgressMeter& meter) {
  meter.show([&] { return fmt::format("{}: is made and mounted", contender.name); });
  MountedContender mounted = TRY(MountedContender::make(contender, arguments.device));
  Series series{effort, [&] { return mounted.remount(); },
                [&](const std::string& work) { meter.restart(), meter.show([&] { return fmt::format("{}: {}", contender.name, work); }); }};
  Tried tried{contender.name, nullptr, TRY(run_series(mounted.directory(), series))};
  if (Json made = Json::parse(mounted.said(), nullptr, false); made.is_object()) tried.made = std::move(made);
  TRY(mounted.unmount());
  return tried;
}

Status trial(TrialArguments arguments, IoLayer& io) {
  const std::uint64_t bytes = TRY(bytes_of(arguments.device));
  const auto all = TRY(contenders(arguments));
  TRY(look_at_target(arguments));
  const Json about = device_facts(arguments.device);
  TRY(ask(arguments, all, bytes, about, io));
  const Effort effort{std::min(arguments.file_bytes, bytes / kPartOfDevice) >> 20 << 20, static_cast<double>(arguments.seconds)};
  TrialReport report{machine_facts(), about, effort, {}};
  Interruptible interruptible;
  ProgressMeter meter(io.err, !arguments.json);
  for (const Contender& one : all) {
    auto tried = attempt(one, arguments, effort, meter);
    if (tried.fails_with(Errc::interrupted))
      return Error(Errc::interrupted, fmt::format("interrupted: {} holds {} now, and nothing is mounted; begin again when you like",
                                                  arguments.device, one.name));
    report.tried.push_back(TRY(tried));
  }
  meter.wipe();
  const std::string json = json_text(to_json(report), 2) + "\n";
  TRY(write_output(arguments.report, json, {"report of a trial", "{\n  \"format\": \"varve trial"}));
  if (arguments.json) {
    io.out << json;
    return {};
  }
  io.out << to_text(report)
         << fmt::format("\n{} has these figures, the kind of machine and device, and nothing that says whose they are. {} holds {} now.\n",
                        arguments.report, arguments.device, all.back().name);
  return {};
}

}  // namespace

void declare_trial(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<TrialArguments>();
  CLI::App* command = app.add_subcommand("trial", "Measure a device that may lose all it has, beside other filesystems");
  command->add_option("device", arguments->device, "A device, or an image file; all that is on it is lost")->required();
  command->add_option("--with", arguments->with, "Others: ext4, f2fs, btrfs, xfs; or varve, for Varve alone (ext4)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--seconds", arguments->seconds, "For each kind of work (10)")->check(number_value(1, 3600, "10"));
  command->add_option("--file", arguments->file_bytes, "Size of the large file, at most a quarter of the device (512M)")
      ->transform(positive_size_value());
  command->add_option("-o,--output", arguments->report, "Where the report goes, as JSON (varve-trial.json)");
  command->add_flag("-f,--force", arguments->force, "Also where there is another filesystem, a partition table or a Varve filesystem");
  command->add_flag("--yes", arguments->yes, "Do not ask");
  command->add_flag("--json", arguments->json, "Print the report as JSON, too");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return trial(*arguments, io); }; });
}

}  // namespace varve::tool

#include "varve/trial/contender.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/errc.h"
#include "varve/trial/child.h"

namespace varve::tool {

namespace {

std::vector<std::string> with(std::vector<std::string> words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

Result<std::string> needed(const std::string& program, const std::string& package) {
  std::string found = find_program(program);
  if (found.empty()) return Error(Errc::not_found, fmt::format("{} is not there: install {}, or leave it out of --with", program, package));
  return found;
}

Contender varve_itself() {
  const std::string varve = find_own_program("varve");
  return {"varve", {find_own_program("mkfs.varve"), "-f", "--probe", "--json"}, {varve, "mount"}, {varve, "umount", "-q"},
          {find_own_program("fsck.varve"), "-n"}};
}

}  // namespace

Result<Contender> contender(const std::string& name, bool of_file) {
  if (name == "varve") return varve_itself();
  struct Other {
    std::string name, package;
    std::vector<std::string> options;
  };
  // Tables are written at once: else the first mount writes them beside the work.
  const std::vector<Other> others{{"ext4", "e2fsprogs", {"-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"}},
                                  {"f2fs", "f2fs-tools", {"-q", "-f"}},
                                  {"btrfs", "btrfs-progs", {"-q", "-f"}},
                                  {"xfs", "xfsprogs", {"-q", "-f"}}};
  for (const Other& other : others) {
    if (other.name != name) continue;
    if (::geteuid() != 0)
      return Error(Errc::not_permitted, fmt::format("{}: only root can mount it: run this as root, or with --with varve", name));
    std::vector<std::string> make = other.options;
    make.insert(make.begin(), TRY(needed("mkfs." + name, other.package)));
    const std::string mount = TRY(needed("mount", "mount")), umount = TRY(needed("umount", "mount"));
    return Contender{name, make, {mount, "-t", name, "-o", of_file ? "loop" : "rw"}, {umount}};
  }
  return Error(Errc::invalid, fmt::format("--with {}: there are varve, ext4, f2fs, btrfs, xfs", name));
}

MountedContender::MountedContender(const Contender& contender, std::string device, std::string directory, std::string said)
    : contender_(contender), device_(std::move(device)), directory_(std::move(directory)), said_(std::move(said)) {}

MountedContender::MountedContender(MountedContender&& other) noexcept
    : contender_(std::move(other.contender_)),
      device_(std::move(other.device_)),
      directory_(std::exchange(other.directory_, "")),
      said_(std::move(other.said_)),
      is_mounted_(std::exchange(other.is_mounted_, false)) {}

MountedContender::~MountedContender() {
  if (is_mounted_ && !leave().ok()) return;
  if (!directory_.empty()) ::rmdir(directory_.c_str());
}

Result<MountedContender> MountedContender::make(const Contender& contender, const std::string& device) {
  std::string said = TRY(run_program(with(contender.make, {device})));
  std::string directory = std::filesystem::temp_directory_path() / "varve-trial.XXXXXX";
  if (!::mkdtemp(directory.data())) return Error(errc_from_errno(errno), fmt::format("{}: cannot be made: {}", directory, errno_text()));
  MountedContender made(contender, device, std::move(directory), std::move(said));
  TRY(made.mount());
  return made;
}

Status MountedContender::mount() {
  const auto mounted = run_program(with(contender_.mount, {device_, directory_}));
  if (!mounted.ok())
    return Error(mounted.error().code(), fmt::format("{} cannot be mounted: {}", contender_.name, mounted.error().message()));
  is_mounted_ = true;
  return {};
}

Status MountedContender::leave() {
  TRY(run_program(with(contender_.unmount, {directory_})));
  is_mounted_ = false;
  return {};
}

// A copy of the mount in another mount namespace would keep its caches, so root empties those of the machine.
Status MountedContender::remount() {
  TRY(leave());
  if (std::ofstream caches("/proc/sys/vm/drop_caches"); caches) caches << 3 << std::flush;
  return mount();
}

Status MountedContender::unmount() {
  TRY(leave());
  if (!contender_.check.empty()) TRY(run_program(with(contender_.check, {device_})));
  return {};
}

}  // namespace varve::tool

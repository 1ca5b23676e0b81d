#include "varve/trial/machine_facts.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <utility>

#include "io/block_folder.h"
#include "varve/first_line.h"

namespace varve::tool {

namespace {

std::string first_of(std::initializer_list<const char*> paths) {
  for (const char* path : paths)
    if (std::string line = first_line(path); !line.empty()) return line;
  return "";
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") || line.starts_with("Model")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "";
}

// The whole disk that a partition is on.
std::filesystem::path disk_of(dev_t device) {
  std::error_code error;
  const auto own = std::filesystem::canonical(io::block_folder(device), error);
  return std::filesystem::exists(own / "partition", error) ? own.parent_path() : own;
}

// Below a disk's folder in sysfs.
constexpr std::pair<const char*, const char*> kDiskFacts[] = {
    {"vendor", "device/vendor"},           {"model", "device/model"},
    {"card", "device/name"},               {"card_kind", "device/type"},
    {"card_maker", "device/manfid"},       {"erase_bytes", "device/preferred_erase_size"},
    {"rotational", "queue/rotational"},    {"removable", "removable"},
    {"scheduler", "queue/scheduler"},      {"write_cache", "queue/write_cache"},
    {"most_discard_bytes", "queue/discard_max_bytes"},
};

Json facts_of_disk(const std::filesystem::path& disk) {
  Json facts;
  for (const auto& [key, file] : kDiskFacts)
    if (std::string line = first_line(disk / file); !line.empty()) facts[key] = line;
  if (const std::string sectors = first_line(disk / "size"); !sectors.empty()) facts["bytes"] = std::stoull(sectors) * 512;
  return facts;
}

}  // namespace

Json machine_facts() {
  Json facts;
  facts["model"] = first_of({"/proc/device-tree/model", "/sys/class/dmi/id/product_name"});
  utsname about{};
  if (::uname(&about) == 0) facts["kernel"] = fmt::format("{} {} {}", about.sysname, about.release, about.machine);
  facts["processor"] = processor();
  facts["processors"] = ::sysconf(_SC_NPROCESSORS_ONLN);
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0) facts["memory_bytes"] = static_cast<std::uint64_t>(memory.totalram) * memory.mem_unit;
  facts["page_bytes"] = ::sysconf(_SC_PAGESIZE);
  facts["varve"] = VARVE_VERSION;
  return facts;
}

Json device_facts(const std::string& device) {
  struct stat status {};
  if (::stat(device.c_str(), &status) != 0) return {};
  if (S_ISBLK(status.st_mode)) return {{"kind", "device"}, {"disk", facts_of_disk(disk_of(status.st_rdev))}};
  struct statfs below {};
  const bool is_known = ::statfs(device.c_str(), &below) == 0;
  return {{"kind", "file"},
          {"bytes", static_cast<std::uint64_t>(status.st_size)},
          {"filesystem_below", is_known ? fmt::format("{:#x}", static_cast<std::uint64_t>(below.f_type)) : ""},
          {"disk", facts_of_disk(disk_of(status.st_dev))}};
}

}  // namespace varve::tool

#include "control/mount_table.h"

#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

namespace varve::fuse {

namespace {

// Undoes the \ooo escapes of /proc/self/mountinfo.
std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>(std::strtoul(text.substr(i + 1, 3).c_str(), nullptr, 8)));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

// Of a FUSE filesystem, whose options say user_id=1000.
std::optional<unsigned> user_of(const std::string& options) {
  constexpr std::string_view kKey = ",user_id=";
  const auto at = ("," + options).find(kKey);
  if (at == std::string::npos) return {};
  return static_cast<unsigned>(std::strtoul(options.c_str() + at + kKey.size() - 1, nullptr, 10));
}

// "36 35 98:0 /root /directory options optional… - type source superoptions"
std::optional<MountEntry> parse(const std::string& line) {
  std::istringstream words(line);
  std::string word, options;
  MountEntry entry;
  words >> entry.id >> word >> entry.device >> entry.root >> entry.directory;
  while (words >> word && word != "-") {
  }
  if (!(words >> entry.type >> entry.source >> options)) return {};
  entry.read_only = options == "ro" || options.starts_with("ro,");
  entry.user = user_of(options);
  entry.root = unescape(entry.root);
  entry.directory = unescape(entry.directory);
  entry.source = unescape(entry.source);
  return entry;
}

std::string canonical(const std::string& path) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  const std::unique_ptr<char, Free> resolved(::realpath(path.c_str(), nullptr));
  return resolved ? resolved.get() : "";
}

template <class Condition>
std::vector<MountEntry> find_all(Condition&& condition) {
  std::ifstream table("/proc/self/mountinfo");
  std::vector<MountEntry> found;
  for (std::string line; std::getline(table, line);)
    if (auto entry = parse(line); entry && condition(*entry)) found.push_back(*std::move(entry));
  return found;
}

template <class Condition>
std::optional<MountEntry> find_last(Condition&& condition) {
  auto found = find_all(condition);
  return found.empty() ? std::nullopt : std::optional(std::move(found.back()));
}

}  // namespace

std::optional<MountEntry> find_mount(const std::string& directory) {
  return find_last([&](const MountEntry& entry) { return entry.directory == directory; });
}

std::optional<MountEntry> find_mount_of(const std::string& source) {
  const auto is_of = [&](const MountEntry& entry) { return entry.is_varve() && entry.source == source; };
  auto whole = find_last([&](const MountEntry& entry) { return is_of(entry) && entry.is_whole(); });
  return whole ? whole : find_last(is_of);
}

bool is_dead(const std::string& directory) {
  struct statfs space {};  // stat(2) would be answered from the kernel's cache
  return ::statfs(directory.c_str(), &space) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

std::vector<MountEntry> varve_mounts() {
  return find_all([](const MountEntry& entry) { return entry.is_varve() && entry.is_whole(); });
}

std::optional<MountEntry> find_other_mount(const MountEntry& mounted) {
  return find_last([&](const MountEntry& entry) { return entry.device == mounted.device && entry.id != mounted.id; });
}

std::vector<MountEntry> mounts_of(const std::string& device) {
  return find_all([&](const MountEntry& entry) { return entry.device == device; });
}

std::string resolve_mount_point(const std::string& directory) {
  // A symbolic link to a mount point is followed, unless what it leads to is dead.
  if (std::string whole = canonical(directory); !whole.empty()) return whole;
  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "." || path.filename() == "..") return "";
  const std::string parent = canonical(path.has_parent_path() ? path.parent_path().string() : ".");
  if (parent.empty()) return "";
  return (std::filesystem::path(parent) / path.filename()).string();
}

}  // namespace varve::fuse

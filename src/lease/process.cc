#include "lease/process.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>

#include "io/stacking.h"
#include "remote/network_name.h"

namespace varve::lease {

namespace {

std::array<std::uint8_t, 16> boot_id() {
  std::array<std::uint8_t, 16> id{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::size_t digits = 0;
  for (char c; digits < 32 && file.get(c);) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) continue;
    const int value = std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : std::tolower(c) - 'a' + 10;
    id[digits / 2] = static_cast<std::uint8_t>(id[digits / 2] << 4 | value);
    ++digits;
  }
  if (digits != 32) id.fill(0);
  return id;
}

std::uint64_t pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

struct State {
  bool exists = false;
  std::uint64_t started = 0;
};

// Fields 3 and 22 of /proc/PID/stat; the name in parentheses may hold anything. A zombie holds no files any more.
State state_of(std::uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return {};
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  std::string word;
  State state;
  for (int field = 3; field <= 22 && fields >> word; ++field) {
    if (field == 3) state.exists = word != "Z" && word != "X";
    if (field == 22) state.started = std::stoull(word);
  }
  return state;
}

bool is_known(const std::array<std::uint8_t, 16>& boot) { return boot != std::array<std::uint8_t, 16>{}; }

}  // namespace

format::Process this_process(const std::string& program, const std::string& place) {
  format::Process process;
  process.boot = boot_id();
  process.pid = static_cast<std::uint32_t>(::getpid());
  process.pid_namespace = pid_namespace();
  process.started = state_of(process.pid).started;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) process.host = host.data();
  process.program = program;
  process.place = place;
  return process;
}

format::LockedObject object_of(const std::string& path) {
  if (remote::is_network_name(path)) return {std::hash<std::string>()(path), 1};  // two names of one export: then the holder is asked
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  const io::Layer lowest = io::stack_of(status, path).layers.back();
  return {lowest.device, lowest.inode};
}

Life life_of(const format::Lease& lease, const Self& self) {
  if (self.is_alone) return Life::dead;
  const format::Process& holder = lease.process;
  if (!is_known(holder.boot) || !is_known(self.process.boot)) return Life::unknown;
  // The kernel that it ran under is gone, unless there are two machines.
  if (holder.boot != self.process.boot) return self.may_be_shared ? Life::unknown : Life::dead;
  if (holder.pid_namespace != self.process.pid_namespace) return Life::unknown;
  const State state = state_of(holder.pid);
  if (!state.exists || state.started != holder.started) return Life::dead;
  return lease.object == self.object ? Life::alive : Life::unknown;
}

bool may_write_unseen(const format::Lease& lease, const Self& self) {
  if (life_of(lease, self) != Life::unknown) return false;
  // The lock of a block device is that of its node, and containers have nodes of their own.
  const bool is_in_container = is_known(self.process.boot) && lease.process.boot == self.process.boot &&
                               lease.process.pid_namespace != self.process.pid_namespace;
  return self.may_be_shared || (is_in_container && lease.object == self.object && lease.object.inode == 0);
}

std::string describe(const format::Process& process, const Timestamp& since) {
  std::time_t seconds = since.seconds;
  std::tm parts{};
  const bool is_time = ::gmtime_r(&seconds, &parts) != nullptr;
  std::string text = fmt::format("process {} ({}{}{}) on {}", process.pid, process.program, process.place.empty() ? "" : ", ",
                                 process.place, process.host.empty() ? "an unnamed host" : process.host);
  if (is_time) text += fmt::format(", since {:%Y-%m-%d %H:%M:%S} UTC", parts);
  return text;
}

}  // namespace varve::lease

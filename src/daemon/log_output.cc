#include "daemon/log_output.h"

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/errc.h"
#include "base/logging.h"
#include "daemon/journal_sink.h"
#include "daemon/late_file_sink.h"
#include "remote/network_name.h"

namespace varve::daemon {

namespace {

// Most containers have none: messages go to a file of their own there.
bool has_system_log() { return ::access("/dev/log", W_OK) == 0; }
bool has_journal() { return ::access(kJournalSocket, W_OK) == 0; }

std::string state_folder() {
  if (::geteuid() == 0) return "/var/log/varve";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/') return std::string(state) + "/varve";
  const char* home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.local/state/varve" : "";
}

std::string journal_of(const std::string& directory) { return fmt::format("journalctl -t varve VARVE_DIRECTORY={}", directory); }
constexpr const char* kSystemLog = "the system's log, as varve";

}  // namespace

std::string log_name(const std::string& directory) {
  std::string name;
  for (const char c : directory)
    if (c == '/') name += '+';
    else if (c == '+' || c == '%') name += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else name += c;
  return (name.size() > 1 ? name.substr(1) : "+") + ".log";
}

std::string choose_log(MountOptions& options, bool foreground, const std::string& directory) {
  if (!options.log_file.empty()) return remote::absolute_name(options.log_file);
  if (foreground) return "standard output of the daemon, which runs in the foreground";
  if (has_journal()) return journal_of(directory);
  if (has_system_log()) return kSystemLog;
  const std::string folder = state_folder();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (folder.empty() || error || ::access(folder.c_str(), W_OK) != 0) return "nowhere: no system log, and no folder for a file (log=FILE)";
  options.log_file = fmt::format("{}/{}", folder, log_name(directory));
  return options.log_file;
}

std::string former_log(const std::string& directory) {
  const std::string folder = state_folder(), file = fmt::format("{}/{}", folder, log_name(directory));
  const bool has_file = !folder.empty() && ::access(file.c_str(), F_OK) == 0;
  const std::string usual = has_journal() ? journal_of(directory) : has_system_log() ? kSystemLog : has_file ? file : "";
  return (usual.empty() ? "it has written none" : usual) + ", unless the mount option log= said another place";
}

Status open_log(const MountOptions& options, bool foreground, const std::string& source, const std::string& directory) {
  try {
    if (!options.log_file.empty()) {
      if (options.log_was_asked_for) spdlog::set_default_logger(spdlog::basic_logger_mt("varve", options.log_file));
      else spdlog::set_default_logger(std::make_shared<spdlog::logger>("varve", std::make_shared<LateFileSink>(options.log_file)));
      spdlog::flush_on(spdlog::level::info);
    } else if (!foreground && has_journal()) {
      const JournalSink::Fields fields{{"VARVE_DIRECTORY", directory}, {"VARVE_SOURCE", source}};
      auto sink = std::make_shared<JournalSink>(kJournalSocket, fields);
      spdlog::set_default_logger(std::make_shared<spdlog::logger>("varve", std::move(sink)));
    } else if (foreground) {
      spdlog::set_default_logger(std::make_shared<spdlog::logger>("varve", std::make_shared<spdlog::sinks::stdout_color_sink_mt>()));
    } else {
      spdlog::set_default_logger(spdlog::syslog_logger_mt("varve", "varve", LOG_PID, LOG_DAEMON));
    }
  } catch (const spdlog::spdlog_ex& error) {
    return Error(Errc::io, fmt::format("log: {}", error.what()));
  }
  if (const char* level = std::getenv("VARVE_LOG")) {
    const auto known = spdlog::level::from_str(level);
    if (known != spdlog::level::off || std::string_view(level) == "off") spdlog::set_level(known);
    else log_warn("VARVE_LOG={}: no such level: there are trace, debug, info, warning, error, critical and off", level);
  }
  return {};
}

}  // namespace varve::daemon

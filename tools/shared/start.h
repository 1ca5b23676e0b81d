// What the main() of a tool does first.
#pragma once

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <memory>

#include "base/standard_descriptors.h"

namespace varve {

// Messages of the libraries go to standard error: standard output is for what was asked, be it JSON or a stream. A caller that ignores
// SIGCHLD hands that down, and then no child's end would be told. False: the standard descriptors cannot be opened.
inline bool start_tool(const char* tool) {
  if (!open_standard_descriptors()) return false;
  std::signal(SIGCHLD, SIG_DFL);
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(fmt::format("{}: %v", tool));
  logger->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(logger));
  return true;
}

}  // namespace varve

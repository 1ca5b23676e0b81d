#include "base/logging.h"

#include <array>
#include <string>

#include <spdlog/spdlog.h>

namespace varve {

namespace {

constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::critical};

}  // namespace

void log_message(LogLevel level, fmt::string_view text, fmt::format_args arguments) {
  spdlog::logger* const logger = spdlog::default_logger_raw();
  const auto known = kLevels[static_cast<std::size_t>(level)];
  if (!logger->should_log(known)) return;
  logger->log(known, fmt::vformat(text, arguments));
}

}  // namespace varve

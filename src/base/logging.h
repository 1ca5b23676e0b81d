// Messages for people, by way of spdlog. A source that calls spdlog's own templates compiles all of fmt again for each message's types:
// two seconds of every joined source. Here only the arguments are packed, and one source formats.
#pragma once

#include <fmt/core.h>

namespace varve {

enum class LogLevel { debug, info, warn, error, critical };

// Formats it if somebody hears messages of this level.
void log_message(LogLevel level, fmt::string_view text, fmt::format_args arguments);

template <typename... A>
void log_debug(fmt::format_string<A...> text, A&&... arguments) {
  log_message(LogLevel::debug, text, fmt::make_format_args(arguments...));
}

template <typename... A>
void log_info(fmt::format_string<A...> text, A&&... arguments) {
  log_message(LogLevel::info, text, fmt::make_format_args(arguments...));
}

template <typename... A>
void log_warn(fmt::format_string<A...> text, A&&... arguments) {
  log_message(LogLevel::warn, text, fmt::make_format_args(arguments...));
}

template <typename... A>
void log_error(fmt::format_string<A...> text, A&&... arguments) {
  log_message(LogLevel::error, text, fmt::make_format_args(arguments...));
}

template <typename... A>
void log_critical(fmt::format_string<A...> text, A&&... arguments) {
  log_message(LogLevel::critical, text, fmt::make_format_args(arguments...));
}

}  // namespace varve

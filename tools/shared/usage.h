// What a tool says to a command line that it does not understand: the program, what is wrong, what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "base/nearest.h"

namespace varve {

inline const CLI::App& deepest(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.front());
}

inline std::string full_name(const CLI::App& command) {
  const CLI::App* const above = command.get_parent();
  return above ? full_name(*above) + " " + command.get_name() : command.get_name();
}

inline std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

inline std::string unexpected(const CLI::App& command) {
  std::string first;
  for (const std::string& word : command.remaining(true))
    if (first.empty() || (word.starts_with("-") && !first.starts_with("-"))) first = word;
  if (!first.starts_with("-")) return "'" + first + "' is one argument too many";
  const std::string near = nearest(first.substr(0, first.find('=')), long_options(command));
  if (!near.empty()) return "unknown option " + first + ": did you mean " + near + "?";
  const auto options = command.get_options();
  const bool takes_names = std::ranges::any_of(options, [](const CLI::Option* option) { return option->get_positional(); });
  return "unknown option " + first + (takes_names ? ": if it is a name, write -- before it" : "");
}

// Says what is missing, if it is not taken for an option.
inline std::string missing(const CLI::App& command, const CLI::Option& option) {
  const auto rest = command.remaining(true);
  const auto looks_like_option = [](const std::string& word) { return word.size() > 1 && word.starts_with("-") && word != "--"; };
  if (std::ranges::any_of(rest, looks_like_option)) return unexpected(command);
  const std::string help = option.get_description();
  return option.get_name(true) + " is missing" + (help.empty() ? "" : ": " + help);
}

// Prints help, the version, or the error with the name of the program; returns `wrong` for errors, else 0.
inline int finish_parsing(const CLI::App& app, const CLI::ParseError& error, int wrong, std::ostream& out, std::ostream& err) {
  if (error.get_exit_code() == 0) return app.exit(error, out, err);
  const CLI::App& command = deepest(app);
  const std::string name = full_name(command);
  std::string what = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) what = unexpected(command);
  for (const CLI::Option* option : command.get_options())
    if (error.get_name() == "RequiredError" && option->get_positional() && what == option->get_name(true) + " is required")
      what = missing(command, *option);
  err << name << ": " << what << "\nTry " << name << " --help.\n";
  return wrong;
}

}  // namespace varve

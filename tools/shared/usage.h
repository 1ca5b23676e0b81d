// What a tool says to a command line that it does not understand: the program, what is wrong, what was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

// How many letters to insert, remove, change or swap (optimal string alignment).
inline std::size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

// The name that is nearest, if one is near: a third of the letters may differ.
inline std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& name : names)
    if (const std::size_t distance = distance_of(word, name); distance < least) {
      least = distance;
      best = name;
    }
  return best;
}

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
  return "unknown option " + first + (near.empty() ? "" : ": did you mean " + near + "?");
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
      what = option->get_name(true) + " is missing: " + option->get_description();
  err << name << ": " << what << "\nTry " << name << " --help.\n";
  return wrong;
}

}  // namespace varve

#include "varve/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/interruptible.h"
#include "shared/json_error.h"
#include "shared/output.h"
#include "shared/usage.h"
#include "varve/observe/list_command.h"

namespace varve::tool {

namespace {

// mount.fuse3 calls us as "varve SOURCE DIRECTORY -o …" where no mount.fuse.varve is installed.
bool is_bare_mount(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.size() < 2 || words[0].starts_with('-') || words[1].starts_with('-')) return false;
  const auto commands = app.get_subcommands({});
  return std::ranges::none_of(commands, [&](const CLI::App* command) { return command->get_name() == words[0]; }) &&
         words[0].find('/') != std::string::npos;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// `varve help`, `varve help mount` and `varve version`, as other programs have them.
void translate(std::vector<std::string>& words) {
  if (words.empty()) words = {"--help"};
  if (words[0] == "version") words[0] = "--version";
  if (words[0] != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

// As other filesystems' tools call it.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
    {"ls", "list"}, {"destroy", "delete"}, {"remove", "delete"}, {"rm", "delete"}, {"make", "create"}, {"rollback", "restore"},
    {"recv", "receive"}, {"df", "status"}, {"fstrim", "trim"}, {"defrag", "clean"},
};

// What a program of its own does.
constexpr std::pair<std::string_view, std::string_view> kOtherPrograms[] = {
    {"fsck", "it is a program of its own, `fsck.varve`"},
    {"mkfs", "it is a program of its own, `mkfs.varve`"},
    {"check", "`fsck.varve -n IMAGE` checks a filesystem that is not mounted, `varve scrub DIRECTORY` one that is"},
    {"verify", "`fsck.varve -n IMAGE` checks a filesystem that is not mounted, `varve scrub DIRECTORY` one that is"},
    {"repair", "`fsck.varve -y IMAGE` repairs a filesystem that is not mounted; first see what `fsck.varve -n IMAGE` finds"},
    {"format", "`mkfs.varve` makes a filesystem"},
};

std::string meant_by(const std::string& word, const std::vector<std::string>& names) {
  for (const auto& [other, name] : kOtherWords)
    if (word == other && std::ranges::find(names, name) != names.end()) return std::string(name);
  return nearest(word, names);
}

// What a word that is no command of `app` may have meant.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  const std::string path = full_name(app);
  std::string text = path + ": unknown command '" + word + "'";
  for (const auto& [other, advice] : kOtherPrograms)
    if (!app.get_parent() && word == other) return text + ": " + std::string(advice) + "\n";
  const auto names = names_of(app);
  const std::string near = meant_by(word, names);
  if (!near.empty()) return text + ": did you mean `" + path + " " + near + "`?\n";
  text += ". There are:\n ";
  for (const std::string& name : names) text += " " + name;
  return text + "\nTry " + path + " --help.\n";
}

// The first word that should be a command and is none; empty: there is none.
std::string check_commands(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto commands = at->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty() || word.starts_with('-')) return "";
    const auto found = std::ranges::find(commands, word, [](const CLI::App* command) { return command->get_name(); });
    if (found == commands.end()) return unknown_command(*at, word);
    at = *found;
  }
  return "";
}

}  // namespace

// The parser takes "[a,b]" for two words wherever there may be several, and a name may look so: it does not see such words as they are.
constexpr char kMark = '\1';

void mark(std::vector<std::string>& words) {
  for (std::string& word : words)
    if (word.starts_with('[') || word.starts_with(kMark)) word.insert(word.begin(), kMark);
}

void unmark(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    option->transform([](std::string word) { return word.starts_with(kMark) ? word.substr(1) : word; });
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) unmark(*command);
}

int run(int argc, const char* const* argv, IoLayer io) {
  CLI::App app("Mounts Varve filesystems, looks into them, and unmounts them.", "varve");
  app.set_version_flag("-V,--version", std::string("varve ") + VARVE_VERSION);
  app.require_subcommand(1);
  Action chosen;
  for (const auto declare :
       {declare_mount, declare_umount, declare_list, declare_status, declare_top, declare_map, declare_checkpoint, declare_trim,
        declare_clean, declare_history, declare_scrub, declare_tune, declare_probe, declare_label, declare_uuid, declare_resize,
        declare_snapshot, declare_diff, declare_send, declare_receive, declare_restore, declare_versions, declare_undelete,
        declare_metrics, declare_doctor, declare_report, declare_image, declare_dump, declare_salvage, declare_trial})
    declare(app, chosen);

  std::vector<std::string> words(argv + 1, argv + argc);
  if (is_bare_mount(app, words)) words.insert(words.begin(), "mount");
  translate(words);
  const auto end = std::ranges::find(words, "--");
  const bool wants_json = std::find(words.begin(), end, "--json") != end;
  if (const std::string wrong = check_commands(app, words); !wrong.empty()) {
    io.err << wrong;
    if (wants_json) io.out << json_error(wrong.substr(0, wrong.find('\n')), 1);
    return 1;
  }
  mark(words);
  unmark(app);
  std::ranges::reverse(words);  // as the parser wants them
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    const int code = finish_parsing(app, error, 1, io.out, io.err);
    if (code != 0 && wants_json) io.out << json_error(error.what(), code);
    return code == 0 && !is_written("varve", io.out, io.err) ? 1 : code;
  }
  const Status done = chosen(io);
  if (!done.ok()) {
    const int status = Interruptible::exit_status(1);
    io.err << "varve: " << done.error().message() << std::endl;
    if (wants_json && !io.answered) io.out << json_error(done.error().message(), status) << std::flush;
    return status;
  }
  return is_written("varve", io.out, io.err) ? 0 : 1;
}

}  // namespace varve::tool

#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>
#include <vector>

#include "base/json_text.h"
#include "control/place.h"
#include "shared/interruptible.h"
#include "shared/number_value.h"
#include "shared/terminal.h"
#include "varve/command.h"
#include "varve/observe/top_text.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct TopArguments {
  std::string directory;
  double delay = 1;
  unsigned count = 0;  // 0: until it is ended
  bool batch = false, json = false;
};

constexpr const char* kHelp =
    "Rates are those since the view before: what users write, what reaches the device, what cleaning moves.\n"
    "Write cost: blocks written to the device for each block of users; 1 is the least.\n"
    "Live blocks are in use. Garbage is what was overwritten or removed, until a cleaner collects it. The reserve is kept for cleaning.\n"
    "Clean segments are free to be written. Emptied ones will be, after the next checkpoint.\n"
    "More in varve(1), and in docs/cleaning.md.\n";

volatile sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }

// The views of one screen, as many lines as it has.
class Pages {
 public:
  // The page that was shown stays the one that is shown.
  void fill(const std::string& text) {
    const TerminalSize size = size_of_terminal(STDOUT_FILENO);
    pages_ = pages_of(varve::wrapped(text, size.columns), size.rows - std::min<std::size_t>(size.rows - 1, kFooter));
    shown_ = std::min(shown_, pages_.size() - 1);
  }
  void turn(int by) { shown_ = (shown_ + pages_.size() + static_cast<std::size_t>(by)) % pages_.size(); }
  std::string text() const {
    std::string text;
    for (const std::string& line : pages_[shown_]) text += line + "\x1b[K\n";
    return text;
  }
  std::string number() const {
    return pages_.size() == 1 ? "" : fmt::format("   space: next page ({} of {})", shown_ + 1, pages_.size());
  }

 private:
  static constexpr std::size_t kFooter = 2;
  std::vector<std::vector<std::string>> pages_{{}};
  std::size_t shown_ = 0;
};

// The terminal as a screen of its own, without echo; as it was before at the end, also after Ctrl-C.
class Screen {
 public:
  explicit Screen(std::ostream& out) : out_(out) {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    struct sigaction action {};
    action.sa_handler = note_interrupt;
    for (const int signal : kInterruptions) ::sigaction(signal, &action, nullptr);
    out_ << "\x1b[?1049h\x1b[?25l\x1b[?7l";  // no cursor, and what is too long all the same ends at the edge
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    out_ << "\x1b[?7h\x1b[?25h\x1b[?1049l" << std::flush;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  void show(const std::string& text) {
    view_.fill(text);
    draw(view_, "q: quit   ?: what the words mean");
  }

  // False: the user wants to leave.
  bool wait(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      const char key = key_within(static_cast<int>(std::max<std::int64_t>(left, 0)));
      if (key == 'q' || key == 'Q' || interrupted) return false;
      if (key == '?' || key == 'h') return explain();
      if (key == ' ' || key == 'n') view_.turn(1);
      if (key == 'p' || key == 'b') view_.turn(-1);
      if (key == 0) return true;
      draw(view_, "q: quit   ?: what the words mean");
    }
  }

 private:
  // In place, line by line, so that nothing flickers.
  void draw(const Pages& pages, const char* keys) {
    const std::string footer = fitted(keys + pages.number(), size_of_terminal(STDOUT_FILENO).columns);
    out_ << "\x1b[H" << pages.text() << "\x1b[K\n" << footer << "\x1b[K\x1b[J" << std::flush;
  }

  // 0: none came; 'q' also where there is nobody any more to press one.
  static char key_within(int milliseconds) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    if (::poll(&input, 1, milliseconds) <= 0) return 0;
    return ::read(STDIN_FILENO, &key, 1) <= 0 ? 'q' : key;
  }

  // False: the user wants to leave.
  bool explain() {
    Pages help;
    help.fill(kHelp);
    for (;;) {
      draw(help, "any key: back");
      const char key = key_within(-1);
      if (interrupted || key == 'q') return false;
      if (key != ' ' || help.number().empty()) return true;
      help.turn(1);
    }
  }

  Pages view_;
  std::ostream& out_;
  termios before_{};
};

bool on_a_terminal(IoLayer& io) { return &io.out == &std::cout && ::isatty(STDIN_FILENO) && moves_cursor(STDOUT_FILENO); }

Status watch(TopArguments arguments, IoLayer& io) {
  arguments.directory = TRY(control::find_mounted(arguments.directory));
  using Time = std::chrono::steady_clock;
  Json before;
  Time::time_point then;
  std::optional<Screen> screen;
  for (unsigned i = 0; !arguments.count || i < arguments.count; ++i) {
    auto now = TRY(mount_status(arguments.directory));
    const auto at = Time::now();
    const double seconds = before.is_null() ? static_cast<double>(now.value("uptime_seconds", std::uint64_t{1}))
                                            : std::chrono::duration<double>(at - then).count();
    if (i == 0 && !arguments.batch && !arguments.json && on_a_terminal(io)) screen.emplace(io.out);
    const std::string text = arguments.json ? json_text(now) : top_text(before, now, seconds);
    before = std::move(now);
    then = at;
    if (screen)
      screen->show(text);
    else
      io.out << text << std::endl;
    if (!io.out || i + 1 == arguments.count) break;
    if (screen ? !screen->wait(arguments.delay) : ::usleep(static_cast<useconds_t>(arguments.delay * 1e6)) != 0) break;
  }
  return {};
}

}  // namespace

void declare_top(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "Watch what a mount does: rates, cleaning, write cost");
  command->add_option("directory", arguments->directory, "Where it is mounted")->required();
  command->add_option("-d,--delay", arguments->delay, "Seconds between two views")
      ->check(number_value(0.1, 3600.0, "2"))
      ->capture_default_str();
  command->add_option("-n,--count", arguments->count, "So many views, then the end");
  command->add_flag("-b,--batch", arguments->batch, "One view after the other instead of a screen, as when it is no terminal");
  command->add_flag("--json", arguments->json, "For programs: the status as a line for each view, as varve status --json has it");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return watch(*arguments, io); }; });
}

}  // namespace varve::tool

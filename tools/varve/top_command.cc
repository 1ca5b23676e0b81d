#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <optional>

#include "base/json_text.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/mount_client.h"
#include "varve/top_text.h"

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
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    out_ << "\x1b[?1049h\x1b[?25l\x1b[?7l";  // no cursor, and long lines end at the edge
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    out_ << "\x1b[?7h\x1b[?25h\x1b[?1049l" << std::flush;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  // In place, line by line, so that nothing flickers.
  void show(const std::string& text) {
    std::string frame = "\x1b[H";
    for (const char c : text) frame += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    out_ << frame << "\nq: quit   ?: what the words mean\x1b[K\x1b[J" << std::flush;
  }

  // False: the user wants to leave.
  bool wait(double seconds) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(seconds * 1000));
    char key = 0;
    if (ready > 0 && (::read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q')) return false;
    if (ready > 0 && (key == '?' || key == 'h')) {
      show(kHelp);
      input.revents = 0;
      (void)::poll(&input, 1, -1);  // any key goes back
      if (!interrupted && ::read(STDIN_FILENO, &key, 1) <= 0) return false;
    }
    return !interrupted;
  }

 private:
  std::ostream& out_;
  termios before_{};
};

bool on_a_terminal(IoLayer& io) { return &io.out == &std::cout && ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO); }

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
  command->add_option("-d,--delay", arguments->delay, "Seconds between two views")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
  command->add_option("-n,--count", arguments->count, "So many views, then the end");
  command->add_flag("-b,--batch", arguments->batch, "One view after the other instead of a screen, as when it is no terminal");
  command->add_flag("--json", arguments->json, "For programs: the status as a line for each view, as varve status --json has it");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return watch(*arguments, io); }; });
}

}  // namespace varve::tool

#include "varve/trial/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/descriptor.h"
#include "base/errc.h"

extern char** environ;

namespace varve::tool {

namespace {

struct Pipe {
  Descriptor read_end, write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Error(errc_from_errno(errno), "cannot make a pipe");
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// The program may leave a daemon, which closes its ends.
std::string read_to_end(int fd) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t bytes = ::read(fd, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
}

Result<pid_t> spawn(const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error) return Error(errc_from_errno(error), fmt::format("{}: {}", words[0], std::strerror(error)));
  return child;
}

std::string without_line_end(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& words) {
  Pipe pipe = TRY(make_pipe());
  const Descriptor complaints(::memfd_create("complaints", MFD_CLOEXEC));
  if (!complaints) return Error(errc_from_errno(errno), "cannot make a file in memory");
  const pid_t child = TRY(spawn(words, pipe.write_end.get(), complaints.get()));
  pipe.write_end = Descriptor();
  std::string said = read_to_end(pipe.read_end.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return said;
  ::lseek(complaints.get(), 0, SEEK_SET);  // where the child has written it has moved the place for us, too
  const std::string why = without_line_end(said + read_to_end(complaints.get()));
  return Error(Errc::io, fmt::format("`{}` failed{}{}", fmt::join(words, " "), why.empty() ? "" : ": ", why));
}

std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(std::string(path ? path : "") + ":/usr/local/sbin:/usr/sbin:/sbin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && is_program(std::filesystem::path(folder) / name)) return std::filesystem::path(folder) / name;
  return "";
}

std::string find_own_program(const std::string& name) {
  std::error_code error;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
  return !error && is_program(beside) ? beside.string() : find_program(name);
}

}  // namespace varve::tool

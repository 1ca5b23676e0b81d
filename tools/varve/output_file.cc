#include "varve/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "base/errc.h"

namespace varve::tool {

namespace {

Error failed(const std::string& path) { return {errc_from_errno(errno), fmt::format("{}: cannot be written: {}", path, errno_text())}; }

Status write_all(int file, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    const ssize_t wrote = ::write(file, content.data(), content.size());
    if (wrote < 0) return failed(path);
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

// Of a link: what it leads to is written, be it another file or /dev/stdout, behind which more may follow.
Status write_through(const std::string& path, std::string_view content, const struct stat& target) {
  struct stat out {};
  const bool is_out = ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == target.st_dev && out.st_ino == target.st_ino;
  if (is_out) return write_all(STDOUT_FILENO, path, content);
  const bool is_file = S_ISREG(target.st_mode);
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | (is_file ? O_TRUNC : 0)));
  if (!file) return failed(path);
  TRY(write_all(file.get(), path, content));
  return file.close() ? Status() : Status(failed(path));
}

Status check_replaceable(const std::string& path, const OutputKind& kind) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string begin(kind.begin.size(), '\0');
  const ssize_t read = file ? ::read(file.get(), begin.data(), begin.size()) : -1;
  if (read == 0 || (read == static_cast<ssize_t>(begin.size()) && begin == kind.begin)) return {};
  return Error(Errc::exists, fmt::format("{}: is there already, and is no {}: give another name for it", path, kind.name));
}

Status replace(const std::string& path, std::string_view content, mode_t mode) {
  std::string beside = path + ".XXXXXX";
  Descriptor file(::mkostemp(beside.data(), O_CLOEXEC));
  if (!file) return failed(path);
  Status done = write_all(file.get(), path, content);
  if (done.ok() && (::fchmod(file.get(), mode) != 0 || !file.close() || ::rename(beside.c_str(), path.c_str()) != 0)) done = failed(path);
  if (!done.ok()) ::unlink(beside.c_str());
  return done;
}

mode_t usual_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Status write_output(const std::string& path, std::string_view content, const OutputKind& kind) {
  struct stat status {}, itself {};
  const bool is_link = ::lstat(path.c_str(), &itself) == 0 && S_ISLNK(itself.st_mode);
  if (::stat(path.c_str(), &status) != 0) return errno == ENOENT && !is_link ? replace(path, content, usual_mode()) : Status(failed(path));
  if (S_ISBLK(status.st_mode)) return Error(Errc::invalid, fmt::format("{}: is a device: give a file for the {}", path, kind.name));
  if (S_ISDIR(status.st_mode)) return Error(Errc::invalid, fmt::format("{}: is a directory: give a file for the {}", path, kind.name));
  if (S_ISREG(status.st_mode)) {
    TRY(check_replaceable(path, kind));
    return is_link ? write_through(path, content, status) : replace(path, content, status.st_mode & 07777);
  }
  return write_through(path, content, status);
}

}  // namespace varve::tool

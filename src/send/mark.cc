#include "send/mark.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <cerrno>

#include "base/errc.h"
#include "send/host_file.h"
#include "send/token.h"

namespace varve::send {

namespace {

// What was received as a whole begins with a UUID.
constexpr std::string_view kReceiving = "receiving ";
const std::string kName(kReceivedAttribute);

int change(int directory, const std::string& text) {
  if (!text.empty()) return ::fsetxattr(directory, kName.c_str(), text.data(), text.size(), 0);
  return ::fremovexattr(directory, kName.c_str()) == 0 || errno == ENODATA ? 0 : -1;
}

}  // namespace

Result<std::string> read_mark(int directory) {
  std::string text(8192, 0);
  const ssize_t length = ::fgetxattr(directory, kName.c_str(), text.data(), text.size());
  if (length < 0 && errno != ENODATA && errno != EOPNOTSUPP) return Error(errc_from_errno(errno), errno_text());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

Status write_mark(int directory, const std::string& text) {
  if (unlocking(directory, ".", [&] { return change(directory, text); }) == 0) return {};
  return Error(errc_from_errno(errno), errno_text());
}

std::string mark_of(const Interrupted& interrupted) {
  return std::string(kReceiving) + token_of(interrupted.begin) + (interrupted.path.empty() ? "" : " " + interrupted.path);
}

Result<std::optional<Interrupted>> interrupted_from(const std::string& mark) {
  if (!mark.starts_with(kReceiving)) return std::optional<Interrupted>();
  const std::string rest = mark.substr(kReceiving.size());
  const std::size_t space = std::min(rest.find(' '), rest.size());
  auto begin = begin_from(std::string_view(rest).substr(0, space));
  if (!begin.ok()) return Error(Errc::corrupt, "the attribute " + kName + " makes no sense");
  Interrupted found{std::move(*begin), space < rest.size() ? rest.substr(space + 1) : ""};
  if (!found.path.empty() && !is_sound_path(found.path)) return Error(Errc::corrupt, "the attribute " + kName + " makes no sense");
  return std::optional<Interrupted>(std::move(found));
}

}  // namespace varve::send

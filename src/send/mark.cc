#include "send/mark.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

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

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Result<std::string> read_mark(int directory) {
  std::string text(64u << 10, 0);
  const ssize_t length = ::fgetxattr(directory, kName.c_str(), text.data(), text.size());
  if (length < 0 && errno != ENODATA && errno != EOPNOTSUPP) return Error(errc_from_errno(errno), errno_text());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

Status write_mark(int directory, const std::string& text) {
  if (unlocking_directory(directory, [&] { return change(directory, text); }) == 0) return {};
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

// "UUID serial name/serial/name": the sender's snapshot, how it was called here when it was made, its serial here (0: it has not been made
// yet), and how the sender calls it. No name has a slash. Marks from before end with the first name.
std::string mark_of(const State& state, const std::string& name, Serial here) {
  return fmt::format("{} {} {}/{}/{}", state.uuid, state.serial, name, here.v, state.name);
}

std::optional<Whole> whole_in(const std::string& mark) {
  const std::size_t first = mark.find(' '), second = first == std::string::npos ? first : mark.find(' ', first + 1);
  if (second == std::string::npos) return std::nullopt;
  const std::string names = mark.substr(second + 1);
  const std::size_t slash = std::min(names.find('/'), names.size()), other = std::min(names.find('/', slash + 1), names.size());
  Whole whole{{mark.substr(0, first), number_in(mark.substr(first + 1, second - first - 1)), {}}, names.substr(0, slash), {}};
  whole.sent.name = other < names.size() ? names.substr(other + 1) : whole.name;
  if (slash < names.size()) whole.here = Serial{number_in(names.substr(slash + 1, other - slash - 1))};
  return whole.name.empty() ? std::nullopt : std::optional(std::move(whole));
}

std::string mark_behind(const std::string& mark, Serial snapshot) {
  if (!mark.starts_with(kKeeping)) return mark;
  const auto whole = whole_in(mark.substr(kKeeping.size()));
  return whole ? mark_of(whole->sent, whole->name, snapshot) : mark;
}

}  // namespace varve::send

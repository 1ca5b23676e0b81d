#include "varve/snapshots/named_path.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/errc.h"
#include "base/utf8.h"

namespace varve::tool {

namespace files = std::filesystem;

namespace {

Error no_such_path(const std::string& path, const std::error_code& why) {
  return {errc_from_errno(why.value()), fmt::format("{}: {}", printable(path), why.message())};
}

Result<files::path> absolute_path(const std::string& path) {
  std::error_code failure;
  files::path wanted = files::absolute(path, failure).lexically_normal();
  if (failure) return no_such_path(path, failure);
  return wanted.has_filename() || wanted == wanted.root_path() ? wanted : wanted.parent_path();
}

bool is_symbolic_link(const files::path& path) {
  std::error_code failure;
  return files::is_symlink(files::symlink_status(path, failure));
}

Result<std::string> place_of(const files::path& wanted) {
  std::error_code failure;
  const files::path parent = files::weakly_canonical(wanted.parent_path(), failure);
  return failure ? Result<std::string>(no_such_path(wanted, failure)) : Result<std::string>((parent / wanted.filename()).string());
}

// The path up to the first link that is in the filesystem, and what was given behind that as it is.
std::string path_without_links(const files::path& wanted, const control::InnerPlace& followed) {
  files::path above;
  for (auto part = wanted.begin(); part != wanted.end(); ++part) {
    const files::path parent = above;
    above /= *part;
    if (!is_symbolic_link(above)) continue;
    std::error_code failure;
    const auto inner = control::find_inner(files::canonical(parent, failure).string());
    if (failure || !inner.ok() || inner->whole != followed.whole) continue;
    files::path rest = inner->path;
    for (; part != wanted.end(); ++part) rest /= *part;
    return rest.string();
  }
  return followed.path;
}

Result<NamedPath> inner_path_of(const files::path& wanted) {
  control::InnerPlace at = TRY(control::find_inner(TRY(place_of(wanted))));
  if (at.in_snapshots)
    return Error(Errc::read_only, fmt::format("{}: it is in a snapshot, which never changes: name the path in the filesystem itself{}",
                                              printable(at.place), at.whole.empty() ? "" : ", below " + printable(at.whole)));
  std::string direct = path_without_links(wanted, at);
  return NamedPath{std::move(at), std::move(direct)};
}

}  // namespace

Result<std::string> NamedPath::whole() const {
  if (!at.whole.empty()) return at.whole;
  return Error(Errc::unsupported, fmt::format("{}: only a part of its filesystem is mounted here, and this command needs all of it: give "
                                              "it where the whole is mounted, or mount that here, too", printable(at.place)));
}

Result<NamedPath> named_path(const std::string& path) {
  const files::path wanted = TRY(absolute_path(path));
  auto found = inner_path_of(wanted);
  return found.fails_with(Errc::not_varve) && is_symbolic_link(wanted) ? followed_path(path) : std::move(found);
}

Result<NamedPath> followed_path(const std::string& path) {
  std::error_code failure;
  const files::path end = files::canonical(TRY(absolute_path(path)), failure);
  return failure ? Result<NamedPath>(no_such_path(path, failure)) : inner_path_of(end);
}

}  // namespace varve::tool

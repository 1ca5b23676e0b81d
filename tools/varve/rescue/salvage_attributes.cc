#include "varve/rescue/salvage_attributes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace varve::tool {

namespace {

template <class Function>
auto call(fs::Filesystem& filesystem, Function&& function) {
  fs::Operation operation(filesystem.operations(), fs::Caller{});
  return fs::block_on(operation, [&] { return function(operation); });
}

bool set_xattr(const SalvagedPlace& place, const std::string& name, std::span<const std::byte> value) {
  if (place.fd >= 0) return ::fsetxattr(place.fd, name.c_str(), value.data(), value.size(), 0) == 0;
  const std::string there = way_to(place.directory) + "/" + place.name;
  return ::lsetxattr(there.c_str(), name.c_str(), value.data(), value.size(), 0) == 0;
}

void copy_xattrs(fs::Filesystem& filesystem, Ino ino, const SalvagedPlace& place, SalvageReport& report) {
  const auto names = call(filesystem, [&](fs::Operation& op) { return filesystem.listxattr(op, ino); });
  if (!names.ok()) return report.lose(place.path, "extended attributes: " + names.error().message());
  for (const std::string& name : *names) {
    const auto value = call(filesystem, [&](fs::Operation& op) { return filesystem.getxattr(op, ino, name); });
    if (!value.ok() || !set_xattr(place, name, std::as_bytes(std::span(*value))))
      report.lose(place.path, fmt::format("extended attribute {}: {}", name, value.ok() ? errno_text() : value.error().message()));
  }
}

// A program that runs as its owner would else run as the user that copies it, where it cannot have that owner.
mode_t mode_of(const fs::Attr& attr, bool is_owned) {
  const bool may_change_user = is_owned || S_ISDIR(attr.mode) || (attr.uid == ::geteuid() && attr.gid == ::getegid());
  return attr.mode & (may_change_user ? 07777 : 01777);
}

// Of what was made, not of what somebody else has put in its place since: no link is followed.
bool change_mode(const SalvagedPlace& place, mode_t mode) {
  if (place.fd >= 0) return ::fchmod(place.fd, mode) == 0;
  const Descriptor named(::openat(place.directory, place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return named && ::chmod(way_to(named.get()).c_str(), mode) == 0;
}

}  // namespace

// In this order: a change of the owner takes capabilities away, and the bits of set-user-ID programs; the rest takes nothing.
void copy_attributes(fs::Filesystem& filesystem, const fs::Attr& attr, const SalvagedPlace& place, SalvageReport& report) {
  const char* name = place.name.c_str();
  const bool is_root = ::geteuid() == 0;
  const bool is_owned = is_root && ::fchownat(place.directory, name, attr.uid, attr.gid, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_root && !is_owned) report.lose(place.path, "its owner: " + errno_text());
  copy_xattrs(filesystem, attr.ino, place, report);
  if (!S_ISLNK(attr.mode) && !change_mode(place, mode_of(attr, is_owned)))
    report.lose(place.path, "its mode: " + errno_text());
  auto time = [](const Timestamp& t) { return timespec{static_cast<time_t>(t.seconds), static_cast<long>(t.nanoseconds)}; };
  const timespec times[] = {time(attr.atime), time(attr.mtime)};
  if (::utimensat(place.directory, name, times, AT_SYMLINK_NOFOLLOW) != 0) report.lose(place.path, "its times: " + errno_text());
}

}  // namespace varve::tool

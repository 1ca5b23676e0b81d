// Where inodes are in one snapshot, from its root on: "/etc/fstab".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compare/difference.h"
#include "compare/entries.h"
#include "compare/question.h"

namespace varve::compare {

class Paths {
 public:
  Paths(const Ask& ask, Serial snapshot) : ask_(ask), snapshot_(snapshot) {}

  // What is known already, so that it need not be looked for: all of a difference, or one directory.
  enum class Side : std::uint8_t { before, after };
  void know_directories(const std::map<Ino, InodeChange>& inodes, Side side);
  void know_directory(Ino directory, const Name& name) { directories_.insert_or_assign(directory, name); }

  // Errc::corrupt: its parents lead to no root. Of what has gone from the newest state meanwhile the name is "inode N".
  Result<std::string> of(const Name& name);
  Result<std::string> of_directory(Ino directory);
  // A name of each of these files, one of several; those without a name are not in the result. Nothing leads from a file to its names. So
  // names in directories are read until all are found, first in directories that were made just before such a file: trees that were copied
  // or unpacked have them there.
  // `apart`: these names do not count. `top`: only those below this directory do.
  Result<std::map<Ino, std::string>> of_files(std::set<Ino> files, const std::set<Name>& apart = {}, Ino top = kRootIno);

 private:
  // Each entry of a directory, until `visit` returns false. Remembers the names of directories. Returns the parent.
  Result<Ino> read(Ino directory, const std::function<bool(const Entries::Entry&)>& visit);
  bool is_gone(const Error& error) const;
  Result<Name> name_of(Ino directory);
  Result<Name> find_name(Ino directory);

  const Ask& ask_;
  const Serial snapshot_;
  std::map<Ino, Name> directories_;
  std::map<Ino, std::string> paths_;  // of directories
};

}  // namespace varve::compare

// What is to become of names and inodes so that they fit together: a pure decision over the facts.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "repair/action.h"
#include "repair/survey.h"

namespace varve::repair {

struct InodeVerdict {
  std::uint32_t nlink = 0;
  Ino parent;           // directories
  bool orphan = false;  // stays in the list of orphans
};

struct NewName {
  Ino child;
  std::uint8_t type = 0;
  std::string name;  // wanted; the directory may have it already
};

struct Verdicts {
  using NamePlace = std::pair<Ino, std::uint64_t>;  // directory, cookie

  bool judged = false;  // false: links, names and orphans stay as they are
  std::unordered_map<Ino, InodeVerdict> inodes;
  std::map<NamePlace, std::string> removed;  // with the reason
  std::map<NamePlace, std::uint8_t> types;   // wrong ones, with the right type
  std::map<Ino, std::vector<NewName>> added;  // by directory
  std::set<Ino> made;                         // directories to make: the root, lost+found
};

// `next_ino` is advanced for inodes that must be made.
Verdicts judge(const Facts& facts, Ino& next_ino, ActionLog& actions);

}  // namespace varve::repair

// All that a snapshot shows, found by walking it from end to end: what a comparison of trees must agree with.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "compare/difference.h"
#include "support/fs_fixture.h"

namespace varve::test {

struct WalkedInode {
  fs::Attr attr;
  std::map<std::string, std::vector<std::byte>> xattrs;
  std::string target;
  std::map<std::uint64_t, std::uint32_t> blocks;  // CRC of each file block that is not all zeros
  std::set<compare::Name> names;
};

struct WalkedState {
  std::map<Ino, WalkedInode> inodes;
  std::map<std::string, Ino> paths;
};

Result<WalkedState> walk(FsFixture& fixture, Serial snapshot);

}  // namespace varve::test

// Whether names and inodes fit together: dangling entries, link counts, parents, orphans, connection to the root.
#pragma once

#include <vector>

#include "check/context.h"

namespace varve::check {

struct InodeFacts {
  Ino ino;
  Ino parent;  // directories
  std::uint32_t nlink = 0;
  std::uint32_t names = 0;           // entries that lead here
  std::uint32_t subdirectories = 0;  // entries in here that lead to directories
  std::uint8_t type = 0;             // DT_*
  enum class Connection : std::uint8_t { unknown, visiting, connected, lost } connection = Connection::unknown;
};

struct NameEdge {  // one directory entry
  Ino child;
  std::uint64_t directory_and_type;  // directory << 4 | DT_*

  static NameEdge make(Ino directory, Ino child, std::uint8_t type) { return {child, directory.v << 4 | type}; }
  Ino directory() const { return Ino{directory_and_type >> 4}; }
  std::uint8_t type() const { return directory_and_type & 0xF; }
};

struct Namespace {
  std::vector<InodeFacts> inodes;  // ascending by ino
  std::vector<NameEdge> edges;
  std::vector<Ino> orphans;  // ascending

  InodeFacts* find(Ino ino);
  // Room for as many as the superblock tells of, as far as such a device can hold them: growing would take twice as much.
  void expect(const Context& context);
  // There are so many more that what memory may be taken is taken: the others are not kept, and names are not compared.
  bool is_full(const Context& context);
};

void check_links(Context& context, Namespace& names);

}  // namespace varve::check

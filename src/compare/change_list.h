// What differs between two snapshots, as people and programs are told: with paths.
#pragma once

#include <string>
#include <vector>

#include "compare/difference.h"
#include "compare/question.h"

namespace varve::compare {

struct Change {
  enum class Kind : std::uint8_t {
    created,
    removed,
    replaced,  // another file has its name now
    renamed,   // `former` is the path before
    linked,    // one more name of a file that was there
    unlinked,  // one name less
    modified,  // its content
    metadata,  // only what `what` says
  };
  Kind kind = Kind::created;
  Ino ino;
  std::uint32_t mode = 0;         // as st_mode, of the newer side where it is there; 0: unknown
  std::string path, former;
  std::vector<std::string> what;  // modified, metadata: "content", "mode", "owner", "times", "xattrs", "flags", "target", "allocation"
};
const char* name_of(Change::Kind kind);

// Sorted by path. A directory is named if more has changed of it than its entries; access times do not count.
Result<std::vector<Change>> list_changes(const Ask& ask, const Difference& difference, Serial before, Serial after);

}  // namespace varve::compare

// What an image with snapshots has: whose its blocks are, and what it shows.
#pragma once

#include <map>
#include <string>

#include "format/map_record.h"
#include "repair/populated.h"

namespace varve::repair::test {

// Whose a live block is, by the checker's own reading.
struct Owned {
  format::ReverseEntry owner;
  std::string snapshot;  // the newest that has it, where the filesystem in use does not; empty: that
};
using Owners = std::map<BlockAddr, Owned>;

Owners owners_of(io::MemDevice& device);
bool is_node(const Owned& owned, format::TreeId tree);

struct States {
  Seen in_use;
  std::map<std::string, Seen> snapshots;
};
States states_of(const io::MemDevice& device);

// The number of files that cannot be read as they were: what is read is what was there.
std::uint64_t lost_of(const Seen& expected, const Seen& found);

Outcome repaired(io::BlockDevice& device, const RepairOptions& options = {.verify_data = true});
std::string actions_of(const Outcome& outcome);

// Nothing is left but what must be: data and parts of trees that nobody can bring back.
std::uint64_t errors_but_damage(const check::Report& report);

// It can be written to, the snapshots can be deleted, and then nothing is wrong and nothing is held.
void expect_whole_without_snapshots(io::MemDevice& device);

}  // namespace varve::repair::test

// Mutations of whole images: what is done to one piece of their metadata. Any numbers are a valid mutation, since places are taken modulo
// what there is. So random ones, those of libFuzzer and files from before all work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fuzz/target.h"

namespace varve::fuzz {

enum class Act : std::uint8_t {
  alter_field,   // of an element
  alter_key,
  remove,
  duplicate,     // with another key, where elements have one
  swap,          // what two elements hold
  copy,          // an element from another block of the same part
  splice,        // a field twice, or left out
  alter_header,  // of the block
  raw_bytes,
  copy_block,    // over another, which says its own address
  one_copy,      // superblocks: only some of the copies are written
  lose,          // the block is zeros
  spoil,         // a block of a file has other bytes
  keep_reference,  // checksums that others hold of the block stay as they were
};
inline constexpr unsigned kActs = 14;

struct Mutation {
  Act act = Act::alter_field;
  std::uint8_t how = 0;      // a number comes about
  std::uint8_t field = 0;
  std::uint8_t other = 0;    // block or element
  std::uint16_t block = 0;
  std::uint16_t element = 0;
  std::uint64_t value = 0;

  bool operator==(const Mutation&) const = default;
};
inline constexpr std::size_t kMutationBytes = 16;
inline constexpr std::size_t kMostMutations = 12;

// Bit of Recipe::plan: only blocks of the tables of snapshots are changed.
inline constexpr std::uint8_t kOnlyTables = 16;

// A base image, what is done with it, and how it is then used.
struct Recipe {
  std::uint8_t base = 0;
  std::uint8_t plan = 0;  // this bit, and those of structure/trial.h
  std::vector<Mutation> mutations;

  bool operator==(const Recipe&) const = default;
};

// The input of the target: base, plan, mutations. What is missing in the last one is zeros.
Recipe parse_recipe(Input input);
std::vector<std::byte> bytes_of(const Recipe& recipe);
const char* name_of(Act act);

Mutation random_mutation(Random& random);
Recipe random_recipe(Random& random);
// Changes a recipe a little, as a fuzzer that keeps what was worth it does.
void vary(Recipe& recipe, Random& random);

}  // namespace varve::fuzz

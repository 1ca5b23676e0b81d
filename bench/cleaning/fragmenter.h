// Makes a filesystem fragmented in a way that can be repeated: a list of operations on files, drawn by lot once, written
// down and replayed. The samples are those of P. Janda, "Free-space management in ScherlFS", figure 7.1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rig.h"

namespace varve::bench {

struct FileOperation {
  enum class Kind : std::uint8_t { create, update, remove };
  Kind kind = Kind::create;
  std::uint64_t file = 0;    // number
  std::uint64_t offset = 0;  // bytes
  std::uint64_t length = 0;
};

// "standard", "coarse", "small", "medium"; `scale` multiplies all amounts. Empty: no such sample.
std::vector<FileOperation> make_fragmentation(std::string_view sample, double scale, std::uint64_t seed);

// One operation a line: "create FILE LENGTH", "update FILE OFFSET LENGTH", "remove FILE". Throw std::runtime_error.
void record(const std::vector<FileOperation>& operations, const std::string& path);
std::vector<FileOperation> recorded(const std::string& path);

struct ReplayedFile {
  Ino ino;
  std::uint64_t bytes = 0;
};
// Into the root directory, as files named by their numbers. What is left.
std::map<std::uint64_t, ReplayedFile> replay(Rig& rig, const std::vector<FileOperation>& operations);

}  // namespace varve::bench

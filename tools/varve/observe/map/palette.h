// How a cell looks, by what is asked about it: a character and a colour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "varve/observe/map/device_map.h"

namespace varve::tool {

enum class Aspect : std::uint8_t { live, age, group, owner };

struct Look {
  char sign = ' ';
  std::uint8_t red = 0, green = 0, blue = 0;

  bool operator==(const Look&) const = default;
};

// Is black better to be read on it than white?
constexpr bool is_light(const Look& look) { return 299 * look.red + 587 * look.green + 114 * look.blue > 128'000; }

struct LegendLine {
  Look look;
  std::string text;
};

inline constexpr std::size_t kDistinctColours = 9;  // that eyes without red or green tell apart, too; with signs there may be more

class Palette {
 public:
  // At most so many owners, those with most blocks, get a look of their own; there are never more than letters.
  Palette(const DeviceMap& map, Aspect aspect, std::size_t most_owners = ~std::size_t{0});

  static const Look& empty();   // of a cell with nothing live
  std::string title() const;    // what is shown of each cell
  bool has_signs() const { return aspect_ == Aspect::group || aspect_ == Aspect::owner; }  // colours alone may not tell

  Look look_of(const MapCell& cell) const;
  // Line by line what the looks mean. Owners are called by their names, or by their inode numbers.
  std::vector<LegendLine> legend(const std::map<Ino, std::string>& names) const;
  // The owners that have a sign of their own, in the order of the legend.
  std::vector<Ino> named_owners() const;

 private:
  Look look_of_owner(Ino owner) const;
  Look look_of_group(std::uint8_t group) const;
  std::vector<LegendLine> owners_legend(const std::map<Ino, std::string>& names) const;

  const DeviceMap& map_;
  const Aspect aspect_;
  const std::size_t most_owners_;
  std::vector<std::uint8_t> groups_;  // those in the map, in order
};

}  // namespace varve::tool

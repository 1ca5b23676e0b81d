// How a cell looks, by what is asked about it: a character and a colour.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "varve/map/device_map.h"

namespace varve::tool {

enum class Aspect : std::uint8_t { live, age, group, owner };

struct Look {
  char sign = ' ';
  std::uint8_t red = 0, green = 0, blue = 0;

  bool operator==(const Look&) const = default;
};

struct LegendLine {
  Look look;
  std::string text;
};

class Palette {
 public:
  Palette(const DeviceMap& map, Aspect aspect) : map_(map), aspect_(aspect) {}

  Look look_of(const MapCell& cell) const;
  // Line by line what the looks mean. Owners are called by their names, or by their inode numbers.
  std::vector<LegendLine> legend(const std::map<Ino, std::string>& names) const;
  // The owners that have a sign of their own, in the order of the legend.
  std::vector<Ino> named_owners() const;

 private:
  Look look_of_owner(Ino owner) const;
  std::vector<LegendLine> owners_legend(const std::map<Ino, std::string>& names) const;

  const DeviceMap& map_;
  const Aspect aspect_;
};

}  // namespace varve::tool

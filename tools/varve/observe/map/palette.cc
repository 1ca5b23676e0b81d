#include "varve/observe/map/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/utf8.h"
#include "format/map_record.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

constexpr Look kEmpty{'.', 12, 12, 16};
constexpr std::string_view kRamp = "123456789#";
constexpr std::size_t kSteps = kRamp.size();
constexpr std::string_view kOwnerSigns = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::size_t kMostOwners = kOwnerSigns.size();
constexpr Look kNodes{'+', 190, 190, 190}, kOthers{'-', 50, 50, 50}, kChain{'=', 50, 50, 50};

// Viridis without its darkest fifth, which looks nearly empty: even steps for the eye, also for eyes that do not tell red from green.
constexpr std::array<std::array<std::uint8_t, 3>, kSteps> kRampColours{{{65, 68, 135},
                                                                        {54, 92, 140},
                                                                        {44, 114, 142},
                                                                        {36, 137, 141},
                                                                        {34, 158, 136},
                                                                        {49, 178, 123},
                                                                        {86, 197, 102},
                                                                        {137, 212, 71},
                                                                        {196, 224, 38},
                                                                        {253, 231, 37}}};

// After Okabe and Ito, and Tol: eyes that do not tell red from green tell these apart, too, and from the greys above.
constexpr std::array<std::array<std::uint8_t, 3>, kDistinctColours> kDistinct{{{230, 159, 0},
                                                                               {86, 180, 233},
                                                                               {0, 158, 115},
                                                                               {240, 228, 66},
                                                                               {0, 114, 178},
                                                                               {213, 94, 0},
                                                                               {204, 121, 167},
                                                                               {51, 34, 136},
                                                                               {136, 34, 85}}};

Look ramp(std::size_t step) {
  step = std::min(step, kSteps - 1);
  return {kRamp[step], kRampColours[step][0], kRampColours[step][1], kRampColours[step][2]};
}

std::size_t live_step(double share) { return static_cast<std::size_t>(std::max(std::ceil(share * kSteps) - 1, 0.0)); }

// Powers of two of a share of the device: hot at 1/256 and less, cold at 2 and more.
std::size_t age_step(double share) {
  const double step = std::log2(std::max(share, 1e-9)) + static_cast<double>(kSteps) - 2;
  return kSteps - 1 - static_cast<std::size_t>(std::clamp(step, 0.0, static_cast<double>(kSteps) - 1));
}

// Beyond the distinct ones they come again, darker and then paler: the signs tell them apart.
Look distinct(std::size_t index, char sign) {
  const auto& rgb = kDistinct[index % kDistinct.size()];
  const std::size_t round = index / kDistinct.size();
  const auto shade = [round](std::uint8_t part) {
    return static_cast<std::uint8_t>(round == 0 ? part : round == 1 ? part * 11 / 20 : 255 - (255 - part) * 2 / 5);
  };
  return {sign, shade(rgb[0]), shade(rgb[1]), shade(rgb[2])};
}

char sign_of_group(std::uint8_t group) { return static_cast<char>(group < 10 ? '0' + group : 'a' + group - 10); }

std::string legend_of_group(std::uint8_t group) {
  if (group == format::kGroupNodes) return "tree nodes";
  if (group == format::kGroupChain) return "chain: chunks and small writes";
  return fmt::format("group {}", group);
}

std::vector<LegendLine> live_legend() {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}};
  for (std::size_t i = 0; i < kSteps; ++i)
    lines.push_back({ramp(i), fmt::format("{} to {} % live", i * 100 / kSteps, (i + 1) * 100 / kSteps)});
  return lines;
}

std::vector<LegendLine> age_legend(std::uint64_t blocks) {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const double share = std::exp2(1.0 - static_cast<double>(i));  // of the step's younger end
    const auto bytes = static_cast<std::uint64_t>(share * static_cast<double>(blocks)) << kBlockShift;
    lines.push_back({ramp(i), i + 1 == kSteps ? "younger" : "at least " + size_text(bytes) + " written since"});
  }
  return lines;
}

}  // namespace

Palette::Palette(const DeviceMap& map, Aspect aspect, std::size_t most_owners)
    : map_(map), aspect_(aspect), most_owners_(std::min({most_owners, kMostOwners, map.owners.size()})) {
  std::array<bool, 256> seen{};
  for (const MapCell& cell : map_.cells) seen[cell.group] = true;
  for (unsigned group = 0; group < seen.size(); ++group)
    if (seen[group] && group != kNoGroup) groups_.push_back(static_cast<std::uint8_t>(group));
}

const Look& Palette::empty() { return kEmpty; }

std::string Palette::title() const {
  switch (aspect_) {
    case Aspect::live: return "share of live blocks";
    case Aspect::age: return "written since the blocks were";
    case Aspect::group: return "group of blocks that were placed together";
    case Aspect::owner: return "owner of most blocks";
  }
  return "";
}

Look Palette::look_of_group(std::uint8_t group) const {
  if (group == kNoGroup) return kEmpty;
  if (group == format::kGroupNodes) return kNodes;
  if (group == format::kGroupChain) return kChain;
  const auto rank = std::ranges::find(groups_, group) - groups_.begin();
  return distinct(static_cast<std::size_t>(rank), sign_of_group(group));
}

Look Palette::look_of(const MapCell& cell) const {
  if (!cell.live) return kEmpty;
  switch (aspect_) {
    case Aspect::live: return ramp(live_step(cell.live_share()));
    case Aspect::age: return ramp(age_step(cell.age / static_cast<double>(std::max<std::uint64_t>(map_.blocks, 1))));
    case Aspect::group: return look_of_group(cell.group);
    case Aspect::owner: return look_of_owner(cell.owner);
  }
  return kEmpty;
}

Look Palette::look_of_owner(Ino owner) const {
  if (!owner) return kNodes;
  for (std::size_t i = 0; i < most_owners_; ++i)
    if (map_.owners[i].first == owner) return distinct(i, kOwnerSigns[i]);
  return kOthers;
}

std::vector<Ino> Palette::named_owners() const {
  std::vector<Ino> owners;
  if (aspect_ != Aspect::owner) return owners;
  for (std::size_t i = 0; i < most_owners_; ++i) owners.push_back(map_.owners[i].first);
  return owners;
}

std::vector<LegendLine> Palette::owners_legend(const std::map<Ino, std::string>& names) const {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}, {kNodes, "metadata, " + size_text(map_.node_blocks << kBlockShift)}};
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < map_.owners.size(); ++i) {
    const auto& [ino, blocks] = map_.owners[i];
    if (i >= most_owners_) {
      others += blocks;
      continue;
    }
    const auto name = names.find(ino);
    lines.push_back({distinct(i, kOwnerSigns[i]),
                     fmt::format("{}, {}", name != names.end() ? printable(name->second) : fmt::format("inode {}", ino),
                                 size_text(blocks << kBlockShift))});
  }
  if (others)
    lines.push_back({kOthers, fmt::format("{} other files, {}", map_.owners.size() - most_owners_,
                                          size_text(others << kBlockShift))});
  return lines;
}

std::vector<LegendLine> Palette::legend(const std::map<Ino, std::string>& names) const {
  switch (aspect_) {
    case Aspect::live: return live_legend();
    case Aspect::age: return age_legend(map_.blocks);
    case Aspect::owner: return owners_legend(names);
    case Aspect::group: break;
  }
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}};
  for (const std::uint8_t group : groups_) lines.push_back({look_of_group(group), legend_of_group(group)});
  return lines;
}

}  // namespace varve::tool

#include "varve/map/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/utf8.h"
#include "format/map_record.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

constexpr Look kEmpty{'.', 24, 24, 32};
constexpr std::string_view kRamp = "123456789#";
constexpr std::size_t kSteps = kRamp.size();
constexpr std::string_view kOwnerSigns = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr Look kNodes{'+', 150, 150, 150}, kOthers{'-', 90, 90, 110};

// From blue over green and yellow to red.
constexpr std::array<std::array<std::uint8_t, 3>, kSteps> kHeat{{{49, 54, 149},
                                                                {69, 117, 180},
                                                                {80, 150, 190},
                                                                {90, 175, 160},
                                                                {100, 190, 110},
                                                                {160, 205, 90},
                                                                {225, 215, 85},
                                                                {250, 175, 80},
                                                                {240, 110, 65},
                                                                {215, 48, 39}}};

Look heat(std::size_t step) {
  step = std::min(step, kSteps - 1);
  return {kRamp[step], kHeat[step][0], kHeat[step][1], kHeat[step][2]};
}

std::size_t live_step(double share) { return static_cast<std::size_t>(std::max(std::ceil(share * kSteps) - 1, 0.0)); }

// Powers of two of a share of the device: hot at 1/256 and less, cold at 2 and more.
std::size_t age_step(double share) {
  const double step = std::log2(std::max(share, 1e-9)) + static_cast<double>(kSteps) - 2;
  return kSteps - 1 - static_cast<std::size_t>(std::clamp(step, 0.0, static_cast<double>(kSteps) - 1));
}

// Even steps around the colour wheel, by the golden angle so that neighbours differ.
Look spread(std::size_t index, char sign) {
  const double hue = std::fmod(static_cast<double>(index) * 137.508, 360.0) / 60.0;
  const double x = 1 - std::fabs(std::fmod(hue, 2.0) - 1);
  const std::array<std::array<double, 3>, 6> sectors{{{1, x, 0}, {x, 1, 0}, {0, 1, x}, {0, x, 1}, {x, 0, 1}, {1, 0, x}}};
  const auto& rgb = sectors[std::min<std::size_t>(static_cast<std::size_t>(hue), 5)];
  const auto shade = [](double part) { return static_cast<std::uint8_t>(70 + 175 * part); };
  return {sign, shade(rgb[0]), shade(rgb[1]), shade(rgb[2])};
}

Look look_of_group(std::uint8_t group) {
  if (group == kNoGroup) return kEmpty;
  if (group == format::kGroupNodes) return kNodes;
  if (group == format::kGroupChain) return spread(0, '=');
  return spread(1U + group, static_cast<char>(group < 10 ? '0' + group : 'a' + group - 10));
}

std::string legend_of_group(std::uint8_t group) {
  if (group == format::kGroupNodes) return "tree nodes";
  if (group == format::kGroupChain) return "chain: chunks and small writes";
  return fmt::format("group {}", group);
}

std::vector<LegendLine> live_legend() {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}};
  for (std::size_t i = 0; i < kSteps; ++i)
    lines.push_back({heat(i), fmt::format("{} to {} % live", i * 100 / kSteps, (i + 1) * 100 / kSteps)});
  return lines;
}

std::vector<LegendLine> age_legend(std::uint64_t blocks) {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const double share = std::exp2(1.0 - static_cast<double>(i));  // of the step's younger end
    const auto bytes = static_cast<std::uint64_t>(share * static_cast<double>(blocks)) << kBlockShift;
    lines.push_back({heat(i), i + 1 == kSteps ? "younger" : "at least " + size_text(bytes) + " written since"});
  }
  return lines;
}

}  // namespace

Look Palette::look_of(const MapCell& cell) const {
  if (!cell.live) return kEmpty;
  switch (aspect_) {
    case Aspect::live: return heat(live_step(cell.live_share()));
    case Aspect::age: return heat(age_step(cell.age / static_cast<double>(std::max<std::uint64_t>(map_.blocks, 1))));
    case Aspect::group: return look_of_group(cell.group);
    case Aspect::owner: return look_of_owner(cell.owner);
  }
  return kEmpty;
}

Look Palette::look_of_owner(Ino owner) const {
  if (!owner) return kNodes;
  const std::size_t signs = std::min(kOwnerSigns.size(), map_.owners.size());
  for (std::size_t i = 0; i < signs; ++i)
    if (map_.owners[i].first == owner) return spread(i, kOwnerSigns[i]);
  return kOthers;
}

std::vector<Ino> Palette::named_owners() const {
  std::vector<Ino> owners;
  if (aspect_ != Aspect::owner) return owners;
  for (std::size_t i = 0; i < std::min(kOwnerSigns.size(), map_.owners.size()); ++i) owners.push_back(map_.owners[i].first);
  return owners;
}

std::vector<LegendLine> Palette::owners_legend(const std::map<Ino, std::string>& names) const {
  std::vector<LegendLine> lines{{kEmpty, "nothing live"}, {kNodes, "metadata, " + size_text(map_.node_blocks << kBlockShift)}};
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < map_.owners.size(); ++i) {
    const auto& [ino, blocks] = map_.owners[i];
    if (i >= kOwnerSigns.size()) {
      others += blocks;
      continue;
    }
    const auto name = names.find(ino);
    lines.push_back({spread(i, kOwnerSigns[i]),
                     fmt::format("{}, {}", name != names.end() ? printable(name->second) : fmt::format("inode {}", ino),
                                 size_text(blocks << kBlockShift))});
  }
  if (others)
    lines.push_back({kOthers, fmt::format("{} other files, {}", map_.owners.size() - kOwnerSigns.size(),
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
  std::array<bool, 256> seen{};
  for (const MapCell& cell : map_.cells) seen[cell.group] = true;
  for (unsigned group = 0; group < seen.size(); ++group)
    if (seen[group] && group != kNoGroup)
      lines.push_back({look_of_group(static_cast<std::uint8_t>(group)), legend_of_group(static_cast<std::uint8_t>(group))});
  return lines;
}

}  // namespace varve::tool

#include "varve/observe/map/device_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "format/estimate.h"
#include "format/map_record.h"

namespace varve::tool {

namespace {

constexpr std::size_t kGroupSlots = format::kMaxGroups + 2;  // and of the chain, and of nodes

std::size_t slot_of(std::uint8_t group) {
  if (group == format::kGroupChain) return format::kMaxGroups;
  if (group == format::kGroupNodes) return format::kMaxGroups + 1;
  return std::min<std::size_t>(group, format::kMaxGroups - 1);
}

std::uint8_t group_of(std::size_t slot) {
  if (slot == format::kMaxGroups) return format::kGroupChain;
  if (slot == format::kMaxGroups + 1) return format::kGroupNodes;
  return static_cast<std::uint8_t>(slot);
}

bool is_live(std::span<const std::byte> bits, std::uint64_t block) {
  return (static_cast<unsigned>(bits[block / 8]) >> (block % 8)) & 1;
}

// What is gathered of a cell before it is known what most of it is.
struct Tally {
  std::array<std::uint32_t, kGroupSlots> groups{};
  // Majority vote in one pass (Boyer and Moore 1981): the candidate, and by how much it leads.
  Ino candidate;
  std::uint64_t lead = 0;

  void vote(Ino owner) {
    if (lead == 0) candidate = owner;
    lead = candidate == owner ? lead + 1 : lead - 1;
  }
};

class MapReader {
 public:
  MapReader(ImageReader& image, const MapRequest& request) : image_(image), super_(image.super()), request_(request) {
    map_.segments = super_.segments;
    map_.blocks = super_.segments * super_.segment_blocks;
    const std::uint64_t cells = std::clamp<std::uint64_t>(request.cells, 1, std::max<std::uint64_t>(map_.blocks, 1));
    map_.blocks_per_cell = std::max<std::uint64_t>((map_.blocks + cells - 1) / cells, 1);
    map_.cells.resize((map_.blocks + map_.blocks_per_cell - 1) / map_.blocks_per_cell);
    for (std::size_t i = 0; i < map_.cells.size(); ++i)
      map_.cells[i].blocks = std::min(map_.blocks_per_cell, map_.blocks - i * map_.blocks_per_cell);
    tallies_.resize(map_.cells.size());
    if (request.owners) live_.resize(map_.blocks);
  }

  Result<DeviceMap> run() {
    TRY(read_segments());
    if (request_.owners) TRY(read_owners());
    finish_cells();
    return std::move(map_);
  }

 private:
  Status read_segments() {
    map_.empty_segments = map_.segments;
    const std::size_t bytes = format::segment_record_bytes(super_.segment_blocks);
    return tree::scan_map(image_.nodes(), image_.free_map(),
                          [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
                            TRY(advance(first, super_.segments, Part::segments));
                            for (std::size_t i = 0; i * bytes < records.size(); ++i)
                              TRY(add_segment(first + i, records.subspan(i * bytes, bytes)));
                            return {};
                          });
  }

  enum class Part : std::uint8_t { segments, owners };

  // Owners are some sixty times as much to read.
  Status advance(std::uint64_t done, std::uint64_t all, Part part) const {
    if (!request_.advance || all == 0) return {};
    constexpr double kSegmentsShare = 1.0 / 64;
    const double share = static_cast<double>(done) / static_cast<double>(all);
    if (!request_.owners) return request_.advance(share);
    return request_.advance(part == Part::segments ? share * kSegmentsShare : kSegmentsShare + share * (1 - kSegmentsShare));
  }

  Status add_segment(std::uint64_t segment, std::span<const std::byte> bytes) {
    const format::SegmentRecord record = TRY(format::decode_segment_record(bytes));
    if (record.live == 0) return {};
    --map_.empty_segments;
    const auto bits = bytes.subspan(format::kSegmentRecordHeaderBytes);
    const std::uint64_t now = super_.clock / super_.clock_unit;
    const auto age = static_cast<double>(format::age_of(now, record.youngest) * super_.clock_unit);
    for (std::uint64_t i = 0; i < super_.segment_blocks; ++i) {
      if (!is_live(bits, i)) continue;
      const std::uint64_t block = segment * super_.segment_blocks + i;
      MapCell& cell = map_.cells[block / map_.blocks_per_cell];
      ++cell.live;
      cell.age += age;
      ++tallies_[block / map_.blocks_per_cell].groups[slot_of(record.group)];
      if (request_.owners) live_[block] = true;
      ++map_.live;
    }
    return {};
  }

  Status read_owners() {
    const std::uint64_t start = super_.first_segment.v;
    TRY(tree::scan_map(image_.nodes(), image_.reverse_map(),
                       [&](std::uint64_t first, std::span<const std::byte> records) -> Status {
                         TRY(advance(first, super_.device_blocks, Part::owners));
                         for (std::size_t i = 0; i * format::kReverseEntryBytes < records.size(); ++i) {
                           const std::uint64_t address = first + i;
                           if (address < start || address - start >= map_.blocks || !live_[address - start]) continue;
                           const auto bytes = records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes);
                           add_owner(address - start, TRY(format::decode_reverse_entry(bytes)));
                         }
                         return {};
                       }));
    map_.owners.assign(owners_.begin(), owners_.end());
    std::ranges::sort(map_.owners, [](const auto& a, const auto& b) {
      return std::pair(b.second, a.first) < std::pair(a.second, b.first);
    });
    return {};
  }

  void add_owner(std::uint64_t block, const format::ReverseEntry& entry) {
    const bool is_file = entry.owner == format::Owner::file_block;
    tallies_[block / map_.blocks_per_cell].vote(is_file ? entry.ino : Ino{});
    if (is_file)
      ++owners_[entry.ino];
    else
      ++map_.node_blocks;
  }

  void finish_cells() {
    for (std::size_t i = 0; i < map_.cells.size(); ++i) {
      MapCell& cell = map_.cells[i];
      if (!cell.live) continue;
      cell.age /= static_cast<double>(cell.live);
      const auto most = std::ranges::max_element(tallies_[i].groups);
      cell.group = group_of(static_cast<std::size_t>(most - tallies_[i].groups.begin()));
      cell.owner = tallies_[i].candidate;
    }
  }

  ImageReader& image_;
  const format::Superblock& super_;
  const MapRequest request_;
  DeviceMap map_;
  std::vector<Tally> tallies_;
  std::vector<bool> live_;
  std::unordered_map<Ino, std::uint64_t> owners_;
};

}  // namespace

Result<DeviceMap> read_device_map(ImageReader& image, const MapRequest& request) { return MapReader(image, request).run(); }

Result<DeviceMap> read_device_map(const ViewedPlace& place, const MapRequest& request) {
  Status last;
  for (int i = 0; i < kTriesBesideMount; ++i) {
    auto image = TRY(place.open());
    auto map = read_device_map(image, request);
    if (map.ok() || !place.is_mounted() || !map.fails_with(Errc::corrupt)) return map;
    last = map.error();
  }
  return last.error();
}

std::function<Status(double)> showing(Steps& steps) {
  return [&steps](double share) { return steps.next([&] { return fmt::format("reading the map, {:.0f} %", 100 * share); }, share); };
}

}  // namespace varve::tool

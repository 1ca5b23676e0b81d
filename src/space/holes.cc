#include "space/holes.h"

#include "format/map_record.h"

namespace varve::space {

Result<std::vector<bool>> live_bits(tree::NodeSource& source, const tree::TreeView& view, const segments::SegmentGeometry& geometry,
                                    SegmentId segment) {
  std::vector<bool> live(geometry.blocks, false);
  const tree::NodePtr leaf = TRY(tree::find_map_leaf(source, view.free_map, segment.v));
  if (!leaf) return live;  // all of it is zero
  const format::MapShape& shape = view.free_map.shape;
  const auto record = leaf->records().subspan((segment.v % shape.per_leaf()) * shape.record_bytes, shape.record_bytes);
  const auto bits = record.subspan(format::kSegmentRecordHeaderBytes);
  for (std::uint32_t i = 0; i < geometry.blocks; ++i) live[i] = std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1;
  return live;
}

std::vector<FreeRun> free_runs(const std::vector<bool>& live) {
  std::vector<FreeRun> runs;
  for (std::uint32_t i = 0; i < live.size(); ++i) {
    if (live[i]) continue;
    if (runs.empty() || runs.back().end() != i) runs.push_back({i, 0});
    ++runs.back().blocks;
  }
  return runs;
}

Result<std::vector<format::Run>> holes_of(tree::NodeSource& source, const tree::TreeView& view, const segments::SegmentGeometry& geometry,
                                          SegmentId segment) {
  const auto live = TRY(live_bits(source, view, geometry, segment));
  std::vector<format::Run> holes;
  for (const FreeRun& run : free_runs(live)) holes.push_back({geometry.start_of(segment) + run.start, run.blocks});
  return holes;
}

Status check_reverse_map(tree::NodeSource& source, const tree::TreeView& view, std::span<const format::Run> blocks) {
  const tree::MapRoot& map = view.reverse_map;
  const std::uint64_t per_leaf = map.shape.per_leaf();
  std::vector<std::uint64_t> records;  // one of each leaf
  for (const format::Run& run : blocks)
    for (std::uint64_t leaf = run.start.v / per_leaf; leaf <= (run.start.v + run.blocks - 1) / per_leaf; ++leaf)
      if (records.empty() || records.back() != leaf * per_leaf) records.push_back(leaf * per_leaf);
  std::vector<tree::NodeWant> wants;
  for (const std::uint64_t record : records)
    if (const auto ref = TRY(tree::find_map_node(source, map, record, 0))) wants.push_back({ref, map.tree, 0});
  source.prefetch(wants);
  for (const std::uint64_t record : records) TRY(tree::find_map_leaf(source, map, record));
  return {};
}

}  // namespace varve::space

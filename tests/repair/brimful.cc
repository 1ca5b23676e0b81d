#include "repair/brimful.h"

#include "check/image_builder.h"

namespace varve::repair::test {

std::unique_ptr<io::MemDevice> image_without_a_free_block() {
  using check::test::ImageBuilder;
  for (std::uint64_t nodes = 0;;) {
    ImageBuilder builder(4096);
    const format::Superblock& super = builder.super();
    const BlockAddr data = super.first_segment + 8ULL * super.segment_blocks;
    const BlockAddr end = super.first_segment + super.segments * super.segment_blocks;
    const Ino file = builder.add_file(kRootIno, "file", end - data, format::kMaxExtentBlocks);
    const BlockAddr rest = super.first_segment + nodes;
    builder.attributes()[file].blocks += data - rest;
    builder.attributes()[file].size += (data - rest) * kBlockSize;
    builder.change_items = [&](check::test::Items& items) {
      std::uint64_t first = end - data;
      for (BlockAddr at = rest; at < data;) {
        format::Extent extent;
        extent.address = at;
        extent.length = std::min<std::uint64_t>(format::kMaxExtentBlocks, data - at);
        extent.crcs.resize(extent.length);
        format::encode_extent(extent, items[{file, format::ItemKind::extent, first}]);
        first += extent.length;
        at = at + extent.length;
      }
    };
    auto image = builder.build();
    if (builder.nodes().size() == nodes) return image;
    nodes = builder.nodes().size();
  }
}

}  // namespace varve::repair::test

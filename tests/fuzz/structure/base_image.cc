#include "fuzz/structure/base_image.h"

#include <algorithm>
#include <array>
#include <deque>

#include "checkpoint/superblocks.h"
#include "format/map_record.h"
#include "format/superblock_layout.h"
#include "fuzz/structure/base_content.h"
#include "fuzz/target.h"
#include "log/recovery.h"

namespace varve::fuzz {

namespace {

class Indexer {
 public:
  explicit Indexer(BaseImage& base) : base_(base), device_(base.store) {}

  void run() {
    add_superblock();
    for (std::size_t i = 0; i < base_.blocks.size(); ++i) follow(i);
    add_chunks();
    base_.current = base_.blocks.size();
    add_former();
    for (std::size_t i = 0; i < base_.blocks.size(); ++i) tell_children(static_cast<unsigned>(i));
    look_at_items();
  }

 private:
  void add_superblock() {
    const auto found = checkpoint::read_superblocks(device_);
    require(found.ok(), "a base image has no superblock");
    base_.super = found->best;
    const format::SuperblockArea& area = base_.super.area;
    add(area ? area.place_of(base_.super.sequence) : BlockAddr{0}, Part::superblock, 1);
  }

  void add(BlockAddr address, Part part, std::size_t count) {
    MetaBlock& block = base_.blocks.emplace_back();
    block.address = address;
    block.part = part;
    block.bytes.resize(count * kBlockSize);
    device_.peek(address.v * kBlockSize, block.bytes);
    Bytes copy = block.bytes;
    block.crc = seal(part, copy);
    require(copy == block.bytes, "a base image has a block that is not sealed");
    base_.by_address.emplace(address.v, static_cast<unsigned>(base_.blocks.size() - 1));
  }

  static Part part_of(const format::NodeHeader& header) {
    if (header.tree == format::TreeId::super_image) return Part::image;
    if (format::is_item_tree(header.tree)) return header.level ? Part::interior : Part::leaf;
    if (header.level) return Part::slots;
    return header.tree == format::TreeId::reverse_map ? Part::reverse : Part::free;
  }

  bool add_node(BlockAddr address) {
    std::array<std::byte, kBlockSize> bytes;
    device_.peek(address.v * kBlockSize, bytes);
    const auto header = format::decode_node_header(bytes);
    if (!header.ok() || header->address != address || base_.by_address.contains(address.v)) return false;
    add(address, part_of(*header), 1);
    return true;
  }

  void follow(std::size_t i) {
    const MetaBlock block = base_.blocks[i];
    for (const Reference& ref : references_in(block.part, block.bytes))
      if (const std::uint64_t to = get_fixed(block.bytes, ref.address_at, ref.address_bytes)) add_node(BlockAddr{to});
  }

  void add_chunks() {
    if (base_.super.clean) return;
    const auto walked = log::recover_chain(device_, base_.super, [&](const format::Chunk& chunk) -> Status {
      base_.chunks.push_back(static_cast<unsigned>(base_.blocks.size()));
      add(chunk.header.address, Part::chunk, chunk.header.header_blocks);
      return {};
    });
    require(walked.ok(), "the log of a base image is damaged");
  }

  void add_former() {
    for (std::uint64_t at = base_.super.first_segment.v; at < base_.super.device_blocks; ++at) add_node(BlockAddr{at});
  }

  void tell_children(unsigned i) {
    const MetaBlock& block = base_.blocks[i];
    for (const Reference& ref : references_in(block.part, block.bytes)) {
      const auto child = base_.by_address.find(get_fixed(block.bytes, ref.address_at, ref.address_bytes));
      if (child != base_.by_address.end()) base_.blocks[child->second].parents.push_back(i);
    }
  }

  void look_at_items() {
    for (std::size_t i = 0; i < base_.current; ++i) {
      const MetaBlock& block = base_.blocks[i];
      if (block.part != Part::leaf && block.part != Part::interior) continue;
      const auto header = format::decode_node_header(block.bytes);
      if (header->tree == format::TreeId::snapshots) base_.tables.push_back(static_cast<unsigned>(i));
      if (block.part != Part::leaf) continue;
      const auto elements = take_apart(block.part, block.bytes, base_.super.segment_blocks);
      require(elements.has_value(), "a base image has a leaf that does not decode");
      for (const Element& element : *elements) look_at(element);
    }
  }

  void look_at(const Element& element) {
    if (element.key.kind == format::ItemKind::attributes) base_.inodes.push_back(element.key.ino);
    if (element.key.kind != format::ItemKind::extent) return;
    const auto extent = format::decode_extent(element.value);
    if (!extent.ok() || extent->unwritten) return;
    for (std::uint64_t n = 0; n < extent->length; ++n) base_.data.push_back(extent->address + n);
  }

  BaseImage& base_;
  io::MemDevice device_;
};

}  // namespace

const BaseImage& base_image(unsigned kind) {
  static std::array<std::unique_ptr<BaseImage>, kBaseImages> made;
  auto& base = made.at(kind % kBaseImages);
  if (base) return *base;
  base = std::make_unique<BaseImage>();
  base->store = make_base(kind % kBaseImages)->store();
  Indexer(*base).run();
  return *base;
}

}  // namespace varve::fuzz

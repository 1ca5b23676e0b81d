#include "image_builder.h"

#include <sys/stat.h>

#include <algorithm>
#include <cassert>

#include "base/crc32c.h"

namespace varve::check::test {

using namespace format;

namespace {

constexpr std::uint64_t kDataSegment = 8;  // before it: nodes, chain, next run
constexpr std::uint64_t kClock = 1000;

void put_pieces(Items& items, Ino ino, ItemKind kind, const Bytes& blob) {
  for (std::size_t at = 0, piece = 0; at < blob.size(); at += kMaxItemValue, ++piece)
    items[{ino, kind, piece}] = Bytes(blob.begin() + static_cast<std::ptrdiff_t>(at),
                                      blob.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMaxItemValue, blob.size())));
}

}  // namespace

ImageBuilder::ImageBuilder(std::uint64_t device_blocks, std::uint64_t seed) {
  SeededRandom random(seed);
  const MakeParameters parameters{
      .device_blocks = device_blocks, .superblocks_in_place = true, .label = "built", .uuid = {}, .now = {100, 0}};
  super_ = make_filesystem(parameters, random)->super;
  super_.chain = {super_.first_segment + 6 * super_.segment_blocks, super_.segment_blocks};
  super_.next_run = {super_.first_segment + 7 * super_.segment_blocks, super_.segment_blocks};
  super_.clock = kClock * super_.clock_unit;
  next_data_ = super_.first_segment + kDataSegment * super_.segment_blocks;
  Attributes root;
  root.mode = S_IFDIR | 0755;
  root.nlink = 2;
  root.parent = kRootIno;
  attributes_[kRootIno] = root;
}

Ino ImageBuilder::new_inode(std::uint32_t mode) {
  const Ino ino{super_.next_ino++};
  attributes_[ino].mode = mode;
  return ino;
}

void ImageBuilder::add_entry(Ino parent, const std::string& name, Ino child) {
  Attributes& directory = attributes_[parent];
  const auto type = static_cast<std::uint8_t>(attributes_[child].mode >> 12);
  directories_[parent][directory.next_cookie++] = {child, type, name};
  ++directory.entries;
}

Ino ImageBuilder::add_directory(Ino parent, const std::string& name) {
  const Ino ino = new_inode(S_IFDIR | 0755);
  attributes_[ino].nlink = 2;
  attributes_[ino].parent = parent;
  ++attributes_[parent].nlink;
  add_entry(parent, name, ino);
  return ino;
}

Ino ImageBuilder::add_file(Ino parent, const std::string& name, std::uint64_t blocks, std::uint64_t extent_blocks) {
  const Ino ino = new_inode(S_IFREG | 0644);
  Attributes& a = attributes_[ino];
  a.nlink = 1;
  a.size = blocks * kBlockSize;
  a.blocks = blocks;
  for (std::uint64_t first = 0; first < blocks; first += extent_blocks) {
    Extent& extent = extents_[ino][first];
    extent.address = next_data_;
    extent.length = std::min(extent_blocks, blocks - first);
    extent.clock = static_cast<std::uint32_t>((ino.v * 31 + first) % kClock);
    extent.estimate = static_cast<std::uint8_t>(first);
    for (std::uint64_t i = 0; i < extent.length; ++i, ++next_data_) {
      std::vector<std::byte> bytes(kBlockSize, static_cast<std::byte>(ino.v * 7 + first + i));
      extent.crcs.push_back(crc32c(bytes));
      data_[next_data_.v] = std::move(bytes);
    }
  }
  if (parent) add_entry(parent, name, ino);
  return ino;
}

Ino ImageBuilder::add_symlink(Ino parent, const std::string& name, const std::string& target) {
  const Ino ino = new_inode(S_IFLNK | 0777);
  attributes_[ino].nlink = 1;
  attributes_[ino].size = target.size();
  const auto bytes = std::as_bytes(std::span(target.data(), target.size()));
  symlinks_[ino] = Bytes(bytes.begin(), bytes.end());
  add_entry(parent, name, ino);
  return ino;
}

Ino ImageBuilder::add_orphan() {
  const Ino ino = add_file(Ino{}, "", 3);
  attributes_[ino].nlink = 0;
  return ino;
}

void ImageBuilder::add_link(Ino parent, const std::string& name, Ino file) {
  ++attributes_[file].nlink;
  add_entry(parent, name, file);
}

void ImageBuilder::set_xattrs(Ino ino, const std::vector<Xattr>& xattrs) { encode_xattrs(xattrs, xattrs_[ino]); }

void ImageBuilder::add_unwritten(Ino file, std::uint64_t first, std::uint64_t blocks) {
  Extent& extent = extents_[file][first];
  extent.unwritten = true;
  extent.length = blocks;
  attributes_[file].blocks += blocks;
  super_.reserved_blocks += blocks;
}

Items ImageBuilder::items() const {
  Items items;
  for (const auto& [ino, a] : attributes_) {
    encode_attributes(a, items[{ino, ItemKind::attributes, 0}]);
    if (a.nlink == 0) items[{kOrphanIno, ItemKind::orphan, ino.v}];
  }
  for (const auto& [ino, extents] : extents_)
    for (const auto& [first, extent] : extents) encode_extent(extent, items[{ino, ItemKind::extent, first}]);
  for (const auto& [ino, entries] : directories_) {
    std::map<std::uint64_t, std::vector<std::uint64_t>> index;
    for (const auto& [cookie, entry] : entries) {
      encode_dirent({entry.ino, entry.type, entry.name}, items[{ino, ItemKind::dirent, cookie}]);
      index[name_hash(entry.name, super_.hash_key)].push_back(cookie);
    }
    for (const auto& [hash, cookies] : index) encode_cookies(cookies, items[{ino, ItemKind::name_hash, hash}]);
  }
  for (const auto& [ino, blob] : symlinks_) put_pieces(items, ino, ItemKind::symlink, blob);
  for (const auto& [ino, blob] : xattrs_) put_pieces(items, ino, ItemKind::xattr, blob);
  return items;
}

void ImageBuilder::own_node(TreeId tree, unsigned level, BlockAddr address) {
  ReverseEntry entry;
  entry.owner = Owner::node;
  entry.tree = tree;
  entry.level = static_cast<std::uint8_t>(level);
  owners_[address.v] = entry;
}

void ImageBuilder::write_tree() {
  Items all = items();
  if (change_items) change_items(all);
  std::vector<ChildRef> level;
  LeafBuilder leaf;
  std::uint64_t blocks = 0;
  auto finish_leaf = [&] {
    MadeNode node{next_node(), {}};
    const Key first = leaf.first();
    const std::uint32_t crc = leaf.finish(node.bytes, super_.identity, super_.serial, node.address);
    level.push_back({first, {node.address, crc, blocks}});
    own_node(TreeId::inode_file, 0, node.address);
    nodes_.push_back(node);
    blocks = 0;
  };
  for (const auto& [key, value] : all) {
    if (!leaf.add(key, value)) {
      finish_leaf();
      leaf.add(key, value);
    }
    if (key.kind != ItemKind::extent) continue;
    const auto extent = decode_extent(value);
    if (!extent.ok()) continue;
    blocks += extent->length;
    for (std::uint64_t i = 0; !extent->unwritten && i < extent->length; ++i) {
      ReverseEntry entry;
      entry.owner = Owner::file_block;
      entry.estimate = extent->estimate;
      entry.ino = key.ino;
      entry.block = key.offset + i;
      entry.clock = extent->clock;
      entry.crc = extent->crcs[i];
      owners_[extent->address.v + i] = entry;
    }
  }
  finish_leaf();
  std::uint8_t height = 0;
  while (level.size() > 1) {
    ++height;
    std::vector<ChildRef> above;
    InteriorBuilder interior;
    auto finish_interior = [&] {
      MadeNode node{next_node(), {}};
      const Key first = interior.first();
      const std::uint64_t sum = interior.blocks();
      const std::uint32_t crc = interior.finish(node.bytes, height, super_.identity, super_.serial, node.address);
      above.push_back({first, {node.address, crc, sum}});
      own_node(TreeId::inode_file, height, node.address);
      nodes_.push_back(node);
    };
    for (const ChildRef& child : level)
      if (!interior.add(child)) {
        finish_interior();
        interior.add(child);
      }
    finish_interior();
    level = std::move(above);
  }
  super_.inode_file = level.front().ref;
  super_.inode_file_level = height;
}

MapRecords ImageBuilder::reverse_records() const {
  MapRecords records;
  for (const auto& [address, entry] : owners_) {
    records[address].resize(kReverseEntryBytes);
    encode_reverse_entry(entry, records[address]);
  }
  return records;
}

MapRecords ImageBuilder::free_records() const {
  std::map<std::uint64_t, SegmentRecord> segments;
  MapRecords records;
  for (const auto& [address, entry] : owners_) {
    const std::uint64_t index = (address - super_.first_segment.v) / super_.segment_blocks;
    const std::uint64_t block = (address - super_.first_segment.v) % super_.segment_blocks;
    SegmentRecord& segment = segments[index];
    ++segment.live;
    if (entry.owner == Owner::file_block) {
      segment.clock_sum += entry.clock;
      segment.youngest = std::max(segment.youngest, entry.clock);
    } else {
      segment.group = kGroupNodes;
    }
    auto& bytes = records[index];
    bytes.resize(segment_record_bytes(super_.segment_blocks));
    bytes[kSegmentRecordHeaderBytes + block / 8] |= std::byte{static_cast<std::uint8_t>(1U << (block % 8))};
  }
  for (auto& [index, bytes] : records) {
    encode_segment_record(segments[index], bytes);
    if (change_segment) change_segment(index, bytes);
  }
  return records;
}

void ImageBuilder::write_maps() {
  const MapShape reverse = reverse_map_shape(super_.device_blocks);
  const MapShape free = free_map_shape(super_.segments, super_.segment_blocks);
  const NodeIdentity identity{super_.identity, super_.serial};
  // The maps describe their own nodes: repeat until their number is settled, then write what it makes of them.
  const auto of_tree = owners_;
  const std::vector<MadeNode> before = nodes_;
  for (std::size_t size = 0;;) {
    nodes_ = before;
    auto right = owners_;
    if (change_owners) change_owners(owners_);
    super_.reverse_map = write_map(TreeId::reverse_map, reverse, reverse_records(), identity, next_node(), nodes_);
    owners_ = std::move(right);
    super_.free_map = write_map(TreeId::free_map, free, free_records(), identity, next_node(), nodes_);
    owners_ = of_tree;
    for (std::size_t i = before.size(); i < nodes_.size(); ++i) {
      const auto header = *decode_node_header(nodes_[i].bytes);
      own_node(header.tree, header.level, nodes_[i].address);
    }
    owners_[next_node().v].owner = Owner::super_image;
    if (nodes_.size() == size) return;
    size = nodes_.size();
  }
}

std::unique_ptr<io::MemDevice> ImageBuilder::build() {
  nodes_.clear();
  owners_.clear();
  write_tree();
  write_maps();
  assert(nodes_.size() + 1 < 6 * super_.segment_blocks);
  const BlockAddr head = super_.first_segment + 5 * super_.segment_blocks;
  super_.node_head.rest = {head, super_.segment_blocks};
  super_.live_blocks = owners_.size();
  super_.data_blocks = static_cast<std::uint64_t>(
      std::ranges::count_if(owners_, [](const auto& o) { return o.second.owner == Owner::file_block; }));
  super_.inodes = attributes_.size();
  if (change_image) change_image(super_);
  MadeNode image{next_node(), {}};
  super_.image = {image.address, encode_super_image(super_, image.bytes, image.address), 0};
  nodes_.push_back(image);
  if (change_super) change_super(super_);

  auto device = std::make_unique<io::MemDevice>(super_.device_blocks * kBlockSize);
  for (const MadeNode& node : nodes_) device->poke(node.address.v * kBlockSize, node.bytes);
  for (const auto& [address, bytes] : data_) device->poke(address * kBlockSize, bytes);
  std::array<std::byte, kBlockSize> block;
  encode_superblock(super_, block);
  device->poke(0, block);
  device->poke((super_.device_blocks - 1) * kBlockSize, block);
  return device;
}

}  // namespace varve::check::test

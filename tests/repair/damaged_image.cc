#include "repair/damaged_image.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/chunk.h"

namespace varve::repair::test {

using check::test::Items;
using namespace format;

namespace {

// A small tree, made when its builder has been prepared.
template <class Prepare>
std::function<Device()> prepared(Prepare prepare) {
  return [prepare] {
    Small small;
    prepare(small);
    return small.build();
  };
}

// A tree that is changed when it is finished.
template <class Tree>
std::function<Device()> changed(std::function<void(const Tree&, io::MemDevice&)> change) {
  return [change] {
    Tree tree;
    Device device = tree.build();
    change(tree, *device);
    return device;
  };
}

}  // namespace

std::function<Device()> with_items(std::function<void(const Small&, Items&)> change) {
  return prepared([change](Small& small) { small.builder.change_items = [&small, change](Items& items) { change(small, items); }; });
}

void put_tail(Items& items, Ino file, std::uint64_t block, std::size_t bytes) {
  Bytes& value = items[{file, ItemKind::extent, block}];
  value.clear();
  encode_tail(Bytes(bytes, std::byte{'t'}), value);
}

std::function<Device()> with_tail(std::function<void(const Small&, Items&)> change) {
  return prepared([change](Small& small) {
    small.builder.change_image = [](Superblock& super) { super.features.incompat |= kIncompatTails; };
    small.builder.change_items = [&small, change](Items& items) {
      put_tail(items, small.other, 3, 100);
      change_attributes(items, small.other, [](Attributes& a) { a.size = 3 * kBlockSize + 100; });
      change(small, items);
    };
  });
}

void change_attributes(Items& items, Ino ino, const std::function<void(Attributes&)>& change) {
  Bytes& value = items.at({ino, ItemKind::attributes, 0});
  Attributes attributes = *decode_attributes(value);
  change(attributes);
  value.clear();
  encode_attributes(attributes, value);
}

std::function<Device()> with_attributes(std::function<Ino(const Small&)> which, std::function<void(Attributes&)> change) {
  return with_items([=](const Small& small, Items& items) { change_attributes(items, which(small), change); });
}

std::function<Device()> with_entry(std::function<Ino(const Small&)> which, std::uint64_t cookie,
                                   std::function<void(const Small&, Dirent&)> change) {
  return with_items([=](const Small& small, Items& items) {
    Bytes& value = items.at({which(small), ItemKind::dirent, cookie});
    const Bytes copy = value;
    Dirent entry = *decode_dirent(copy);
    change(small, entry);
    value.clear();
    encode_dirent(entry, value);
  });
}

std::function<Device()> with_extent(std::function<void(const Small&, Extent&)> change) {
  return with_items([=](const Small& small, Items& items) {
    Bytes& value = items.at({small.file, ItemKind::extent, 8});
    Extent extent = *decode_extent(value);
    change(small, extent);
    value.clear();
    encode_extent(extent, value);
  });
}

std::function<Device()> with_image(std::function<void(Superblock&)> change) {
  return prepared([change](Small& small) { small.builder.change_image = change; });
}

std::function<Device()> with_super(std::function<void(Superblock&)> change) {
  return prepared([change](Small& small) { small.builder.change_super = change; });
}

std::function<Device()> with_segment(std::function<void(std::vector<std::byte>&)> change) {
  return prepared([change](Small& small) {
    small.builder.change_segment = [change](std::uint64_t segment, std::vector<std::byte>& bytes) {
      if (segment == 8) change(bytes);
    };
  });
}

std::function<Device()> with_big(std::function<void(const Big&, io::MemDevice&)> change) { return changed(std::move(change)); }

std::function<Device()> with_small(std::function<void(const Small&, io::MemDevice&)> change) { return changed(std::move(change)); }

std::function<Device()> with_node(TreeId tree, unsigned level, std::size_t which, std::function<void(std::span<std::byte>)> change) {
  return with_big([=](const Big& big, io::MemDevice& device) {
    change_node(device, big.builder, node_of(big.builder, tree, level, which), change);
  });
}

void raise_second(std::vector<ChildRef>& children) { ++children[1].first.offset; }

// Above all that the leaf before it has.
void lower_first_of_a_file(std::vector<ChildRef>& children) {
  const auto begins = [](const ChildRef& child) { return child.first.kind == ItemKind::extent && child.first.offset == 0; };
  const auto child = std::ranges::find_if(children, begins);
  child->first = {Ino{child->first.ino.v - 1}, ItemKind::attributes, 1};
}

// One of an interior node's keys is another than the first of the leaf that it stands for.
std::function<Device()> with_keys(void (*change)(std::vector<ChildRef>&)) {
  return with_big([=](const Big& big, io::MemDevice& device) {
    const BlockAddr parent = node_of(big.builder, TreeId::inode_file, 1);
    std::array<std::byte, kBlockSize> block;
    device.peek(parent.v * kBlockSize, block);
    const auto header = *decode_node_header(block);
    auto children = *decode_children(block, header);
    change(children);
    InteriorBuilder interior;
    for (const ChildRef& child : children) interior.add(child);
    std::array<std::byte, kBlockSize> changed;
    interior.finish(changed, header.level, header.identity, header.serial, parent);
    change_node(device, big.builder, parent, [&](std::span<std::byte> bytes) { std::ranges::copy(changed, bytes.begin()); });
  });
}

std::function<Device()> without_node(TreeId tree, unsigned level, std::size_t which) {
  return with_big([=](const Big& big, io::MemDevice& device) { wipe(device, node_of(big.builder, tree, level, which)); });
}

void put_chunk(io::MemDevice& device, const Superblock& super, BlockAddr place, std::uint64_t lsn, std::uint32_t previous,
               std::uint64_t durable, bool spoilt, const Bytes& records) {
  ChunkHeader header;
  header.identity = super.identity;
  header.epoch = super.epoch;
  header.lsn = super.lsn + lsn;
  header.previous_crc = previous;
  header.header_blocks = 1;
  header.address = place;
  header.run = super.chain;
  header.next_run = super.next_run;
  header.durable = super.lsn + durable;
  header.clock = super.clock;
  header.next_ino = super.next_ino;
  header.record_bytes = static_cast<std::uint32_t>(records.size());
  std::array<std::byte, kBlockSize> block;
  encode_chunk(header, records, block);
  if (spoilt) block[200] ^= std::byte{1};
  device.poke(place.v * kBlockSize, block);
}

// The filesystem was not unmounted, and its log says this.
std::function<Device()> with_log(std::function<void(const Small&, Items&)> change, std::function<Record(const Small&)> record) {
  return [=] {
    Small small;
    small.builder.change_items = [&](Items& items) { change(small, items); };
    small.builder.change_image = [](Superblock& s) { s.clean = false; };
    Device device = small.build();
    Bytes records;
    encode_record(record(small), records);
    put_chunk(*device, small.builder.super(), small.builder.super().chain.start, 1, 0, 0, false, records);
    return device;
  };
}

Record new_directory_xattr(const Small& s) {
  static constexpr std::array kValue{std::byte{'v'}};
  return SetXattr{s.dir, "user.new", kValue};
}

Ino dir_of(const Small& s) { return s.dir; }
Ino file_of(const Small& s) { return s.file; }
Ino link_of(const Small& s) { return s.link; }
Ino sub_of(const Small& s) { return s.sub; }
Ino root_of(const Small&) { return kRootIno; }

void add_entry(Items& items, const Superblock& super, Ino directory, std::uint64_t cookie, const Dirent& entry) {
  encode_dirent(entry, items[{directory, ItemKind::dirent, cookie}]);
  encode_cookies(std::array{cookie}, items[{directory, ItemKind::name_hash, name_hash(entry.name, super.hash_key)}]);
  Bytes& value = items.at({directory, ItemKind::attributes, 0});
  Attributes attributes = *decode_attributes(value);
  ++attributes.entries;
  attributes.next_cookie = std::max(attributes.next_cookie, cookie + 1);
  value.clear();
  encode_attributes(attributes, value);
}

}  // namespace varve::repair::test

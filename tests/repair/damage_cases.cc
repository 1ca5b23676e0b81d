#include "repair/damage_cases.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "format/chunk.h"
#include "repair/damaged_image.h"

namespace varve::repair::test {

using check::Code;
using check::test::Items;
using namespace format;

namespace {

// As if the power had gone in the middle of writing this copy: one of its two sectors is of a later version.
DamageCase torn_case(std::string name, bool second_copy, std::size_t sector) {
  return {std::move(name), Code::superblock_torn, with_small([=](const Small& s, io::MemDevice& d) {
            Superblock newer = s.builder.super();
            newer.epoch += 77;
            ++newer.lifetime.mounts;
            std::array<std::byte, kBlockSize> block;
            encode_superblock(newer, block);
            const std::uint64_t at = second_copy ? newer.device_blocks - 1 : 0;
            std::array<std::byte, kBlockSize> torn;
            d.peek(at * kBlockSize, torn);
            std::ranges::copy(std::span(block).subspan(sector * 512, 512), torn.begin() + static_cast<std::ptrdiff_t>(sector * 512));
            d.poke(at * kBlockSize, torn);
          })};
}

// The same filesystem with its superblocks in an area of four slots; the newest two are numbers 3 and 4.
DamageCase area_case(std::string name, Code code, std::function<void(const Superblock&, io::MemDevice&)> damage) {
  return {std::move(name), code, [damage = std::move(damage)] {
            Small small;
            small.builder.change_image = [](Superblock& s) {
              s.features.incompat |= kIncompatSuperblockArea;
              s.area = {BlockAddr{4}, 4, 1};
            };
            Device device = small.build();
            Superblock super = small.builder.super();
            std::array<std::byte, kBlockSize> block;
            while (super.sequence < super.area.slots) {
              ++super.sequence;
              encode_superblock(super, block);
              device->poke(super.area.place_of(super.sequence).v * kBlockSize, block);
            }
            damage(super, *device);
            return device;
          }};
}

// What a crash leaves in the middle of writing the next one: its second sector is the older one's.
void tear_next(const Superblock& super, io::MemDevice& device) {
  Superblock next = super;
  ++next.sequence;
  ++next.lifetime.mounts;
  std::array<std::byte, kBlockSize> block, torn;
  encode_superblock(next, block);
  const std::uint64_t at = next.area.place_of(next.sequence).v * kBlockSize;
  device.peek(at, torn);
  std::ranges::copy(std::span(block).first(512), torn.begin());
  device.poke(at, torn);
}

std::vector<DamageCase> area_cases() {
  return {
      area_case("102-anchor-a", Code::superblock_damaged, [](const Superblock&, io::MemDevice& d) { flip_bit(d, BlockAddr{0}, 4001); }),
      area_case("102-anchor-b", Code::superblock_damaged,
                [](const Superblock& s, io::MemDevice& d) { wipe(d, BlockAddr{s.device_blocks - 1}); }),
      area_case("102-slot-a", Code::superblock_damaged, [](const Superblock& s, io::MemDevice& d) { wipe(d, s.area.place_of(3)); }),
      area_case("102-slot-b", Code::superblock_damaged,
                [](const Superblock& s, io::MemDevice& d) { flip_bit(d, s.area.place_of(4), 968); }),
      area_case("103-slots-differ", Code::superblocks_differ, [](const Superblock& s, io::MemDevice& d) {
         Superblock next = s;
         ++next.sequence;
         ++next.lifetime.mounts;
         std::array<std::byte, kBlockSize> block;
         encode_superblock(next, block);
         d.poke(next.area.place_of(next.sequence).v * kBlockSize, block);
       }),
      area_case("111-torn-slot", Code::superblock_torn, tear_next),
      area_case("109-both-slots", Code::superblock_lost, [](const Superblock& s, io::MemDevice& d) {
         for (const std::uint64_t number : {3, 4}) wipe(d, s.area.place_of(number));
       }),
      area_case("109-whole-area", Code::superblock_lost, [](const Superblock& s, io::MemDevice& d) {
         for (const std::uint64_t number : {1, 2, 3, 4}) wipe(d, s.area.place_of(number));
       }),
      area_case("109-both-anchors", Code::superblock_lost, [](const Superblock& s, io::MemDevice& d) {
         wipe(d, BlockAddr{0});
         wipe(d, BlockAddr{s.device_blocks - 1});
       }),
  };
}

std::vector<DamageCase> superblock_cases() {
  return {
      torn_case("111-torn-a-first", false, 0), torn_case("111-torn-a-second", false, 1),
      torn_case("111-torn-b-first", true, 0), torn_case("111-torn-b-second", true, 1),
      {"102-superblock-a", Code::superblock_damaged, with_small([](const Small&, io::MemDevice& d) { flip_bit(d, BlockAddr{0}, 4001); })},
      {"102-superblock-b", Code::superblock_damaged,
       with_small([](const Small& s, io::MemDevice& d) { wipe(d, BlockAddr{s.builder.super().device_blocks - 1}); })},
      {"103-copies-differ", Code::superblocks_differ, with_small([](const Small& s, io::MemDevice& d) {
         Superblock other = s.builder.super();
         other.lifetime.mounts = 5;
         std::array<std::byte, kBlockSize> block;
         encode_superblock(other, block);
         d.poke(0, block);
       })},
      {"104-too-small", Code::device_too_small,
       [] {
         Small small;
         const Device device = small.build();
         std::vector<std::byte> half(3000 * kBlockSize);
         device->peek(0, half);
         auto cut = std::make_unique<io::MemDevice>(half.size());
         cut->poke(0, half);
         return cut;
       },
       false},
      {"105-image", Code::image_wrong, with_super([](Superblock& s) { ++s.group_centres[5]; })},
      {"106-run-not-free", Code::run_not_free, with_image([](Superblock& s) { s.chain = {s.first_segment, 1}; })},
      {"107-runs-overlap", Code::runs_overlap, with_image([](Superblock& s) { s.heads[2].rest = s.next_run; })},
      {"108-counts", Code::count_wrong, with_image([](Superblock& s) { s.data_blocks += 7; })},
      {"109-both-superblocks", Code::superblock_lost, with_small([](const Small& s, io::MemDevice& d) {
         wipe(d, BlockAddr{0});
         wipe(d, BlockAddr{s.builder.super().device_blocks - 1});
       })},
      {"109-larger-device", Code::superblock_lost,
       [] {
         Small small;
         const Device device = small.build();
         std::vector<std::byte> all(device->geometry().size_bytes);
         device->peek(0, all);
         auto larger = std::make_unique<io::MemDevice>(all.size() + (1 << 20));
         larger->poke(0, all);
         wipe(*larger, BlockAddr{0});
         return larger;
       }},
      {"110-clock-unit", Code::field_wrong, with_image([](Superblock& s) { s.clock_unit = 1ULL << 60; })},
      // With a wrong count beside it: alone both are what a crash leaves, and the next mount sees to it.
      {"201-log-to-replay", Code::needs_recovery,
       [] {
         Small small;
         small.builder.change_image = [](Superblock& s) { s.clean = false, s.data_blocks += 7; };
         Device device = small.build();
         put_chunk(*device, small.builder.super(), small.builder.super().chain.start, 1, 0, 0, false);
         return device;
       }},
      {"203-not-unmounted", Code::not_unmounted, with_image([](Superblock& s) { s.clean = false, s.data_blocks += 7; })},
      {"202-log-after-clean", Code::log_after_clean, with_small([](const Small& s, io::MemDevice& d) {
         put_chunk(d, s.builder.super(), s.builder.super().chain.start, 1, 0, 0, false);
       })},
      {"204-log-damaged", Code::log_damaged,
       [] {
         Small small;
         small.builder.change_image = [](Superblock& s) { s.clean = false; };
         Device device = small.build();
         const Superblock& super = small.builder.super();
         put_chunk(*device, super, super.chain.start, 1, 0, 0, false);
         put_chunk(*device, super, super.chain.start + 1, 2, 0, 1, true);
         put_chunk(*device, super, super.chain.start + 2, 3, 0, 2, false);
         return device;
       }},
  };
}

std::vector<DamageCase> tree_cases() {
  return {
      {"302-leaf", Code::node_damaged, without_node(TreeId::inode_file, 0, 5)},
      {"302-interior", Code::node_damaged, without_node(TreeId::inode_file, 1, 0)},
      {"302-owners-leaf", Code::node_damaged, without_node(TreeId::reverse_map, 0, 1)},
      {"302-owners-root", Code::node_damaged, without_node(TreeId::reverse_map, 1, 0)},
      {"302-free-map", Code::node_damaged, without_node(TreeId::free_map, 0, 0)},
      {"303-future", Code::node_from_future, with_node(TreeId::inode_file, 0, 3, [](auto bytes) { bytes[16] = std::byte{99}; })},
      {"304-order", Code::keys_out_of_order, with_keys(raise_second)},
      {"304-too-low", Code::keys_out_of_order, with_keys(lower_first_of_a_file)},
      {"305-block-sum", Code::block_sum_wrong, with_image([](Superblock& s) { ++s.inode_file.blocks; })},
      {"306-misplaced", Code::map_node_misplaced,
       with_node(TreeId::reverse_map, 0, 1, [](auto bytes) { bytes[45] ^= std::byte{0xA8}; })},
      {"306-key-of-an-item", Code::map_node_misplaced,
       with_node(TreeId::reverse_map, 0, 1, [](auto bytes) { bytes[36] ^= std::byte{1}; })},
      {"306-kind-of-an-item", Code::map_node_misplaced,
       with_node(TreeId::reverse_map, 1, 0, [](auto bytes) { bytes[44] ^= std::byte{1}; })},
      {"307-beyond-end", Code::map_beyond_end, with_node(TreeId::reverse_map, 1, 0, [](auto bytes) {
         for (std::size_t i = 0; i < 12; ++i)
           bytes[kNodeHeaderBytes + 255 * 12 + i] = bytes[kNodeHeaderBytes + 1 * 12 + i];
       })},
      {"308-not-compared", Code::not_compared, with_big([](const Big& big, io::MemDevice& device) {
         wipe(device, node_of(big.builder, TreeId::inode_file, 1, 0));
         wipe(device, node_of(big.builder, TreeId::free_map, 0, 0));
       })},
      {"401-outside", Code::address_outside, with_extent([](const Small&, Extent& e) { e.address = BlockAddr{5}; })},
      {"402-claimed-twice", Code::claimed_twice, with_items([](const Small& s, Items& items) {
         Extent mine = *decode_extent(items.at({s.other, ItemKind::extent, 0}));
         const Extent theirs = *decode_extent(items.at({s.file, ItemKind::extent, 8}));
         mine.address = theirs.address + 2;
         Bytes& value = items.at({s.other, ItemKind::extent, 0});
         value.clear();
         encode_extent(mine, value);
       })},
      {"403-live-bits", Code::free_map_bits_wrong, with_segment([](auto& bytes) { bytes[kSegmentRecordHeaderBytes] ^= std::byte{3}; })},
      {"404-counters", Code::free_map_counter_wrong, with_segment([](auto& bytes) { bytes[4] ^= std::byte{1}; })},
      {"404-rates", Code::free_map_counter_wrong, [] {
         Small small;
         small.builder.change_segment = [](std::uint64_t segment, std::vector<std::byte>& bytes) {
           if (segment == 0) bytes[24] = std::byte{9};
         };
         return small.build();
       }},
      {"405-record", Code::free_map_record_damaged, with_segment([](auto& bytes) { bytes[0] = std::byte{0x77}; })},
      {"406-owners", Code::reverse_map_wrong, [] {
         Small small;
         small.builder.change_owners = [](auto& owners) { ++owners.begin()->second.level, owners.rbegin()->second.owner = Owner::none; };
         return small.build();
       }},
      {"408-data", Code::data_damaged, with_small([](const Small& s, io::MemDevice& d) {
         for (const auto& [address, owner] : s.builder.owners())
           if (owner.owner == Owner::file_block && owner.ino == s.other) return flip_bit(d, BlockAddr{address}, 999);
       }), false},
  };
}

std::vector<DamageCase> inode_cases() {
  return {
      {"501-no-attributes", Code::no_attributes,
       with_items([](const Small& s, Items& items) { items.erase({s.file, ItemKind::attributes, 0}); })},
      {"501-directory", Code::no_attributes,
       with_items([](const Small& s, Items& items) { items.erase({s.dir, ItemKind::attributes, 0}); })},
      {"502-extent", Code::value_damaged,
       with_items([](const Small& s, Items& items) { items.at({s.file, ItemKind::extent, 8}).resize(5); })},
      {"502-xattrs", Code::value_damaged,
       with_items([](const Small& s, Items& items) { items.at({s.file, ItemKind::xattr, 0})[0] = std::byte{0xFF}; })},
      {"503-number", Code::inode_number_too_high, with_image([](Superblock& s) { s.next_ino = 4; })},
      {"504-overlap", Code::extents_overlap, with_items([](const Small& s, Items& items) {
         auto moved = items.extract(Key{s.file, ItemKind::extent, 8});
         moved.key().offset = 5;
         items.insert(std::move(moved));
       })},
      {"505-past-end", Code::extent_past_end, with_attributes(file_of, [](Attributes& a) { a.size = 5000; })},
      {"506-misplaced", Code::item_misplaced, with_items([](const Small& s, Items& items) {
         items[{s.file, ItemKind::orphan, 9}];
         items[{kOrphanIno, ItemKind::xattr, 9}];
       })},
      {"507-blocks", Code::blocks_wrong, with_attributes(file_of, [](Attributes& a) { a.blocks += 3; })},
      {"508-pieces", Code::pieces_missing,
       with_items([](const Small& s, Items& items) { items.erase({s.file, ItemKind::xattr, 1}); })},
      {"509-symlink-size", Code::symlink_wrong, with_attributes(link_of, [](Attributes& a) { a.size = 99; })},
      {"509-symlink-target", Code::symlink_wrong,
       with_items([](const Small& s, Items& items) { items.erase({s.link, ItemKind::symlink, 0}); })},
      {"510-clock", Code::clock_from_future, with_extent([](const Small&, Extent& e) { e.clock = 4000; })},
      {"511-attributes", Code::attributes_wrong, with_attributes(file_of, [](Attributes& a) { a.rdev = 7; })},
  };
}

std::vector<DamageCase> tail_cases() {
  const auto size = [](std::uint64_t bytes) { return [bytes](Attributes& a) { a.size = bytes; }; };
  return {
      {"501-tail", Code::no_attributes,
       with_tail([](const Small& s, Items& items) { items.erase({s.other, ItemKind::attributes, 0}); })},
      {"502-tail-empty", Code::value_damaged,
       with_tail([](const Small& s, Items& items) { items.at({s.other, ItemKind::extent, 3}).resize(1); })},
      {"502-tail-past-end", Code::value_damaged,
       with_tail([=](const Small& s, Items& items) { change_attributes(items, s.other, size(3 * kBlockSize + 50)); })},
      {"502-tail-behind-end", Code::value_damaged,
       with_tail([=](const Small& s, Items& items) { change_attributes(items, s.other, size(3 * kBlockSize)); })},
      {"502-tail-not-last", Code::value_damaged,
       with_tail([=](const Small& s, Items& items) { change_attributes(items, s.other, size(9 * kBlockSize)); })},
      {"502-tail-twice", Code::value_damaged, with_tail([=](const Small& s, Items& items) {
         put_tail(items, s.other, 5, 70);
         change_attributes(items, s.other, size(5 * kBlockSize + 70));
       })},
      {"502-tail-untold", Code::value_damaged, with_items([=](const Small& s, Items& items) {
         put_tail(items, s.other, 3, 100);
         change_attributes(items, s.other, size(3 * kBlockSize + 100));
       })},
      {"504-tail", Code::extents_overlap, with_tail([=](const Small& s, Items& items) {
         items.erase({s.other, ItemKind::extent, 3});
         put_tail(items, s.other, 2, 100);
         change_attributes(items, s.other, size(2 * kBlockSize + 100));
       })},
      {"506-tail-of-a-directory", Code::item_misplaced, with_tail([](const Small& s, Items& items) { put_tail(items, s.dir, 0, 100); })},
      {"507-tail", Code::blocks_wrong,
       with_tail([](const Small& s, Items& items) { change_attributes(items, s.other, [](Attributes& a) { a.blocks = 4; }); })},
  };
}

std::vector<DamageCase> name_cases() {
  return {
      {"601-not-indexed", Code::entry_not_indexed, with_items([](const Small& s, Items& items) {
         items.erase({s.dir, ItemKind::name_hash, name_hash("file", s.builder.super().hash_key)});
       })},
      {"602-index-alone", Code::index_without_entry, with_items([](const Small& s, Items& items) {
         encode_cookies(std::array{std::uint64_t{77}}, items[{s.dir, ItemKind::name_hash, 12345}]);
       })},
      {"603-name-twice", Code::name_twice, with_entry(dir_of, 4, [](const Small&, Dirent& e) { e.name = "file"; })},
      {"604-cookie", Code::cookie_wrong, with_items([](const Small& s, Items& items) {
         auto moved = items.extract(Key{s.dir, ItemKind::dirent, 3});
         moved.key().offset = 1;
         items.insert(std::move(moved));
       })},
      {"605-entry-count", Code::entry_count_wrong, with_attributes(dir_of, [](Attributes& a) { a.entries = 9; })},
      {"606-dangling", Code::entry_dangling, with_entry(sub_of, 3, [](const Small&, Dirent& e) { e.ino = Ino{9999}; })},
      // A file and all it had is lost, and the log still has a change of it, as a cleaner's.
      {"606-log", Code::entry_dangling, with_log([](const Small& s, Items& items) {
         std::erase_if(items, [&](const auto& item) { return item.first.ino == s.other; });
       }, [](const Small& s) -> Record { return ClearRange{s.other, 1, 2, true}; })},
      {"607-type", Code::entry_type_wrong, with_entry(dir_of, 3, [](const Small&, Dirent& e) { e.type = DT_FIFO; })},
      {"608-parent", Code::parent_wrong, with_attributes(sub_of, [](Attributes& a) { a.parent = kRootIno; })},
      {"609-directory-twice", Code::directory_twice, with_items([](const Small& s, Items& items) {
         add_entry(items, s.builder.super(), kRootIno, 9, {s.sub, DT_DIR, "again"});
       })},
      {"610-unconnected", Code::unconnected, with_items([](const Small& s, Items& items) {
         items.erase({kRootIno, ItemKind::dirent, 3});
         items.erase({kRootIno, ItemKind::name_hash, name_hash("dir", s.builder.super().hash_key)});
       })},
      {"610-circle", Code::unconnected, with_items([](const Small& s, Items& items) {
         items.erase({kRootIno, ItemKind::dirent, 3});
         add_entry(items, s.builder.super(), s.sub, 8, {s.dir, DT_DIR, "up"});
         Bytes& value = items.at({s.dir, ItemKind::attributes, 0});
         Attributes attributes = *decode_attributes(value);
         attributes.parent = s.sub;
         value.clear();
         encode_attributes(attributes, value);
       })},
      {"611-links", Code::link_count_wrong, with_attributes(file_of, [](Attributes& a) { a.nlink = 5; })},
      {"611-log", Code::link_count_wrong, with_log([](const Small& s, Items& items) {
         Bytes& value = items.at({s.file, ItemKind::attributes, 0});
         Attributes attributes = *decode_attributes(value);
         attributes.nlink = 5;
         value.clear();
         encode_attributes(attributes, value);
       }, new_directory_xattr)},
      {"612-not-in-orphans", Code::not_in_orphans,
       with_items([](const Small& s, Items& items) { items.erase({kOrphanIno, ItemKind::orphan, s.orphan.v}); })},
      {"613-orphan-linked", Code::orphan_has_links,
       with_items([](const Small& s, Items& items) { items[{kOrphanIno, ItemKind::orphan, s.file.v}]; })},
      {"614-orphan-missing", Code::orphan_missing,
       with_items([](const Small&, Items& items) { items[{kOrphanIno, ItemKind::orphan, 9999}]; })},
      {"615-no-root", Code::no_root, with_items([](const Small&, Items& items) {
         std::erase_if(items, [](const auto& item) { return item.first.ino == kRootIno; });
       })},
      {"615-root-is-a-file", Code::no_root, with_attributes(root_of, [](Attributes& a) { a.mode = S_IFREG | 0644; })},
  };
}

}  // namespace

const std::vector<DamageCase>& damage_cases() {
  static const std::vector<DamageCase> all = [] {
    std::vector<DamageCase> cases;
    for (const auto& some : {superblock_cases(), area_cases(), tree_cases(), inode_cases(), tail_cases(), name_cases()})
      cases.insert(cases.end(), some.begin(), some.end());
    return cases;
  }();
  return all;
}

}  // namespace varve::repair::test

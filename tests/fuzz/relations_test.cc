// One table has to agree with another (docs/format.md, "Relations"). Of each kind one record is taken out, added or changed,
// on either side. The checker sees it, the repair mends it, and what users do afterwards leaves nothing wrong.
#include <dirent.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "check/check.h"
#include "format/map_record.h"
#include "format/snapshot.h"
#include "format/superblock_layout.h"
#include "fsck/recovery.h"
#include "fuzz/structure/draft.h"
#include "fuzz/structure/use.h"
#include "repair/repair.h"
#include "support/lockstep.h"
#include "support/script_generator.h"
#include "support/world.h"

namespace varve::fuzz {
namespace {

using check::Code;
using format::ItemKind;
using format::Key;
using Elements = std::vector<Element>;
using Fits = std::function<bool(const Element&)>;

constexpr unsigned kPlain = 2, kKept = 4;  // base images: without snapshots and with

class Surgery {
 public:
  explicit Surgery(unsigned base) : base_(base_image(base)), draft_(base_) {}

  // The first item of the newest tree, or of the tables of snapshots, that fits; and its leaf.
  void item(BlockAddr root, const Fits& fits, const std::function<void(Elements&, std::size_t at)>& change) {
    for (const unsigned block : leaves_below(root)) {
      const auto elements = take_apart(Part::leaf, base_.blocks[block].bytes, base_.super.segment_blocks);
      const auto found = std::ranges::find_if(*elements, fits);
      if (found == elements->end()) continue;
      return edit(block, [&, at = static_cast<std::size_t>(found - elements->begin())](Elements& all) {
        change(all, at);
        std::ranges::stable_sort(all, {}, &Element::key);
      });
    }
    throw std::runtime_error("no such item");
  }
  void in_use(const Fits& fits, const std::function<void(Elements&, std::size_t)>& change) {
    item(base_.super.inode_file.address, fits, change);
  }
  void tables(const Fits& fits, const std::function<void(Elements&, std::size_t)>& change) {
    item(base_.super.snapshots.root.address, fits, change);
  }
  // The record of a map for the first live block of a file, or of its segment.
  void record(Part part, const std::function<void(Bytes&, std::uint64_t number_in_segment)>& change) {
    const BlockAddr block = a_block();
    const std::uint64_t segment = (block - base_.super.first_segment) / base_.super.segment_blocks;
    const std::uint64_t per_leaf = part == Part::reverse
                                       ? format::reverse_map_shape(1).per_leaf()
                                       : format::free_map_shape(base_.super.segments, base_.super.segment_blocks).per_leaf();
    const std::uint64_t index = part == Part::reverse ? block.v : segment;
    for (unsigned i = 0; i < base_.current; ++i) {
      if (base_.blocks[i].part != part) continue;
      if (format::decode_node_header(base_.blocks[i].bytes)->first.offset != index / per_leaf * per_leaf) continue;
      return edit(i, [&](Elements& all) {
        change(all[index % per_leaf].value, (block - base_.super.first_segment) % base_.super.segment_blocks);
      });
    }
    throw std::runtime_error("no such record");
  }
  void superblock(std::size_t at, std::int64_t more, bool in_image = true) {
    const Fields fields = header_fields(Part::superblock, base_.blocks[0].bytes);
    const auto field = std::ranges::find(fields, at, &Field::at);
    if (field == fields.end()) throw std::runtime_error("no such field");
    draft_.apply({.act = Act::alter_header, .field = static_cast<std::uint8_t>(field - fields.begin()),
                  .other = static_cast<std::uint8_t>(in_image ? 0 : 1), .value = field->number + static_cast<std::uint64_t>(more)});
  }
  const BaseImage& base() const { return base_; }
  std::unique_ptr<io::MemDevice> finish() { return draft_.finish(); }

 private:
  void edit(unsigned block, const std::function<void(Elements&)>& change) {
    if (!draft_.edit(block, change)) throw std::runtime_error("it does not fit");
  }
  // It is of a file in use, so that it is no snapshot's.
  BlockAddr a_block() const {
    for (const unsigned leaf : leaves_below(base_.super.inode_file.address)) {
      const auto elements = take_apart(Part::leaf, base_.blocks[leaf].bytes, base_.super.segment_blocks);
      for (const Element& element : *elements)
        if (element.key.kind == ItemKind::extent)
          if (const auto extent = format::decode_extent(element.value); !extent->unwritten) return extent->address;
    }
    throw std::runtime_error("no extent");
  }
  std::vector<unsigned> leaves_below(BlockAddr node) const {
    const unsigned block = base_.by_address.at(node.v);
    if (base_.blocks[block].part == Part::leaf) return {block};
    std::vector<unsigned> leaves;
    for (const Reference& ref : references_in(base_.blocks[block].part, base_.blocks[block].bytes)) {
      const auto below = leaves_below(BlockAddr{get_fixed(base_.blocks[block].bytes, ref.address_at, ref.address_bytes)});
      leaves.insert(leaves.end(), below.begin(), below.end());
    }
    return leaves;
  }

  const BaseImage& base_;
  Draft draft_;
};

// --- changes of one record ----------------------------------------------------------------------------------------------------------

Fits is(ItemKind kind) {
  return [=](const Element& element) { return element.key.kind == kind; };
}

Fits entry_of_type(std::uint8_t type) {
  return [=](const Element& element) { return element.key.kind == ItemKind::dirent && format::decode_dirent(element.value)->type == type; };
}

Fits attributes_of(bool directory) {
  return [=](const Element& element) {
    if (element.key.kind != ItemKind::attributes || element.key.ino == kRootIno) return false;
    return ((format::decode_attributes(element.value)->mode & 0170000) == 0040000) == directory;
  };
}

void remove(Elements& elements, std::size_t at) { elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at)); }

auto copy_to(std::function<void(Key&)> move) {
  return [=](Elements& elements, std::size_t at) {
    Element copy = elements[at];
    move(copy.key);
    elements.push_back(std::move(copy));
  };
}

auto of_attributes(std::function<void(format::Attributes&)> change) {
  return [=](Elements& elements, std::size_t at) {
    format::Attributes attributes = *format::decode_attributes(elements[at].value);
    change(attributes);
    elements[at].value.clear();
    format::encode_attributes(attributes, elements[at].value);
  };
}

auto of_snapshot(std::function<void(format::SnapshotItem&)> change) {
  return [=](Elements& elements, std::size_t at) {
    format::SnapshotItem item = *format::decode_snapshot(elements[at].key, elements[at].value);
    change(item);
    elements[at].value.clear();
    format::encode_snapshot(item, elements[at].value);
  };
}

// The runs of a piece of a list; the snapshot counts as many as there are then.
void of_list(Elements& elements, std::size_t at, const std::function<void(std::vector<format::DeadRun>&)>& change) {
  format::DeadPiece piece = *format::decode_dead(elements[at].value);
  const auto blocks = [&] {
    std::uint64_t sum = 0;
    for (const format::DeadRun& run : piece.runs) sum += run.length;
    return sum;
  };
  const std::uint64_t before = blocks();
  change(piece.runs);
  format::DeadPieceBuilder builder(format::kMostDeadPieceBytes);
  for (const format::DeadRun& run : piece.runs)
    if (!builder.add(run)) throw std::runtime_error("the list is too long");
  elements[at].value = builder.finish(piece.death);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].key.kind != ItemKind::snapshot || !format::is_dead_key_of(elements[at].key, Serial{elements[i].key.offset})) continue;
    of_snapshot([&](format::SnapshotItem& item) {
      item.dead += blocks() - before;
      item.alone = std::min(item.alone, item.dead);
    })(elements, i);
  }
}

struct Case {
  const char* name;
  unsigned base;
  Code code;
  std::function<void(Surgery&)> change;
};

std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

const std::vector<Case>& cases() {
  using namespace format::superblock_layout;
  static const std::vector<Case> all{
      // Blocks, and what the maps say of them.
      {"ABlockShownAsFree", kPlain, Code::free_map_bits_wrong, [](Surgery& s) {
         s.record(Part::free, [](Bytes& bytes, std::uint64_t n) {
           bytes[format::kSegmentRecordHeaderBytes + n / 8] &= ~std::byte{static_cast<std::uint8_t>(1U << n % 8)};
         });
       }},
      {"AFreeBlockShownAsLive", kPlain, Code::free_map_bits_wrong, [](Surgery& s) {
         s.record(Part::free, [](Bytes& bytes, std::uint64_t) { bytes.back() |= std::byte{0x80}; });
       }},
      {"AnExtentWithoutBlocks", kPlain, Code::free_map_bits_wrong, [](Surgery& s) { s.in_use(is(ItemKind::extent), remove); }},
      {"TooManyLiveBlocks", kPlain, Code::free_map_counter_wrong, [](Surgery& s) {
         s.record(Part::free, [](Bytes& bytes, std::uint64_t) { put_fixed(bytes, 4, 4, get_fixed(bytes, 4, 4) + 1); });
       }},
      {"TooFewLiveBlocks", kPlain, Code::free_map_counter_wrong, [](Surgery& s) {
         s.record(Part::free, [](Bytes& bytes, std::uint64_t) { put_fixed(bytes, 4, 4, get_fixed(bytes, 4, 4) - 1); });
       }},
      {"ABlockWithoutAnOwner", kPlain, Code::reverse_map_wrong, [](Surgery& s) {
         s.record(Part::reverse, [](Bytes& bytes, std::uint64_t) { std::ranges::fill(bytes, std::byte{0}); });
       }},
      {"ABlockOfAnotherOwner", kPlain, Code::reverse_map_wrong, [](Surgery& s) {
         s.record(Part::reverse, [](Bytes& bytes, std::uint64_t) { bytes[2] ^= std::byte{64}; });
       }},
      {"TwoExtentsOnOneBlock", kPlain, Code::claimed_twice, [](Surgery& s) {
         s.in_use(is(ItemKind::extent), copy_to([](Key& key) { key.offset += 100; }));
       }},
      // Counts of the superblock, and its image.
      {"MoreLiveBlocksThanThereAre", kPlain, Code::count_wrong, [](Surgery& s) { s.superblock(kCountsAt, 1); }},
      {"FewerLiveBlocksThanThereAre", kPlain, Code::count_wrong, [](Surgery& s) { s.superblock(kCountsAt, -1); }},
      {"MoreInodesThanThereAre", kPlain, Code::count_wrong, [](Surgery& s) { s.superblock(kCountsAt + 24, 1); }},
      {"FewerInodesThanThereAre", kPlain, Code::count_wrong, [](Surgery& s) { s.superblock(kCountsAt + 24, -1); }},
      {"AnImageThatSaysLess", kPlain, Code::image_wrong, [](Surgery& s) { s.superblock(kCountsAt, 1, false); }},
      {"AnInodeThatWasNotHandedOut", kPlain, Code::inode_number_too_high, [](Surgery& s) { s.superblock(kClockAt + 16, -1); }},
      // Directories.
      {"AnEntryWithoutItsHash", kPlain, Code::entry_not_indexed, [](Surgery& s) { s.in_use(is(ItemKind::name_hash), remove); }},
      {"AHashWithoutItsEntry", kPlain, Code::index_without_entry, [](Surgery& s) {
         s.in_use(is(ItemKind::name_hash), copy_to([](Key& key) { key.offset ^= 1; }));
       }},
      {"AnEntryWithoutItsInode", kPlain, Code::entry_dangling, [](Surgery& s) {
         s.in_use(entry_of_type(DT_REG), [](Elements& elements, std::size_t at) {
           format::Dirent entry = *format::decode_dirent(elements[at].value);
           const std::string name(entry.name);
           entry.name = name;
           entry.ino = Ino{entry.ino.v + (1U << 20)};
           Bytes value;
           format::encode_dirent(entry, value);
           elements[at].value = std::move(value);
         });
       }},
      {"AFileWithoutItsEntry", kPlain, Code::link_count_wrong, [](Surgery& s) { s.in_use(entry_of_type(DT_REG), remove); }},
      {"ADirectoryWithoutItsEntry", kPlain, Code::unconnected, [](Surgery& s) { s.in_use(entry_of_type(DT_DIR), remove); }},
      {"ADirectoryThatNamesAnotherParent", kPlain, Code::parent_wrong, [](Surgery& s) {
         s.in_use(attributes_of(true), of_attributes([](format::Attributes& a) { a.parent = Ino{a.parent.v + 1}; }));
       }},
      {"MoreEntriesThanThereAre", kPlain, Code::entry_count_wrong, [](Surgery& s) {
         s.in_use(attributes_of(true), of_attributes([](format::Attributes& a) { ++a.entries; }));
       }},
      {"FewerEntriesThanThereAre", kPlain, Code::entry_count_wrong, [](Surgery& s) {
         s.in_use(attributes_of(true), of_attributes([](format::Attributes& a) { --a.entries; }));
       }},
      // Inodes.
      {"ItemsWithoutAttributes", kPlain, Code::no_attributes, [](Surgery& s) { s.in_use(attributes_of(false), remove); }},
      {"TooManyBlocks", kPlain, Code::blocks_wrong, [](Surgery& s) {
         s.in_use(attributes_of(false), of_attributes([](format::Attributes& a) { ++a.blocks; }));
       }},
      {"TooManyLinks", kPlain, Code::link_count_wrong, [](Surgery& s) {
         s.in_use(attributes_of(false), of_attributes([](format::Attributes& a) { ++a.nlink; }));
       }},
      {"AnInodeWithoutLinksThatIsNoOrphan", kPlain, Code::not_in_orphans, [](Surgery& s) {
         s.in_use(attributes_of(false), of_attributes([](format::Attributes& a) { a.nlink = 0; }));
       }},
      {"AnOrphanWithLinks", kPlain, Code::orphan_has_links, [](Surgery& s) {
         s.in_use(attributes_of(true), [](Elements& elements, std::size_t at) {
           elements.push_back({{format::kOrphanIno, ItemKind::orphan, elements[at].key.ino.v}, {}});
         });
       }},
      {"AnOrphanWithoutItsInode", kPlain, Code::orphan_missing, [](Surgery& s) {
         s.in_use(is(ItemKind::attributes), [](Elements& elements, std::size_t) {
           elements.push_back({{format::kOrphanIno, ItemKind::orphan, 1U << 20}, {}});
         });
       }},
      {"PiecesOfAttributesAreMissing", kPlain, Code::pieces_missing, [](Surgery& s) {
         s.in_use([](const Element& e) { return e.key.kind == ItemKind::xattr && e.key.offset == 1; },
                  [](Elements& elements, std::size_t at) { ++elements[at].key.offset; });
       }},
      {"ASymlinkWithoutItsTarget", kPlain, Code::symlink_wrong, [](Surgery& s) { s.in_use(is(ItemKind::symlink), remove); }},
      // Snapshots.
      {"AHeldBlockThatIsNotListed", kKept, Code::held_not_listed, [](Surgery& s) {
         s.tables(is(ItemKind::dead), [](Elements& elements, std::size_t at) {
           of_list(elements, at, [](auto& runs) { runs.pop_back(); });
         });
       }},
      {"AListedBlockThatNoTreeHas", kKept, Code::listed_not_held, [](Surgery& s) {
         s.tables(is(ItemKind::dead), [&](Elements& elements, std::size_t at) {
           of_list(elements, at, [&](auto& runs) {
             runs.push_back({.address = BlockAddr{s.base().super.device_blocks - 70}, .birth = {.when = 1}, .clock = 1});
           });
         });
       }},
      {"AListWithoutItsSnapshot", kKept, Code::listed_not_held, [](Surgery& s) {
         s.tables(is(ItemKind::dead), copy_to([](Key& key) { --key.ino.v; }));
       }},
      {"ASnapshotThatCountsMoreThanItsList", kKept, Code::count_wrong, [](Surgery& s) {
         s.tables(is(ItemKind::snapshot), of_snapshot([](format::SnapshotItem& item) { ++item.dead; }));
       }},
      {"ASnapshotThatCountsLessThanItsList", kKept, Code::count_wrong, [](Surgery& s) {
         s.tables(is(ItemKind::snapshot), of_snapshot([](format::SnapshotItem& item) { item.alone = --item.dead; }));
       }},
      {"APieceThatTheNextOneWouldReplace", kKept, Code::count_wrong, [](Surgery& s) {
         s.tables(is(ItemKind::snapshot), of_snapshot([](format::SnapshotItem& item) { item.next_piece = 0; }));
       }},
      {"ASnapshotWithoutItsTree", kKept, Code::snapshot_lost, [](Surgery& s) {
         s.tables(is(ItemKind::snapshot), of_snapshot([](format::SnapshotItem& item) { ++item.inode_file_level; }));
       }},
      {"APlaceWithoutItsName", kKept, Code::place_wrong, [](Surgery& s) { s.tables(is(ItemKind::name), remove); }},
      {"ANameWithoutItsPlace", kKept, Code::place_wrong, [](Surgery& s) { s.tables(is(ItemKind::place), remove); }},
      {"ANameThatLeadsElsewhere", kKept, Code::place_wrong, [](Surgery& s) {
         s.tables(is(ItemKind::name), copy_to([&](Key& key) { key.ino = Ino{s.base().super.device_blocks - 70}; }));
       }},
      {"APlaceOfACheckpointToCome", kKept, Code::snapshot_item_damaged, [](Surgery& s) {
         s.tables(is(ItemKind::place), copy_to([](Key& key) { key.offset += 1000; }));
       }},
      {"APlaceThatSaysItIsLater", kKept, Code::snapshot_item_damaged, [](Surgery& s) {
         s.tables(is(ItemKind::place), [](Elements& elements, std::size_t at) { elements[at].key.offset += 1000; });
       }},
      {"MoreSnapshotsThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 32, 1); }},
      {"FewerSnapshotsThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 32, -1); }},
      {"MoreHeldBlocksThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 40, 1); }},
      {"FewerHeldBlocksThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 40, -1); }},
      {"MorePlacesThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 64, 1); }},
      {"FewerPlacesThanThereAre", kKept, Code::count_wrong, [](Surgery& s) { s.superblock(kSnapshotsAt + 64, -1); }},
  };
  return all;
}

class Relations : public ::testing::TestWithParam<Case> {};

std::string lines(const check::Report& report) {
  std::string text;
  for (const check::Problem& problem : report.problems.kept()) text += to_line(problem) + "\n";
  return text;
}

// Names, data, cleaning, moved blocks, snapshots, remounts; then all that is there is read and changed, and all snapshots go. Empty, or
// what is wrong afterwards.
std::string history(io::MemDevice& device, std::uint64_t seed) {
  test::ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);
  SeededRandom random(seed);
  test::FsFixture fixture(device, test::test_options(clock, random));
  if (Status mounted = fixture.mount(); !mounted.ok()) return mounted.error().message();
  test::Lockstep steps(fixture, clock, {.compare_times = false});
  if (Status adopted = steps.adopt_root(); !adopted.ok()) return adopted.error().message();
  test::ScriptProfile profile;
  profile.prefix = "used-";
  profile.spare_root = true;
  profile.file_bytes = 128U << 10;
  profile.total_bytes = 1U << 20;
  profile.far_percent = 0;
  profile.checkpoint_weight = profile.remount_weight = 3;
  profile.move_weight = profile.snapshot_weight = profile.clean_weight = 6;
  profile.strategies = {"copying"};
  test::ScriptGenerator generator(seed, profile);
  for (int i = 0; i < 150; ++i) {
    const test::Step step = generator.next(steps.model);
    if (std::string failure = steps.run(step); !failure.empty()) return to_string(step) + ": " + failure;
  }
  const auto rest = [&] {
    steps.model.drop_all_references();
    const Status unmounted = fixture.unmount();
    return unmounted.ok() ? test::check_image(device) : unmounted.error().message();
  };
  if (std::string wrong = rest(); !wrong.empty()) return wrong;
  if (Status mounted = fixture.mount(); !mounted.ok()) return mounted.error().message();
  Use use(fixture, true, false);
  use.all(true);
  return use.broken().empty() ? rest() : use.broken();
}

TEST_P(Relations, AreSeenMendedAndHold) {
  Surgery surgery(GetParam().base);
  GetParam().change(surgery);
  const auto device = surgery.finish();
  const auto seen = check::check(*device, {});
  ASSERT_TRUE(seen.ok()) << seen.error().message();
  EXPECT_GT(seen->problems.count(GetParam().code), 0U) << check::name_of(GetParam().code) << " is not among:\n" << lines(*seen);
  const auto done = repair::repair(*device, fsck::recover, {});
  ASSERT_TRUE(done.ok() && done->ended.ok());
  EXPECT_EQ(done->errors_left(), 0U) << lines(done->after);
  ASSERT_EQ(test::check_image(*device), "") << "after the repair";
  for (std::uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(history(*device->snapshot(), seed), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(All, Relations, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace varve::fuzz

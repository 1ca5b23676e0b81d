// What fuzzing of whole images has found, made by hand: where the checker saw nothing, and where a repair came to no end.
#include <gtest/gtest.h>

#include <algorithm>

#include "check/check.h"
#include "format/snapshot.h"
#include "format/superblock_layout.h"
#include "fsck/recovery.h"
#include "fuzz/structure/draft.h"
#include "fuzz/structure/trial.h"
#include "repair/repair.h"

namespace varve::fuzz {
namespace {

using check::Code;
using format::ItemKind;
using Elements = std::vector<Element>;

constexpr unsigned kWithSnapshots = 4;

Element& first_of(Elements& elements, ItemKind kind) {
  const auto found = std::ranges::find(elements, kind, [](const Element& element) { return element.key.kind; });
  if (found == elements.end()) throw std::runtime_error("no such item");
  return *found;
}

void put_in_order(Elements& elements) { std::ranges::stable_sort(elements, {}, &Element::key); }

class Findings : public ::testing::Test {
 protected:
  void change_tables(const std::function<void(Elements&)>& change) {
    ASSERT_EQ(base_.tables.size(), 1U) << "all items stand in one leaf";
    ASSERT_TRUE(draft_.edit(base_.tables[0], change));
  }

  void alter_superblock(std::size_t at, std::uint64_t number) {
    const Fields fields = header_fields(Part::superblock, base_.blocks[0].bytes);
    const auto field = std::ranges::find(fields, at, &Field::at);
    ASSERT_NE(field, fields.end());
    draft_.apply({.act = Act::alter_header, .field = static_cast<std::uint8_t>(field - fields.begin()), .value = number});
  }

  // The checker says so, and the image holds what a trial asks of it: a repair leaves nothing, or only what it may.
  void expect(Code code) {
    const auto device = draft_.finish();
    const auto report = check::check(*device, {.verify_data = true});
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_GT(report->problems.count(code), 0U) << check::name_of(code);
    TrialCounts counts;
    suffer(*device, kSnapshots, counts);
    EXPECT_EQ(counts.repaired, 1U);
  }

  const BaseImage& base_ = base_image(kWithSnapshots);
  Draft draft_{base_};
};

TEST_F(Findings, APlaceWithoutTheNameThatLeadsBack) {
  change_tables([](Elements& elements) { elements.erase(elements.begin() + (&first_of(elements, ItemKind::name) - elements.data())); });
  expect(Code::place_wrong);
}

TEST_F(Findings, TwoPlacesThatLeadToOneBlock) {
  change_tables([](Elements& elements) {
    Element copy = first_of(elements, ItemKind::place);
    copy.key.ino = Ino{copy.key.ino.v + 1'000'000};
    elements.push_back(copy);
    put_in_order(elements);
  });
  expect(Code::count_wrong);  // no snapshot has a block of that address, so nothing else is wrong
}

TEST_F(Findings, APlaceOfAnAddressThatCannotBe) {
  change_tables([](Elements& elements) {
    Element copy = first_of(elements, ItemKind::place);
    copy.key.ino = Ino{copy.key.ino.v | 1ULL << 63};
    elements.push_back(copy);
    put_in_order(elements);
  });
  expect(Code::snapshot_item_damaged);
}

TEST_F(Findings, ASnapshotOfACheckpointToCome) {
  change_tables([](Elements& elements) {
    Element copy = first_of(elements, ItemKind::snapshot);
    copy.key.offset = 64559;
    elements.push_back(copy);
    put_in_order(elements);
  });
  expect(Code::snapshot_item_damaged);
}

// Its root then stands where a block of a file is, as another snapshot says as well.
TEST_F(Findings, ASnapshotWhoseRootIsAnothersBlock) {
  change_tables([](Elements& elements) {
    const auto root = [&](const Element& place) {
      return place.key.kind == ItemKind::place && std::ranges::any_of(elements, [&](const Element& item) {
               return item.key.kind == ItemKind::snapshot &&
                      format::decode_snapshot(item.key, item.value)->inode_file.address.v == place.key.ino.v;
             });
    };
    const auto of_root = std::ranges::find_if(elements, root);
    ASSERT_NE(of_root, elements.end());
    for (Element& element : elements)
      if (element.key.kind == ItemKind::place && !root(element)) return std::swap(element.value, of_root->value);
  });
  expect(Code::place_wrong);
}

TEST_F(Findings, AMovedBlockOfACheckpointToCome) {
  change_tables([](Elements& elements) {
    for (const ItemKind kind : {ItemKind::place, ItemKind::name}) {
      Element copy = first_of(elements, kind);
      copy.key.offset = 1000;
      elements.push_back(copy);
    }
    put_in_order(elements);
  });
  expect(Code::snapshot_item_damaged);
}

// The first in a list gets a birth before its own.
void make_older(Elements& elements, bool of_node) {
  for (Element& element : elements) {
    if (element.key.kind != ItemKind::dead) continue;
    format::DeadPiece piece = *format::decode_dead(element.value);
    const auto run = std::ranges::find_if(piece.runs, [&](const format::DeadRun& one) { return one.birth.of_node == of_node; });
    if (run == piece.runs.end() || run->birth.when < 2) continue;
    --run->birth.when;
    --run->clock;
    format::DeadPieceBuilder builder(format::kMostDeadPieceBytes);
    for (const format::DeadRun& one : piece.runs) ASSERT_TRUE(builder.add(one));
    element.value = builder.finish(piece.death);
    return;
  }
  FAIL() << "no list has one";
}

TEST_F(Findings, AListedNodeThatIsSaidToBeOlder) {
  change_tables([](Elements& elements) { make_older(elements, true); });
  expect(Code::listed_not_held);
}

TEST_F(Findings, AListedBlockOfAFileThatIsSaidToBeOlder) {
  change_tables([](Elements& elements) { make_older(elements, false); });
  expect(Code::listed_not_held);
}

TEST_F(Findings, AClockBehindWhatSnapshotsKeep) {
  alter_superblock(format::superblock_layout::kClockAt, base_.super.clock / 8);
  expect(Code::free_map_counter_wrong);
}

// The next one could not be read any more, so a repair would destroy what is there.
TEST_F(Findings, ACheckpointAfterWhichThereCanBeNone) {
  alter_superblock(format::superblock_layout::kSerialAt, 1ULL << 63);
  const auto device = draft_.finish();
  const auto before = device->snapshot();
  const auto done = repair::repair(*device, fsck::recover, {});
  EXPECT_TRUE(done.fails_with(Errc::out_of_range));
  for (std::uint64_t i = 0; i < before->store().blocks(); ++i) EXPECT_EQ(device->store().block(i), before->store().block(i));
}

}  // namespace
}  // namespace varve::fuzz

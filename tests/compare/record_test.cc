// Answers as bytes, and what is no answer.
#include <gtest/gtest.h>

#include "compare/entries.h"
#include "compare/record.h"
#include "support/script_generator.h"

namespace varve::test {
namespace {

using compare::BlockState;
using compare::Record;

std::vector<Record> samples() {
  format::Attributes file;
  file.mode = 0100644;
  file.nlink = 1;
  file.size = 12345;
  format::Attributes directory = file;
  directory.mode = 0040755;
  directory.parent = Ino{7};
  Record attributes{.kind = Record::Kind::attributes, .ino = Ino{300}};
  attributes.attributes_before = file;
  attributes.attributes_after = directory;
  Record entry{.kind = Record::Kind::entry, .ino = Ino{2}, .cookie = 1'000'000};
  entry.entry_after = compare::EntryValue{Ino{9}, 8, "name"};
  const Record blocks{.kind = Record::Kind::blocks, .ino = Ino{1ULL << 40}, .first = 5, .length = 1ULL << 50, .was = BlockState::data,
                      .is = BlockState::unwritten};
  return {attributes, entry, blocks, {.kind = Record::Kind::xattrs, .ino = Ino{4}}, {.kind = Record::Kind::target, .ino = Ino{5}}};
}

TEST(Records, come_back_as_they_were) {
  format::Bytes bytes;
  for (const Record& record : samples()) compare::append(record, bytes);
  const auto found = compare::decode_records(bytes);
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(*found, samples());
}

TEST(Records, are_refused_where_they_are_cut_or_make_no_sense) {
  format::Bytes bytes;
  for (const Record& record : samples()) compare::append(record, bytes);
  std::size_t refused = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length)
    refused += !compare::decode_records(std::span(bytes).first(length)).ok();
  EXPECT_EQ(refused, bytes.size() - samples().size());  // all but the ends of records
  const auto decode = [](std::initializer_list<unsigned> text) {
    format::Bytes made;
    for (const unsigned value : text) made.push_back(static_cast<std::byte>(value));
    return compare::decode_records(made);
  };
  EXPECT_TRUE(decode({9, 1}).fails_with(Errc::corrupt));               // no such kind
  EXPECT_TRUE(decode({1, 1, 4}).fails_with(Errc::corrupt));            // no such side
  EXPECT_TRUE(decode({3, 1, 0, 0, 0, 0}).fails_with(Errc::corrupt));   // no blocks
  EXPECT_TRUE(decode({3, 1, 0, 1, 3, 0}).fails_with(Errc::corrupt));   // no such state
  EXPECT_TRUE(decode({2, 1, 0, 1, 2, 0, 0}).fails_with(Errc::corrupt));  // an entry without a name
}

TEST(Records, of_any_bytes_are_decoded_or_refused) {
  format::Bytes bytes;
  for (const Record& record : samples()) compare::append(record, bytes);
  Dice dice(1);
  for (int turn = 0; turn < 20'000; ++turn) {
    format::Bytes changed = bytes;
    for (std::uint64_t i = dice.between(1, 4); i > 0; --i) changed[dice.below(changed.size())] = static_cast<std::byte>(dice.below(256));
    const auto found = compare::decode_records(changed);
    if (!found.ok()) continue;
    format::Bytes again;  // what was accepted can be said again
    for (const Record& record : *found) compare::append(record, again);
    const auto same = compare::decode_records(again);
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, *found);
  }
}

TEST(Entries, come_back_as_they_were) {
  format::Bytes bytes{std::byte{3}};
  compare::append_entry({"a", Ino{500}, 8}, bytes);
  compare::append_entry({std::string(255, 'x'), Ino{2}, 4}, bytes);
  const auto found = compare::decode_entries(bytes);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->parent, Ino{3});
  ASSERT_EQ(found->entries.size(), 2U);
  EXPECT_EQ(found->entries[1].name, std::string(255, 'x'));
  EXPECT_EQ(found->entries[0].ino, Ino{500});
  bytes.pop_back();
  EXPECT_TRUE(compare::decode_entries(bytes).fails_with(Errc::corrupt));
}

}  // namespace
}  // namespace varve::test

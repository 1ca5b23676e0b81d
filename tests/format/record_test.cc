#include "format/record.h"

#include <gtest/gtest.h>

#include "samples.h"

namespace varve::format {
namespace {

using test::bytes_of;

// Collects a readable form of each record, because views die after the visit.
struct Describe {
  std::string operator()(const SetAttributes& r) const {
    return fmt::format("attributes {} {:o} {} {}", r.ino, r.attributes.mode, r.attributes.size, r.attributes.blocks);
  }
  std::string operator()(const FreeInode& r) const { return fmt::format("free {}", r.ino); }
  std::string operator()(const SetOrphan& r) const { return fmt::format("orphan {}", r.ino); }
  std::string operator()(const ClearOrphan& r) const { return fmt::format("no orphan {}", r.ino); }
  std::string operator()(const SetDirent& r) const {
    return fmt::format("entry {} {} {} {} {}", r.directory, r.cookie, r.entry.ino, r.entry.type, r.entry.name);
  }
  std::string operator()(const DeleteDirent& r) const {
    return fmt::format("no entry {} {} {}", r.directory, r.cookie, r.name);
  }
  std::string operator()(const SetXattr& r) const {
    return fmt::format("xattr {} {} {}", r.ino, r.name, r.value.size());
  }
  std::string operator()(const DeleteXattr& r) const { return fmt::format("no xattr {} {}", r.ino, r.name); }
  std::string operator()(const SetSymlink& r) const { return fmt::format("symlink {} {}", r.ino, r.target); }
  std::string operator()(const MapBlocks& r) const {
    return fmt::format("map {} {} {} {} {} {} {}", r.ino, r.first, r.address, r.clock, r.estimate, r.moved,
                       fmt::join(r.crcs, ","));
  }
  std::string operator()(const ClearRange& r) const {
    return fmt::format("clear {} {} {} {}", r.ino, r.from, r.to, r.unwritten);
  }
  std::string operator()(const SetTail& r) const { return fmt::format("tail {} {} {}", r.ino, r.block, r.bytes.size()); }
};

Result<std::vector<std::string>> describe(std::span<const std::byte> bytes) {
  std::vector<std::string> list;
  TRY(decode_records(bytes, [&](const Record& record) -> Status {
    list.push_back(std::visit(Describe{}, record));
    return {};
  }));
  return list;
}

std::vector<Record> samples() {
  static const std::string longest(kMaxSymlink, 't');
  static const Bytes value(kMaxXattrValue);
  return {SetAttributes{Ino{7}, test::sample_attributes()},
          FreeInode{Ino{~0ULL}},
          SetOrphan{Ino{8}},
          ClearOrphan{Ino{8}},
          SetDirent{Ino{1}, 900, {Ino{7}, 8, "name"}},
          DeleteDirent{Ino{1}, 900, "name"},
          SetXattr{Ino{7}, "user.a", value},
          SetXattr{Ino{7}, "user.b", {}},
          DeleteXattr{Ino{7}, "user.a"},
          SetSymlink{Ino{9}, longest},
          MapBlocks{Ino{7}, 12, BlockAddr{1ULL << 40}, 77, 3, true, {1, 2, 0xFFFFFFFF}},
          MapBlocks{Ino{7}, kMaxFileBlocks - kMaxExtentBlocks, BlockAddr{5}, 77, 3, false,
                    std::vector<std::uint32_t>(kMaxExtentBlocks, 9)},
          MapBlocks{Ino{7}, 0, BlockAddr{9}, 0, 0, false, {4}},
          ClearRange{Ino{7}, 0, ~0ULL, false},
          ClearRange{Ino{7}, 10, 20, true},
          ClearRange{Ino{7}, 10, 10, false},
          SetTail{Ino{7}, kMaxFileBlocks - 1, std::span(value).first(kMaxLoggedTail)},
          SetTail{Ino{7}, 0, std::span(value).first(1)}};
}

TEST(Record, AllKindsComeBackInOrder) {
  Bytes bytes;
  std::vector<std::string> expected;
  for (const Record& record : samples()) {
    const std::size_t before = bytes.size();
    const std::size_t appended = encode_record(record, bytes);
    EXPECT_EQ(appended, bytes.size() - before);
    expected.push_back(std::visit(Describe{}, record));
  }
  expected[0] = "attributes 7 100644 4096 0";  // `blocks` is not carried
  const auto back = describe(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, expected);
}

TEST(Record, SingleBlockMappingIsSmall) {
  Bytes bytes;
  EXPECT_LE(encode_record(MapBlocks{Ino{70'000}, 100'000, BlockAddr{1 << 20}, 5, 1, false, {42}}, bytes), 24U);
}

TEST(Record, TruncatedBytesAreRefused) {
  for (const Record& record : samples()) {
    Bytes bytes;
    encode_record(record, bytes);
    for (std::size_t n = 1; n < bytes.size(); n += n < 64 ? 1 : 997)
      EXPECT_TRUE(describe(std::span(bytes).first(n)).fails_with(Errc::corrupt)) << record.index() << ", " << n;
  }
}

TEST(Record, ImpossibleValuesAreRefused) {
  const std::string too_long(kMaxSymlink + 1, 't');
  const Bytes too_much(kMaxLoggedTail + 1);
  const std::vector<Record> bad{FreeInode{Ino{0}},
                                SetDirent{Ino{1}, 3, {Ino{2}, 8, "a/b"}},
                                SetDirent{Ino{1}, 3, {Ino{2}, 9, "a"}},
                                DeleteDirent{Ino{1}, 3, ".."},
                                SetXattr{Ino{1}, "", {}},
                                DeleteXattr{Ino{1}, std::string_view("a\0b", 3)},
                                SetSymlink{Ino{1}, ""},
                                SetSymlink{Ino{1}, too_long},
                                MapBlocks{Ino{1}, 0, BlockAddr{9}, 0, 0, false, {}},
                                MapBlocks{Ino{1}, 0, BlockAddr{0}, 0, 0, false, {1}},
                                MapBlocks{Ino{1}, kMaxFileBlocks, BlockAddr{9}, 0, 0, false, {1}},
                                MapBlocks{Ino{1}, 0, BlockAddr{9}, 0, 0, false,
                                          std::vector<std::uint32_t>(kMaxExtentBlocks + 1)},
                                ClearRange{Ino{1}, 5, 4, false},
                                ClearRange{Ino{1}, 0, kMaxFileBlocks + 1, true},
                                SetTail{Ino{1}, 0, {}},
                                SetTail{Ino{1}, 0, std::span(too_much)},
                                SetTail{Ino{1}, kMaxFileBlocks, std::span(too_much).first(1)}};
  for (std::size_t i = 0; i < bad.size(); ++i) {
    Bytes bytes;
    encode_record(bad[i], bytes);
    EXPECT_TRUE(describe(bytes).fails_with(Errc::corrupt)) << i;
  }
  EXPECT_TRUE(describe(Bytes{std::byte{12}, std::byte{1}, std::byte{1}}).fails_with(Errc::corrupt)) << "unknown kind";
  EXPECT_TRUE(describe(Bytes{std::byte{2}, std::byte{2}, std::byte{1}, std::byte{1}}).fails_with(Errc::corrupt));
  EXPECT_TRUE(describe(Bytes{std::byte{2}, std::byte{0xFF}, std::byte{0xFF}}).fails_with(Errc::corrupt));
}

TEST(Record, DamagedBytesNeverReadOutOfBounds) {
  Bytes good;
  for (const Record& record : samples()) encode_record(record, good);
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SeededRandom random(seed);
    Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(1 + random.next() % 200));
    for (unsigned n = 0; n <= seed % 3; ++n) bytes[random.next() % bytes.size()] = static_cast<std::byte>(random.next());
    (void)describe(bytes).ok();
  }
}

TEST(Record, VisitorsErrorStopsTheWalk) {
  Bytes bytes;
  encode_record(FreeInode{Ino{1}}, bytes);
  encode_record(FreeInode{Ino{2}}, bytes);
  int visits = 0;
  const Status status = decode_records(bytes, [&](const Record&) -> Status {
    ++visits;
    return Errc::interrupted;
  });
  EXPECT_TRUE(status.fails_with(Errc::interrupted));
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace varve::format

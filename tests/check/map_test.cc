// `.ffile` and `.mfile` against what the trees say.
#include "checking.h"

namespace varve::check::test {
namespace {

using namespace format;

TEST(FreeMap, BitsAndCounters) {
  auto with_segment = [](std::uint64_t which, auto change) {
    ImageBuilder builder;
    fill(builder);
    builder.change_segment = [=](std::uint64_t segment, std::vector<std::byte>& bytes) {
      if (segment == which) change(bytes);
    };
    return codes(builder);
  };
  auto with_record = [&](std::uint64_t which, auto change) {
    return with_segment(which, [=](std::vector<std::byte>& bytes) {
      SegmentRecord record = *decode_segment_record(bytes);
      change(record);
      encode_segment_record(record, bytes);
    });
  };
  EXPECT_EQ(with_segment(0, [](auto& bytes) { bytes[kSegmentRecordHeaderBytes] ^= std::byte{1}; }),
            std::set{Code::free_map_bits_wrong});
  EXPECT_EQ(with_segment(8, [](auto& bytes) { bytes[kSegmentRecordHeaderBytes + 3] ^= std::byte{0x80}; }),
            std::set{Code::free_map_bits_wrong});
  EXPECT_EQ(with_segment(0, [](auto& bytes) { bytes[0] = std::byte{0x77}; }), std::set{Code::free_map_record_damaged});
  EXPECT_EQ(with_record(0, [](SegmentRecord& r) { ++r.live; }), std::set{Code::free_map_counter_wrong});
  EXPECT_EQ(with_record(8, [](SegmentRecord& r) { ++r.clock_sum; }), std::set{Code::free_map_counter_wrong});
  EXPECT_EQ(with_record(8, [](SegmentRecord& r) { r.youngest = 0; }), std::set{Code::free_map_counter_wrong});
  EXPECT_EQ(with_record(8, [](SegmentRecord& r) { r.youngest += 5; }), std::set<Code>{}) << "an upper bound is enough";
}

TEST(ReverseMap, OwnersAreCompared) {
  auto with_owner = [](Owner which, auto change) {
    ImageBuilder builder;
    fill(builder);
    builder.change_owners = [=](std::map<std::uint64_t, ReverseEntry>& owners) {
      for (auto& [address, entry] : owners)
        if (entry.owner == which) {
          change(entry);
          return;
        }
    };
    const auto device = builder.build();
    const Report report = run(*device);
    EXPECT_EQ(report.problems.count(Code::reverse_map_wrong), 1U) << lines(report);
    EXPECT_EQ(report.errors(), 1U);
  };
  with_owner(Owner::file_block, [](ReverseEntry& e) { ++e.ino; });
  with_owner(Owner::file_block, [](ReverseEntry& e) { ++e.block; });
  with_owner(Owner::file_block, [](ReverseEntry& e) { ++e.clock; });
  with_owner(Owner::file_block, [](ReverseEntry& e) { ++e.estimate; });
  with_owner(Owner::file_block, [](ReverseEntry& e) { ++e.crc; });
  with_owner(Owner::file_block, [](ReverseEntry& e) { e = {}; });
  with_owner(Owner::node, [](ReverseEntry& e) { ++e.level; });
  with_owner(Owner::node, [](ReverseEntry& e) { e.tree = TreeId::free_map; });
}

TEST(ReverseMap, DeadBlocksMayHaveAnyOwner) {
  ImageBuilder builder;
  fill(builder);
  builder.change_owners = [](std::map<std::uint64_t, ReverseEntry>& owners) {
    owners[owners.rbegin()->first + 1] = owners.rbegin()->second;
  };
  EXPECT_EQ(codes(builder), std::set<Code>{});
}

}  // namespace
}  // namespace varve::check::test

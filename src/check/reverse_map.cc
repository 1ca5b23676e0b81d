#include "check/reverse_map.h"

#include <map>
#include <unordered_map>

namespace varve::check {

namespace {

constexpr std::size_t kMostLeavesLocated = 1000;  // of .mfile; what is wrong in more is counted, not listed

using Owners = std::unordered_map<std::uint64_t, format::ReverseEntry>;  // by address

// Calls visit(address, entry bytes) for each live block that has a leaf.
template <class Visit>
void for_each_live(const Claims& claims, std::uint64_t first, std::span<const std::byte> records, Visit visit) {
  const std::uint64_t count = records.size() / format::kReverseEntryBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const BlockAddr address{first + i};
    if (claims.is_inside(address) && claims.is_claimed(address) && !claims.is_nameless(address))
      visit(address, records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes));
  }
}

// Leaves of .mfile whose entries are not what the claims add up to.
std::unordered_map<std::uint64_t, bool> differing_leaves(Context& context, const Claims& claims, MapWalk& map,
                                                          std::uint64_t per_leaf) {
  std::vector<std::uint64_t> sums = claims.hash_sums();
  map.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    for_each_live(claims, first, records, [&](BlockAddr address, std::span<const std::byte> bytes) {
      const auto entry = format::decode_reverse_entry(bytes);
      sums[first / per_leaf] -= entry.ok() ? entry_hash(address, *entry) : 1;
    });
    if (records.empty()) sums[first / per_leaf] = 0;
    context.update("owners", first, context.super().device_blocks);
  });
  std::unordered_map<std::uint64_t, bool> leaves;  // value: its node exists
  for (std::uint64_t i = 0; i < sums.size() && leaves.size() < kMostLeavesLocated; ++i)
    if (sums[i] != 0) leaves.emplace(i, false);
  return leaves;
}

}  // namespace

void report_conflicts(Context& context, const Claims& claims, const ClaimAgain& claim_again) {
  if (claims.conflicts().empty()) return;
  std::map<std::uint64_t, std::string> owners;
  Claims again(context.super());
  again.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) {
    if (!claims.conflicts().contains(address.v)) return;
    std::string& list = owners[address.v];
    list += (list.empty() ? "" : "; ") + describe(entry);
  });
  claim_again(again);
  for (const auto& [address, list] : owners) context.add(Code::claimed_twice, {BlockAddr{address}, {}}, list);
}

void check_reverse_map(Context& context, const Claims& claims, MapWalk& map, const ClaimAgain& claim_again) {
  const std::uint64_t per_leaf = format::reverse_map_shape(1).per_leaf();
  auto leaves = differing_leaves(context, claims, map, per_leaf);
  if (leaves.empty()) return;
  Owners owners;
  Claims again(context.super());
  again.set_recorder([&](BlockAddr address, const format::ReverseEntry& entry) {
    if (leaves.contains(address.v / per_leaf)) owners.emplace(address.v, entry);
  });
  claim_again(again);
  auto compare = [&](BlockAddr address, const format::ReverseEntry& recorded) {
    const auto owner = owners.find(address.v);
    if (owner != owners.end() && owner->second != recorded)
      context.add(Code::reverse_map_wrong, {address, owner->second.ino},
                  fmt::format("{} instead of {}", describe(recorded), describe(owner->second)));
  };
  map.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    const auto leaf = leaves.find(first / per_leaf);
    if (leaf == leaves.end()) return;
    leaf->second = true;
    for_each_live(claims, first, records, [&](BlockAddr address, std::span<const std::byte> bytes) {
      const auto entry = format::decode_reverse_entry(bytes);
      if (entry.ok()) compare(address, *entry);
      else context.add(Code::reverse_map_wrong, {address, {}}, entry.error().message());
    });
  });
  for (const auto& [leaf, exists] : leaves)
    for (std::uint64_t i = 0; !exists && i < per_leaf; ++i) compare(BlockAddr{leaf * per_leaf + i}, {});
}

}  // namespace varve::check

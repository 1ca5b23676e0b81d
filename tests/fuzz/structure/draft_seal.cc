// Makes the checksums of a draft right, up to the superblocks and along the log.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "format/superblock_layout.h"
#include "fuzz/structure/draft.h"

namespace varve::fuzz {

namespace {

constexpr std::size_t kPreviousAt = 32;  // in a chunk

}  // namespace

std::unique_ptr<io::MemDevice> Draft::finish() {
  note_ancestors();
  seal_chunks();
  std::vector<unsigned> all;
  for (const auto& [block, bytes] : changed_) all.push_back(block);
  for (const unsigned block : all) seal_all_below(block);
  auto device = std::make_unique<io::MemDevice>(base_.store);
  for (const auto& [block, bytes] : changed_)
    if (block != 0) device->poke(base_.blocks[block].address.v * kBlockSize, bytes);
  if (changed_.contains(0)) write_superblocks(*device, changed_.at(0));
  for (const auto& [address, bytes] : content_) device->poke(address * kBlockSize, bytes);
  return device;
}

// All whose checksums change with those of others.
void Draft::note_ancestors() {
  std::vector<unsigned> rest;
  for (const auto& [block, bytes] : changed_) rest.push_back(block);
  while (!rest.empty()) {
    const unsigned block = rest.back();
    rest.pop_back();
    for (const unsigned parent : base_.blocks[block].parents) {
      if (changed_.contains(parent)) continue;
      own(parent);
      rest.push_back(parent);
    }
  }
}

// What references to the block hold. Of a block that is lost the checksum is that of zeros, as others hold it.
std::uint32_t Draft::seal_all_below(unsigned block) {
  if (const auto done = sealed_.find(block); done != sealed_.end()) return done->second;
  const Part part = base_.blocks[block].part;
  Bytes& bytes = changed_.at(block);
  if (part == Part::chunk) return sealed_[block] = 0;
  const bool is_lost = std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
  if (is_lost) return sealed_[block] = base_.blocks[block].crc;
  under_way_.insert(block);
  for (const Reference& ref : references_in(part, bytes)) {
    const std::uint64_t address = get_fixed(bytes, ref.address_at, ref.address_bytes);
    const auto found = base_.by_address.find(address);
    if (!address || found == base_.by_address.end() || kept_.contains(found->second) || under_way_.contains(found->second)) continue;
    const unsigned child = found->second;
    put_fixed(bytes, ref.crc_at, 4, changed_.contains(child) ? seal_all_below(child) : base_.blocks[child].crc);
  }
  under_way_.erase(block);
  return sealed_[block] = seal(part, bytes);
}

// Each chunk holds the checksum of the one before it.
void Draft::seal_chunks() {
  bool follows = false;
  std::uint32_t previous = 0;
  for (const unsigned block : base_.chunks) {
    if (!follows && !changed_.contains(block)) continue;
    Bytes& bytes = own(block);
    if (follows) put_fixed(bytes, kPreviousAt, 4, previous);
    previous = seal(Part::chunk, bytes);
    follows = !kept_.contains(block);
  }
}

// In an area anchors hold the same without a number, and the newest two slots are a pair.
void Draft::write_superblocks(io::MemDevice& device, Bytes block) const {
  const format::Superblock& super = base_.super;
  constexpr std::size_t kSequenceAt = format::superblock_layout::kSerialAt + 16;
  const auto put = [&](unsigned copy, BlockAddr at, std::uint64_t less) {
    if (!(copies_ >> copy & 1)) return;
    Bytes bytes = block;
    const bool is_anchor = copy < 2;
    if (super.area) put_fixed(bytes, kSequenceAt, 8, is_anchor ? 0 : get_fixed(block, kSequenceAt, 8) - less);
    seal(Part::superblock, bytes);
    device.poke(at.v * kBlockSize, bytes);
  };
  put(0, BlockAddr{0}, 0);
  put(1, BlockAddr{super.device_blocks - 1}, 0);
  if (!super.area) return;
  put(2, super.area.place_of(super.sequence), 0);
  put(3, super.area.place_of(super.sequence - 1), 1);
}

std::string to_text(const Recipe& recipe) {
  std::string text = fmt::format("base {} ({}), plan {:#x}\n", recipe.base % kBaseImages, name_of_base(recipe.base), recipe.plan);
  Draft draft(base_image(recipe.base), recipe.plan & kOnlyTables);
  for (const Mutation& m : recipe.mutations) {
    text += fmt::format("  {}, field {} how {} other {} value {:#x}: {}\n", name_of(m.act), m.field, m.how, m.other, m.value,
                        draft.place_of(m));
    draft.apply(m);
  }
  return text;
}

std::unique_ptr<io::MemDevice> image_of(const Recipe& recipe) {
  Draft draft(base_image(recipe.base), recipe.plan & kOnlyTables);
  for (const Mutation& mutation : recipe.mutations) draft.apply(mutation);
  return draft.finish();
}

}  // namespace varve::fuzz

#include "checkpoint/sealer.h"

#include <algorithm>
#include <numeric>

#include "base/invariant.h"
#include "device/faults.h"
#include "io/reactor.h"
#include "log/chain.h"
#include "log/log.h"
#include "segments/log_clock.h"
#include "space/hole_feeder.h"
#include "space/space.h"

namespace varve::checkpoint {

namespace {

// A group with this much waiting writes at its head; less rides in the chunk. That spares a write where somebody waits
// for the chunk, but mixes the groups: else even a single block goes where it belongs.
constexpr std::size_t kHeadBlocks = 16, kHeadBlocksUnhurried = 1;

// Stands for an address that is not known yet when the length of the records is measured.
constexpr BlockAddr kAnyAddress{(1ULL << 48) - 1};

tree::BlockEntry& entry_of(const changes::PendingBlock& block) {
  MEMORY_INVARIANT(block.owner && block.owner->file);
  tree::BlockEntry* entry = block.owner->file->blocks.find(block.block);
  MEMORY_INVARIANT(entry != nullptr);
  return *entry;
}

// By the places in files.
void sort_by_place(std::vector<changes::PendingPtr>& blocks) {
  std::ranges::sort(blocks, {}, [](const changes::PendingPtr& block) { return std::pair(block->owner->ino, block->block); });
}

}  // namespace

// Tails that are too long for the trees: they get a block later. That pays where the chunk then has no payload, and somebody waits for it.
bool Sealer::may_log(std::size_t bytes, std::size_t blocks) const {
  const bool is_alone = std::ranges::all_of(groups_, [](const Payload& group) { return group.empty(); });
  return is_alone && bytes <= format::kUsualLoggedTail && parts_.staging.unsealed().logged() + blocks <= changes::Unsealed::kMostLogged;
}

void Sealer::collect(bool commit) {
  groups_.resize(format::kMaxGroups);
  auto& payload = unsealed().payload();
  Payload longer;
  std::size_t bytes_of_longer = 0;
  for (changes::PendingPtr& block : payload) {
    if (!block->owner) continue;
    const std::size_t bytes = parts_.staging.tail_bytes(*block);
    const bool is_longer = bytes > parts_.staging.tail_limits().kept;
    if (is_longer) bytes_of_longer += bytes;
    Payload& kind = is_longer ? longer : bytes ? tails_ : groups_.at(block->group);
    kind.push_back(std::move(block));
  }
  const bool logs = commit && may_log(bytes_of_longer, longer.size());
  for (changes::PendingPtr& block : longer) {
    Payload& kind = logs ? tails_ : groups_.at(block->group);
    kind.push_back(std::move(block));
  }
  payload.clear();
  INVARIANT(std::accumulate(groups_.begin(), groups_.end(), tails_.size(), [](std::size_t sum, const Payload& group) {
              return sum + group.size();
            }) == unsealed().payload_bytes() >> kBlockShift);
}

void Sealer::settle_address(changes::PendingBlock& block, BlockAddr address) {
  tree::BlockEntry& entry = entry_of(block);
  INVARIANT(entry.place.is_pending());
  INVARIANT(parts_.segments.geometry().contains(address));
  const std::uint8_t estimate = entry.place.estimate();
  entry.place = tree::BlockPlace::at(address);
  entry.place.set_estimate(estimate);
  parts_.segments.add_live(address, 1, entry.clock);
}

// What comes first of `blocks` and stands in one piece in its file.
std::size_t Sealer::piece_of(std::span<const changes::PendingPtr> blocks) {
  std::size_t end = 1;
  while (end < blocks.size() && blocks[end]->owner == blocks[0]->owner && blocks[end]->block == blocks[0]->block + end) ++end;
  return end;
}

// What users may write was decided when their operation was let in; the seal itself must succeed.
format::Run Sealer::allocate(unsigned group, std::span<const changes::PendingPtr> blocks) {
  auto wanted = static_cast<std::uint32_t>(blocks.size());
  const std::uint32_t most = parts_.hole_feeder.most_piece();
  if (parts_.log.heads().holes().blocks() && most < wanted) {
    const auto piece = static_cast<std::uint32_t>(piece_of(blocks));
    if (piece > most && parts_.space.has_room_without_holes()) {
      if (const format::Run run = parts_.log.heads().allocate(parts_.space.head_for(group), piece); run.blocks) return run;
    }
    wanted = piece;
  }
  if (const format::Run run = parts_.space.allocate_in_hole(wanted); run.blocks) return run;
  return parts_.log.heads().allocate(parts_.space.head_for(group), static_cast<std::uint32_t>(blocks.size()));
}

bool Sealer::place_group(unsigned group, Payload& blocks) {
  for (std::size_t at = 0; at < blocks.size();) {
    const format::Run run = allocate(group, std::span(blocks).subspan(at));
    if (!run.blocks) {
      blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(at));
      return false;
    }
    INVARIANT(run.blocks <= blocks.size() - at);
    payload_.assign(blocks.begin() + static_cast<std::ptrdiff_t>(at), blocks.begin() + static_cast<std::ptrdiff_t>(at + run.blocks));
    parts_.log.write_payload(run, payload_, reactor_);
    for (std::uint32_t i = 0; i < run.blocks; ++i) {
      settle_address(*blocks[at + i], run.start + i);
      placed_.push_back(blocks[at + i]);
    }
    at += run.blocks;
  }
  blocks.clear();
  return true;
}

// Holes are there to be written, and what has been let in because of the room at a head may have to go there.
bool Sealer::stays_in_chain() const {
  const space::Space& space = parts_.space;
  return space.has_one_stream() && parts_.log.heads().holes().blocks() == 0 && space.has_room_in_chain();
}

void Sealer::put_in_chain() {
  for (Payload& blocks : groups_) {
    inline_.insert(inline_.end(), blocks.begin(), blocks.end());
    blocks.clear();
  }
  sort_by_place(inline_);
}

void Sealer::write_to_heads(bool commit) {
  const std::size_t inline_max = parts_.segments.geometry().blocks / 4;
  const std::size_t least = commit ? kHeadBlocks : kHeadBlocksUnhurried;
  for (unsigned group = 0; group < groups_.size(); ++group) {
    Payload& blocks = groups_[group];
    if (blocks.empty()) continue;
    sort_by_place(blocks);
    const bool rides = blocks.size() < least && inline_.size() + blocks.size() <= inline_max;
    if (rides || !place_group(group, blocks)) inline_.insert(inline_.end(), blocks.begin(), blocks.end());
  }
}

void Sealer::encode_maps(const Payload& payload, format::Bytes& out, bool with_addresses) {
  auto& map = std::get<format::MapBlocks>(map_);
  auto address_of = [&](std::size_t i) {
    return with_addresses ? entry_of(*payload[i]).place.address() : kAnyAddress;
  };
  for (std::size_t begin = 0; begin < payload.size();) {
    const changes::PendingBlock& first = *payload[begin];
    const tree::BlockEntry& first_entry = entry_of(first);
    map.ino = first.owner->ino;
    map.first = first.block;
    map.address = address_of(begin);
    map.clock = first_entry.clock;
    map.estimate = first_entry.place.estimate();
    map.crcs.clear();
    std::size_t end = begin;
    for (; end < payload.size() && end - begin < format::kMaxExtentBlocks; ++end) {
      const changes::PendingBlock& block = *payload[end];
      const tree::BlockEntry& entry = entry_of(block);
      if (block.owner != first.owner || block.block != first.block + (end - begin) || entry.clock != map.clock ||
          entry.place.estimate() != map.estimate)
        break;
      if (with_addresses && address_of(end) != map.address + (end - begin)) break;
      map.crcs.push_back(entry.crc);
    }
    format::encode_record(map_, out);
    begin = end;
  }
}

void Sealer::encode_moves(changes::InodeDelta& delta) {
  for (std::uint64_t block : delta.unsealed.moved) {
    const tree::BlockEntry* entry = delta.file ? delta.file->blocks.find(block) : nullptr;
    if (!entry || !entry->place.moved() || entry->place.is_pending()) continue;  // written or cleared since
    format::MapBlocks map;
    map.ino = delta.ino;
    map.first = block;
    map.address = entry->place.address();
    map.clock = entry->clock;
    map.estimate = entry->place.estimate();
    map.moved = true;
    map.crcs = {entry->crc};
    format::encode_record(map, records_);
  }
}

void Sealer::encode_inode(changes::InodeDelta& delta) {
  if (delta.vanished()) return;
  if (delta.freed) {
    if (delta.unsealed.freed) format::encode_record(format::FreeInode{delta.ino}, records_);
    return;
  }
  if (delta.unsealed.attributes) {
    format::SetAttributes set{delta.ino, delta.attributes};
    set.attributes.blocks = 0;
    format::encode_record(set, records_);
  }
  if (delta.unsealed.symlink && delta.symlink) format::encode_record(format::SetSymlink{delta.ino, *delta.symlink}, records_);
  if (delta.unsealed.orphan) {
    if (*delta.orphan) format::encode_record(format::SetOrphan{delta.ino}, records_);
    else format::encode_record(format::ClearOrphan{delta.ino}, records_);
  }
  for (const std::string& name : delta.unsealed.xattrs) {
    const auto& value = delta.xattrs.at(name);
    if (value) format::encode_record(format::SetXattr{delta.ino, name, *value}, records_);
    else format::encode_record(format::DeleteXattr{delta.ino, name}, records_);
  }
  if (delta.directory) {  // removals first: an entry that was replaced has both
    for (const auto& [cookie, name] : delta.directory->unsealed_removed)
      format::encode_record(format::DeleteDirent{delta.ino, cookie, name}, records_);
    for (std::uint64_t cookie : delta.directory->unsealed_added) {
      const changes::AddedEntry& entry = delta.directory->added.at(cookie);
      format::encode_record(format::SetDirent{delta.ino, cookie, {entry.ino, entry.type, entry.name}}, records_);
    }
  }
  if (!delta.file) return;
  for (const tree::ClearedRange& range : delta.file->unsealed_cleared)
    format::encode_record(format::ClearRange{delta.ino, range.from, range.to, range.kind == tree::Cleared::unwritten}, records_);
  encode_moves(delta);
}

// A replay of the same chunk has seen how long the file is, and what else became of it.
void Sealer::encode_tails() {
  for (const changes::PendingPtr& block : tails_) {
    const std::span<const std::byte> bytes(block->data, parts_.staging.tail_bytes(*block));
    format::encode_record(format::SetTail{block->owner->ino, block->block, bytes}, records_);
  }
}

void Sealer::keep_tails() {
  for (const changes::PendingPtr& block : tails_) {
    const std::size_t bytes = parts_.staging.tail_bytes(*block);
    if (bytes > parts_.staging.tail_limits().kept) unsealed().keep_logged(block);
    else parts_.staging.keep_tail(*block, bytes);
  }
}

void Sealer::clear_marks() {
  for (changes::InodeDelta* delta : unsealed().deltas()) {
    delta->sealed_once |= !delta->vanished();
    delta->unsealed = {};
    if (delta->directory) {
      delta->directory->unsealed_added.clear();
      delta->directory->unsealed_removed.clear();
    }
    if (delta->file) delta->file->unsealed_cleared.clear();
  }
  unsealed().clear();
}

// A chunk without records takes along the first of what does not fit into the chain's segment together with all records. They follow in
// the last chunk, so that the seal counts as a whole or not at all.
Status Sealer::write_carriers() {
  constexpr std::size_t kForCuts = 1;  // blocks: each cut may make a record more
  measured_ = records_;
  encode_maps(inline_, measured_, false);
  const std::size_t header_blocks = format::chunk_header_blocks(measured_.size()) + kForCuts;
  const std::size_t segment_blocks = parts_.segments.geometry().blocks;
  while (!inline_.empty()) {
    const std::size_t rest = parts_.log.position().rest.blocks, room = rest > 1 ? rest : segment_blocks;
    if (header_blocks + inline_.size() <= room) break;
    const std::size_t count = std::min(inline_.size(), room - 1);
    const log::ChunkPlace place = TRY(parts_.log.place_chunk(1, static_cast<std::uint32_t>(count), false));
    const auto first = inline_.begin(), end = first + static_cast<std::ptrdiff_t>(count);
    for (std::size_t i = 0; i < count; ++i) settle_address(*inline_[i], place.payload() + i);
    payload_.assign(first, end);
    write_at(place, {}, false);
    placed_.insert(placed_.end(), first, end);
    inline_.erase(first, end);
  }
  return {};
}

log::ChunkStamp Sealer::stamp() const { return {parts_.log_clock.now(), parts_.staging.next_ino()}; }

Lsn Sealer::write_at(const log::ChunkPlace& place, std::span<const std::byte> records, bool commit) {
  if (place.is_among_gaps) parts_.space.note_thin(place.address);
  return parts_.log.write_chunk(place, records, payload_, stamp(), {commit, unsealed().since_ns()}, reactor_);
}

Status Sealer::write_chunk(Lsn& lsn, bool in_chain, bool commit) {
  for (changes::InodeDelta* delta : unsealed().deltas()) encode_inode(*delta);
  encode_tails();
  if (parts_.faults.read_only()) return parts_.faults.refusal();  // an invariant was found broken
  if (in_chain) TRY(write_carriers());
  if (!in_chain || !placed_.empty()) {  // else the carriers have measured what there is
    // Cleared ranges come before maps of the same file: encode_inode has put them.
    encode_maps(placed_, records_, true);
    measured_ = records_;
    encode_maps(inline_, measured_, false);
  }
  INVARIANT(measured_.size() <= unsealed().reserved_records());  // what each operation said when it was let in
  if (parts_.faults.read_only()) return parts_.faults.refusal();  // that one, or one of a carrier
  const auto header_blocks = format::chunk_header_blocks(measured_.size());
  const log::ChunkPlace place =
      TRY(parts_.log.place_chunk(header_blocks, static_cast<std::uint32_t>(inline_.size()), commit));
  for (std::size_t i = 0; i < inline_.size(); ++i) settle_address(*inline_[i], place.payload() + i);
  encode_maps(inline_, records_, true);
  payload_.assign(inline_.begin(), inline_.end());
  lsn = write_at(place, records_, commit);
  return {};
}

// There is no chunk: what would have stood in it can be read yet, and nobody else has it.
void Sealer::keep_unplaced() {
  auto& payload = unsealed().payload();
  payload.insert(payload.end(), inline_.begin(), inline_.end());
  payload.insert(payload.end(), tails_.begin(), tails_.end());
}

// What the next seal fills again.
void Sealer::forget() {
  for (Payload& group : groups_) group.clear();
  inline_.clear();
  placed_.clear();
  tails_.clear();
  payload_.clear();
  records_.clear();
}

void Sealer::give_blocks_to_tails() { unsealed().give_blocks_to_logged(); }

bool Sealer::make_room_for_records() noexcept {
  // Where its block goes is not known before the seal, so that each may need a record of its own.
  constexpr std::size_t kMapBytes = 40;
  const std::size_t most = unsealed().most_record_bytes() / 4 * 3;
  unsealed().forget_vanished();
  std::size_t needed = (unsealed().payload_bytes() >> kBlockShift) * kMapBytes;
  needed += unsealed().logged() * changes::Unsealed::kLoggedRecordBytes;
  for (const changes::PendingPtr& block : unsealed().payload())
    if (block->owner) needed += parts_.staging.tail_bytes(*block);
  if (needed > most) return false;
  std::ranges::for_each(unsealed().deltas(), [this](changes::InodeDelta* delta) { encode_inode(*delta); });
  needed += records_.size();
  records_.clear();
  if (needed > most) return false;
  unsealed().settle_records(needed);
  return true;
}

Result<Lsn> Sealer::run(bool commit, io::Reactor* reactor) noexcept {
  reactor_ = reactor;
  const Lsn before = parts_.log.position().lsn;
  Lsn lsn = before;
  if (unsealed().deltas().empty() && unsealed().payload_bytes() == 0) {
    unsealed().forget_reservations();  // of operations that were let in and then had to wait for something else
    return lsn;
  }
  parts_.log.heads().set_clock(parts_.log_clock.now());
  collect(commit);
  const bool in_chain = stays_in_chain();
  in_chain ? put_in_chain() : write_to_heads(commit);
  const Status written = write_chunk(lsn, in_chain, commit);
  if (written.ok()) keep_tails();
  else keep_unplaced();
  forget();
  if (!written.ok()) return written.error();
  INVARIANT(lsn > before);
  clear_marks();
  return lsn;
}

}  // namespace varve::checkpoint

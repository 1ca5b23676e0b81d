#include "changes/staging.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/invariant.h"
#include "changes/changes.h"
#include "snapshots/snapshots.h"
#include "tree/trees.h"

namespace varve::changes {

namespace {
// Worst-case memory of one change in a delta, for the trigger of checkpoints.
// An inode's: its delta and the Inode that is kept with it; an entry's: three nodes of containers, two of them hashed.
constexpr std::uint64_t kBlockBytes = 36, kInodeBytes = sizeof(InodeDelta) + sizeof(Inode) + 80, kEntryBytes = 220,
                        kOtherBytes = 64, kTailBytes = 112;
// Worst-case bytes of items, with what is cut off a neighbour: key, length, and for an extent 12 bytes and a CRC.
constexpr std::uint64_t kItemBytes = 20, kInodeItemBytes = 120, kPieceBytes = format::kMaxItemValue;

// Places that one more block in a delta makes: only the ends of a run of blocks are any.
std::uint64_t places_of_block(const tree::BlockMap& blocks, std::uint64_t block) {
  if (block == 0 || !blocks.find(block - 1)) return 1;
  return block > 1 && blocks.find(block - 2) ? 0 : 1;
}

// By how much the charge falls for sure when all `owned` blocks (block_count) are given back. Those that the delta being merged
// may have counted twice are not among them. Where it has, the exact count that takes its place leaves them out, too. Where it
// has not, they are charged until the next checkpoint.
std::uint64_t certain_loss(const Inode& inode, const tree::TreeView& view, std::uint64_t owned) REQUIRES_SHARED(inode.mutex) {
  const InodeDelta* merging = inode.frozen;
  const bool estimated = merging && merging->generation > view.generation && !merging->created;
  if (!estimated || inode.active->owned.emptied) return owned;
  return owned - std::min(owned, merging->owned.uncertain);
}

// Of a change that makes no new entry: the next cookie then says whether names have come or gone (fs::DirectoryEntry::last_cookie).
// Where there are no more, names can still go.
void spend_cookie(Inode& directory) REQUIRES(directory.mutex) {
  if (directory.attributes.next_cookie < format::kCookieLimit) ++directory.attributes.next_cookie;
}

// `may_hold`: may a snapshot hold a block of that clock? `assume_owned`: what is unknown is no hole.
template <class MayHold>
bool could_be_kept(const MappedBlock& old, bool assume_owned, MayHold may_hold) {
  if (old.kind == MappedBlock::Kind::unknown) return assume_owned;
  return old.kind == MappedBlock::Kind::device && may_hold(old.clock);
}

// May a snapshot keep what stood there? Not if it is known to be younger than the newest.
bool may_be_kept(const snapshots::Snapshots& snapshots, const MappedBlock& old, bool assume_owned) {
  return snapshots.any() && could_be_kept(old, assume_owned, [&](auto clock) { return snapshots.may_hold(clock); });
}

}  // namespace

bool may_be_kept_for_good(const snapshots::Snapshots& snapshots, const MappedBlock& old, bool assume_owned) {
  return snapshots.any_permanent() && could_be_kept(old, assume_owned, [&](auto clock) { return snapshots.may_hold_for_good(clock); });
}

InodeDelta& Staging::delta_of(Inode& inode, bool created) {
  if (inode.active && inode.active->generation != changes_.active().generation()) {
    INVARIANT(!inode.frozen || inode.frozen->generation < inode.active->generation);
    inode.frozen = inode.active;  // frozen since; an older one has been merged and detached before
    inode.active = nullptr;
  }
  if (!inode.active) {
    inode.active = &changes_.active().add(inode.ino);
    inode.active->inode = &inode;
    changes_.active().count(1, kInodeBytes);
    changes_.active().burden(created ? 0 : 1, kInodeItemBytes);  // new ones are all at the end
  }
  return *inode.active;
}

InodeDelta& Staging::stage(Inode& inode, bool created, Unsealed::Kind kind) noexcept {
  unsealed_.note_kind(kind);
  InodeDelta& delta = delta_of(inode, created);
  INVARIANT(delta.ino == inode.ino && delta.inode == &inode);
  if (delta.unsealed.listed) return delta;
  delta.unsealed.listed = true;
  unsealed_.add(delta, clock_.monotonic_ns());
  return delta;
}

bool Staging::dirty() const { return unsealed_.any() || changes_.count_records() > 0; }

InodePtr Staging::create_inode() noexcept {
  InodePtr inode = inodes_.get(Ino{next_ino_.fetch_add(1)});
  WriteLock lock(inode->mutex);
  INVARIANT(!inode->active && !inode->frozen);  // a new number
  inode->loaded = true;
  inode->missing = false;  // as a request found it that came too early (a handle can name any number)
  inode->attributes = {};
  stage(*inode, true).created = true;
  changes_.active().inode_change.fetch_add(1, std::memory_order_relaxed);
  return inode;
}

void Staging::set_attributes(Inode& inode, Unsealed::Kind kind) noexcept {
  InodeDelta& delta = stage(inode, false, kind);
  delta.attributes = inode.attributes;
  delta.has_attributes = true;
  delta.unsealed.attributes = true;
}

// Content that a delta held is not wanted any more.
void Staging::drop_entry(FileDelta& file, const tree::BlockEntry& entry) {
  if (entry.place.is_pending()) return unsealed_.drop_payload(*entry.place.pending_block());
  if (!entry.place.is_tail()) return segments_.sub_live(entry.place.address(), 1);
  const auto tail = file.tails.find(entry.block);
  if (!INVARIANT(tail != file.tails.end())) return;
  changes_.active().uncount_bytes(kTailBytes + tail->second->size());
  changes_.active().blob_bytes.fetch_sub(tail->second->size(), std::memory_order_relaxed);
  file.tails.erase(tail);
}

namespace {

// What a file owns is never given up for a tail: fallocate may have promised it. What is not known counts as owned.
bool may_be_tail(const MappedBlock& old) {
  switch (old.kind) {
    case MappedBlock::Kind::hole:
    case MappedBlock::Kind::tail: return true;
    case MappedBlock::Kind::pending: return !old.pending->needs_block;
    default: return false;
  }
}

}  // namespace

std::size_t Staging::tail_bytes(const PendingBlock& block) const {
  if (!trees_.view().has_tails || block.needs_block || !block.owner->has_attributes) return 0;
  const std::uint64_t size = block.owner->attributes.size;
  if (place_of_tail(size, tail_limits_) == TailPlace::block || block.block != block_of(size)) return 0;
  std::span<const std::byte> rest(block.data, kBlockSize);
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (!std::ranges::all_of(rest.subspan(partial_bytes(size)), is_zero)) return 0;  // nobody expects that behind the end
  rest = rest.first(partial_bytes(size));
  while (rest.size() > 1 && is_zero(rest.back())) rest = rest.first(rest.size() - 1);
  return rest.size();
}

void Staging::keep_tail(const PendingBlock& block, std::size_t bytes) {
  InodeDelta& delta = *block.owner;
  FileDelta& file = *delta.file;
  tree::BlockEntry* const entry = file.blocks.find(block.block);
  if (!INVARIANT(entry && entry->place.is_pending() && bytes > 0 && bytes <= format::kMaxTail)) return;
  entry->place = tree::BlockPlace::tail();
  file.tails.insert_or_assign(block.block, std::make_shared<const format::Bytes>(block.data, block.data + bytes));
  --delta.owned.change;  // what can be a tail was counted as new
  changes_.active().data_change.fetch_sub(1, std::memory_order_relaxed);
  changes_.active().blob_bytes.fetch_add(bytes, std::memory_order_relaxed);
  changes_.active().count(0, kTailBytes + bytes);
}

void Staging::give_block(InodeDelta& delta, std::uint64_t block, std::uint32_t clock) {
  boost::intrusive_ptr<log::OwnPayloadBuffer> buffer(new log::OwnPayloadBuffer(1));
  std::byte* const bytes = buffer->block(0);
  copy_tail(*delta.file->tails.at(block), 0, {bytes, kBlockSize});
  PendingPtr pending(new PendingBlock(buffer, bytes));
  pending->crc = crc32c({bytes, kBlockSize});
  pending->owner = &delta;
  pending->block = block;
  tree::BlockEntry* const entry = delta.file->blocks.find(block);
  if (!INVARIANT(entry && entry->place.is_tail())) return;
  entry->place = tree::BlockPlace::pending(pending.get());
  entry->crc = pending->crc;
  entry->clock = clock;
  delta.file->tails.erase(block);
  unsealed_.keep_logged(std::move(pending));
}

void Staging::put_blocks(Inode& inode, std::span<StageBlock> blocks, std::uint32_t clock) noexcept {
  InodeDelta& delta = stage(inode);
  FileDelta& file = delta.file_delta();
  inode.change_content();
  std::int64_t fresh = 0;
  std::uint64_t places = 0, assumed = 0, uncertain = 0, kept = 0, loose = 0, tails = 0;
  for (StageBlock& staged : blocks) {
    const std::size_t before = file.blocks.size();
    tree::BlockEntry& entry = file.blocks.insert(staged.block);
    const bool was_here = file.blocks.size() == before;
    const bool was_block = was_here && !entry.place.is_tail();
    if (!may_be_tail(staged.old)) staged.data->needs_block = true;  // asked before what was there goes
    if (!was_here) places += places_of_block(file.blocks, staged.block);
    const bool of_tree = !was_here || entry.place.moved();  // what the cleaner has moved meanwhile, a snapshot has at its former place
    const bool is_kept = of_tree && may_be_kept(snapshots_, staged.old, staged.assume_owned);
    const bool for_good = is_kept && may_be_kept_for_good(snapshots_, staged.old, staged.assume_owned);
    kept += for_good;
    loose += is_kept && !for_good;
    if (was_here) drop_entry(file, entry);
    else if (!is_kept && staged.old.kind == MappedBlock::Kind::device) segments_.sub_live(staged.old.address, 1);
    const bool guessed = !was_here && staged.assume_owned && staged.old.kind == MappedBlock::Kind::unknown;
    const bool owned = was_block || guessed || staged.old.is_block() || staged.old.kind == MappedBlock::Kind::unwritten;
    fresh += !owned;
    uncertain += !owned && staged.old.kind == MappedBlock::Kind::unknown;
    assumed += guessed;
    INVARIANT(staged.data && !staged.data->owner);
    INVARIANT(staged.block < format::kMaxFileBlocks);
    staged.data->owner = &delta;
    staged.data->block = staged.block;
    if (tail_limits_.kept && !staged.data->needs_block && !was_here) tails += tail_limits_.kept;
    entry.place = tree::BlockPlace::pending(staged.data.get());
    entry.place.set_estimate(staged.estimate);
    entry.crc = staged.data->crc;
    entry.clock = clock;
  }
  INVARIANT(uncertain <= static_cast<std::uint64_t>(fresh));
  delta.owned.change += fresh;
  delta.owned.uncertain += uncertain;
  changes_.active().uncertain.fetch_add(uncertain, std::memory_order_relaxed);
  changes_.active().data_change.fetch_add(fresh, std::memory_order_relaxed);
  changes_.active().assumed.fetch_add(assumed, std::memory_order_relaxed);
  changes_.active().kept.fetch_add(kept, std::memory_order_relaxed);
  if (loose) changes_.active().loose.fetch_add(loose, std::memory_order_relaxed);
  changes_.active().count(blocks.size(), blocks.size() * kBlockBytes);
  changes_.active().burden(places, blocks.size() * kItemBytes + places * kItemBytes + tails);
  unsealed_.add_payload(blocks);
}

// Blocks that no others take the place of.
void Staging::let_go(std::uint64_t blocks) {
  if (snapshots_.any()) changes_.active().let_go(blocks, snapshots_.any_permanent());
}

void Staging::clear(Inode& inode, std::uint64_t from, std::uint64_t to, tree::Cleared kind, std::int64_t owned_change) noexcept {
  INVARIANT(from <= to && to <= format::kMaxFileBlocks);
  inode.change_content();
  if (from == to) return;
  InodeDelta& delta = stage(inode);
  FileDelta& file = delta.file_delta();
  INVARIANT(kind == tree::Cleared::hole ? owned_change <= 0 : owned_change >= 0);
  if (kind == tree::Cleared::hole) inode.change_cleared();
  // Inside the gate like this function: erase_range() calls it here.
  file.blocks.erase_range(from, to, [&](const tree::BlockEntry& entry) NO_THREAD_SAFETY_ANALYSIS { drop_entry(file, entry); });
  file.cleared.set(from, to, kind);
  file.unsealed_cleared.push_back({from, to, kind});
  delta.owned.change += owned_change;
  const std::int64_t owned = kind == tree::Cleared::hole ? -owned_change : static_cast<std::int64_t>(to - from) - owned_change;
  if (owned > 0) let_go(static_cast<std::uint64_t>(owned));
  changes_.active().data_change.fetch_add(owned_change, std::memory_order_relaxed);
  changes_.active().count(1, kOtherBytes);
  changes_.active().burden(2, 4 * kItemBytes);
}

// All `owned` blocks of it are given back.
void Staging::uncharge(const Inode& inode, std::uint64_t owned) {
  const std::uint64_t certain = certain_loss(inode, trees_.view(), owned);
  changes_.active().data_change.fetch_sub(static_cast<std::int64_t>(certain), std::memory_order_relaxed);
  changes_.active().uncertain.fetch_add(owned - certain, std::memory_order_relaxed);
  let_go(owned);
}

void Staging::empty(Inode& inode) noexcept {
  const std::uint64_t owned = block_count(inode, trees_.view());
  clear(inode, 0, format::kMaxFileBlocks, tree::Cleared::hole, 0);
  uncharge(inode, owned);
  inode.active->owned.emptied = true;
  inode.active->owned.change = 0;
  inode.active->owned.uncertain = 0;
}

void Staging::move(Inode& inode, std::uint64_t block, BlockAddr from, BlockAddr to, std::uint32_t crc,
                       std::uint32_t clock, std::uint8_t estimate) noexcept {
  InodeDelta& delta = stage(inode);
  FileDelta& file = delta.file_delta();
  tree::BlockEntry& entry = file.blocks.insert(block);
  INVARIANT(from != to);
  segments_.sub_live(from, 1);
  segments_.add_live(to, 1, clock);
  entry.place = tree::BlockPlace::at(to);
  entry.place.set_estimate(estimate);
  entry.place.set_moved(true);
  entry.crc = crc;
  entry.clock = clock;
  delta.unsealed.moved.push_back(block);
  changes_.active().moved.fetch_add(1, std::memory_order_relaxed);
  changes_.active().count(1, kBlockBytes);
  changes_.active().burden(places_of_block(file.blocks, block), 2 * kItemBytes);
}

std::uint64_t Staging::add_entry(Inode& directory, std::string_view name, Ino ino, std::uint8_t type) noexcept {
  InodeDelta& delta = stage(directory);
  INVARIANT(!name.empty() && name.size() <= format::kMaxName);
  INVARIANT(ino.v != 0);
  const std::uint64_t cookie = directory.attributes.next_cookie++;
  ++directory.attributes.entries;
  DirectoryDelta& entries = delta.directory_delta();
  const std::uint64_t places = entries.added.empty() ? 2 : 1;  // new entries are all at the end, hashes are not
  entries.add(cookie, AddedEntry{ino, type, std::string(name)});
  entries.unsealed_added.insert(cookie);
  changes_.active().count(2, kEntryBytes + name.size());
  changes_.active().burden(places, name.size() + 4 * kItemBytes);
  return cookie;
}

void Staging::remove_entry(Inode& directory, std::uint64_t cookie, std::string_view name) noexcept {
  InodeDelta& delta = stage(directory);
  --directory.attributes.entries;
  spend_cookie(directory);
  delta.directory_delta().remove(cookie, name, false);
  changes_.active().count(2, kEntryBytes + name.size());
  changes_.active().burden(2, kItemBytes);
}

void Staging::replace_entry(Inode& directory, std::uint64_t cookie, std::string_view name, Ino ino, std::uint8_t type) noexcept {
  InodeDelta& delta = stage(directory);
  INVARIANT(!name.empty() && name.size() <= format::kMaxName);
  INVARIANT(ino.v != 0);
  spend_cookie(directory);
  delta.directory_delta().replace(cookie, AddedEntry{ino, type, std::string(name)});
  changes_.active().count(4, 2 * (kEntryBytes + name.size()));  // it may be among those that went and those that came
  changes_.active().burden(2, name.size() + 4 * kItemBytes);
}

void Staging::set_xattr(Inode& inode, std::string_view name, std::optional<format::Bytes> value,
                        std::uint64_t set_bytes) noexcept {
  InodeDelta& delta = stage(inode);
  const std::uint64_t bytes = kOtherBytes + name.size() + (value ? value->size() : 0);
  changes_.active().count(1, bytes);
  changes_.active().burden(2, delta.xattrs.empty() ? set_bytes + kPieceBytes : bytes);  // the set is written anew
  changes_.active().blob_bytes.fetch_add(bytes, std::memory_order_relaxed);
  inode.no_xattrs.store(false, std::memory_order_relaxed);
  delta.xattrs[std::string(name)] = std::move(value);
  delta.unsealed.xattrs.insert(std::string(name));
}

void Staging::set_symlink(Inode& inode, std::string_view target) noexcept {
  InodeDelta& delta = stage(inode);
  delta.symlink = std::string(target);
  delta.unsealed.symlink = true;
  changes_.active().count(1, kOtherBytes + target.size());
  changes_.active().burden(0, kPieceBytes + target.size());  // beside its inode, which is new
  changes_.active().blob_bytes.fetch_add(target.size(), std::memory_order_relaxed);
}

void Staging::set_orphan(Inode& inode, bool set) noexcept {
  InodeDelta& delta = stage(inode);
  delta.orphan = set;
  delta.unsealed.orphan = true;
  changes_.active().burden(1, kItemBytes);
}

void Staging::free_inode(Inode& inode) noexcept {
  const std::uint64_t owned = block_count(inode, trees_.view());
  InodeDelta& delta = stage(inode);
  INVARIANT(!delta.freed);
  INVARIANT(inode.attributes.nlink == 0);
  if (delta.file) {
    FileDelta& file = *delta.file;
    // Inside the gate, as in clear().
    file.blocks.erase_range(0, ~0ULL, [&](const tree::BlockEntry& entry) NO_THREAD_SAFETY_ANALYSIS { drop_entry(file, entry); });
    delta.file.reset();
  }
  delta.directory.reset();
  delta.xattrs.clear();
  delta.unsealed.xattrs.clear();
  delta.unsealed.moved.clear();
  delta.symlink.reset();
  delta.orphan = false;
  delta.unsealed.orphan = delta.unsealed.symlink = delta.unsealed.attributes = false;
  delta.freed = true;
  delta.unsealed.freed = true;
  delta.owned.change = 0;
  changes_.active().burden(3, 0);  // both ends of what it had, and its orphan entry
  uncharge(inode, owned);
  changes_.active().inode_change.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace varve::changes

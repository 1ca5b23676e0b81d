#include "fuzz/image.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/crc32c.h"
#include "check/check.h"
#include "check/checking.h"
#include "check/inode_pass.h"
#include "format/chunk.h"
#include "format/superblock.h"
#include "fs/engine.h"
#include "fsck/recovery.h"
#include "repair/populated.h"
#include "repair/repair.h"
#include "scrub/walk.h"
#include "store/superblocks.h"
#include "support/pattern.h"

namespace varve::fuzz {

namespace {

using Block = std::array<std::byte, kBlockSize>;
constexpr unsigned kMaxDepth = 40;

Block read(const io::MemDevice& device, BlockAddr address) {
  Block block;
  device.peek(address.v * kBlockSize, block);
  return block;
}

void put32(std::span<std::byte> bytes, std::size_t at, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

// As it stands in children, slots and superblocks; in superblocks with the number of blocks in between.
std::array<std::byte, 10> reference(BlockAddr address, std::uint32_t crc) {
  std::array<std::byte, 10> bytes;
  for (unsigned i = 0; i < 6; ++i) bytes[i] = static_cast<std::byte>(address.v >> (8 * i));
  put32(bytes, 6, crc);
  return bytes;
}

}  // namespace

// Superblocks in an area, and anchors, are changed together: as one block.
Forger::Forger(io::MemDevice& device) : device_(device), blocks_(repair::test::metadata_blocks(device)) {
  const auto found = store::read_superblocks(device);
  if (!found.ok()) return;
  area_ = found->best.area;
  newest_ = found->best.sequence;
  std::erase_if(blocks_, [&](BlockAddr block) {
    const bool is_in_area = area_ && block >= area_.start && block < area_.start + area_.blocks();
    return is_in_area || block.v == 0 || block.v == found->best.device_blocks - 1;
  });
  blocks_.push_back(super_place(0));
}

BlockAddr Forger::super_place(unsigned before) const { return area_ ? area_.place_of(newest_ - before) : BlockAddr{0}; }

void Forger::change(std::size_t which, std::size_t offset, Input bytes) {
  const std::size_t index = chosen_.empty() ? which % blocks_.size() : chosen_[which % chosen_.size()];
  Block block = read(device_, blocks_[index]);
  const Block before = block;
  for (std::size_t i = 0; i < bytes.size(); ++i) block[(offset + i) % kBlockSize] = bytes[i];
  depth_ = 0;
  if (format::peek_chunk(before).ok()) return seal_chunk(index, block);
  if (format::decode_node_header(before).ok()) return seal_node(index, block);
  write_supers(block);
}

void Forger::keep_to_tables() {
  check::Report report;
  report.super = store::read_superblocks(device_)->best;
  const check::CheckOptions options;
  check::Context context{device_, options, nullptr, report};
  check::Claims claims(report.super);
  std::set<BlockAddr> nodes;
  claims.set_recorder([&](BlockAddr address, const format::ReverseEntry&) { nodes.insert(address); });
  check::ExtentClaimer nothing(claims);
  const format::SnapshotTables& tables = report.super.snapshots;
  check::TreeWalk(context, claims, nothing, {tables.root, tables.level, format::TreeId::snapshots}).run();
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    if (nodes.contains(blocks_[i])) chosen_.push_back(i);
}

void Forger::seal_node(std::size_t index, std::span<std::byte> block) {
  const std::uint32_t old_crc = format::block_crc(read(device_, blocks_[index]));
  put32(block, 4, 0);
  put32(block, 4, crc32c(block));
  device_.poke(blocks_[index].v * kBlockSize, block);
  tell_parents(blocks_[index], old_crc, format::block_crc(block));
}

void Forger::tell_parents(BlockAddr address, std::uint32_t old_crc, std::uint32_t crc) {
  if (++depth_ > kMaxDepth) return;
  const auto wanted = reference(address, old_crc);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block block = read(device_, blocks_[i]);
    if (blocks_[i] == address || !format::decode_node_header(block).ok()) continue;
    const auto at = std::search(block.begin() + format::kNodeHeaderBytes, block.end(), wanted.begin(), wanted.end());
    if (at == block.end()) continue;
    put32(block, static_cast<std::size_t>(at - block.begin()) + 6, crc);
    seal_node(i, block);
  }
  Block super = read(device_, super_place(0));
  const auto decoded = format::decode_superblock(super);
  if (!decoded.ok()) return;
  format::Superblock changed = *decoded;
  for (format::NodeRef* ref :
       {&changed.inode_file, &changed.reverse_map, &changed.free_map, &changed.image, &changed.snapshots.root})
    if (ref->address == address) ref->crc = crc;
  if (changed == *decoded) return;
  format::encode_superblock(changed, super);
  write_supers(super);
}

void Forger::seal_chunk(std::size_t index, std::span<std::byte> block) {
  const auto header = format::peek_chunk(block);
  if (!header.ok()) return device_.poke(blocks_[index].v * kBlockSize, block);
  std::vector<std::byte> whole(header->header_blocks * kBlockSize);
  if ((blocks_[index].v * kBlockSize) + whole.size() > device_.geometry().size_bytes) return;
  device_.peek(blocks_[index].v * kBlockSize, whole);
  std::ranges::copy(block, whole.begin());
  put32(whole, 4, 0);
  const std::uint32_t crc = crc32c(whole);
  put32(whole, 4, crc);
  device_.poke(blocks_[index].v * kBlockSize, whole);
  tell_next_chunk(header->lsn.v, crc);
}

void Forger::tell_next_chunk(std::uint64_t lsn, std::uint32_t crc) {
  constexpr std::size_t kPreviousAt = 32;
  if (++depth_ > kMaxDepth) return;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Block block = read(device_, blocks_[i]);
    const auto header = format::peek_chunk(block);
    if (!header.ok() || header->lsn.v != lsn + 1) continue;
    put32(block, kPreviousAt, crc);
    seal_chunk(i, block);
  }
}

void Forger::write_supers(std::span<std::byte> block) {
  constexpr std::size_t kSequenceAt = 208;
  const auto seal = [&](std::uint64_t sequence) {
    if (area_) put32(block, kSequenceAt, static_cast<std::uint32_t>(sequence));
    put32(block, 8, 0);
    put32(block, 8, crc32c(block));
  };
  seal(0);
  device_.poke(0, block);
  device_.poke(device_.geometry().size_bytes - kBlockSize, block);
  for (unsigned before = 0; area_ && before < 2; ++before) {
    seal(newest_ - before);
    device_.poke(super_place(before).v * kBlockSize, block);
  }
}

namespace {

constexpr unsigned kMostFiles = 400;

// Everything that a user may do to what is there.
void use(test::FsFixture& fixture, Ino directory, std::set<Ino>& seen, unsigned depth) {
  const auto entries = fixture.list(directory);
  if (!entries.ok()) return;
  for (const test::ListedEntry& entry : *entries) {
    if (entry.name == "." || entry.name == ".." || seen.size() > kMostFiles) continue;
    const auto attr = fixture.lookup(directory, entry.name);
    if (!attr.ok() || !seen.insert(attr->ino).second) continue;
    (void)fixture.read(attr->ino, 0, 20000);
    (void)fixture.call([&](fs::Operation& op) { return fixture.fs().readlink(op, attr->ino); });
    (void)fixture.call([&](fs::Operation& op) { return fixture.fs().getxattr(op, attr->ino, "user.k"); });
    (void)fixture.call([&](fs::Operation& op) { return fixture.fs().seek(op, attr->ino, 0, fs::SeekKind::hole); });
    if (depth < 10) use(fixture, attr->ino, seen, depth + 1);
    // Whole blocks: nothing is read, so no checksum tells what is wrong with the old ones.
    if (seen.size() % 2 == 0) (void)fixture.write(attr->ino, 0, std::vector<std::byte>(kBlockSize));
    if (seen.size() % 3 == 0) (void)fixture.write(attr->ino, 5000, test::pattern_bytes(1, 0, 5000));
    if (seen.size() % 4 == 0)
      (void)fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, directory, entry.name); });
  }
}

void scrub_all(store::Store& store) {
  scrub::Walk walk(store, {}, [](const scrub::Finding& finding) { (void)to_text(finding); });
  constexpr unsigned kMostSteps = 2000;
  for (unsigned i = 0; i < kMostSteps && !walk.step().done; ++i) {
  }
}

// What is kept is looked at, one of it is given back, and another is made.
void use_snapshots(test::FsFixture& fixture) {
  using Kind = store::SnapshotChange::Kind;
  const auto kept = fixture.fs().snapshots().snapshots;
  for (const fs::SnapshotFacts& one : kept) {
    std::set<Ino> seen;
    fixture.show(Serial{one.serial});
    use(fixture, kRootIno, seen, 0);
    fixture.show({});
  }
  scrub_all(fixture.store());
  (void)fixture.snapshot({Kind::create, "fresh", {}});
  for (const fs::SnapshotFacts& one : kept) (void)fixture.snapshot({Kind::remove, one.name, {}});
  (void)fixture.settle_deletions();
}

void mount_and_use(io::MemDevice& device, bool read_only) {
  test::ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);
  SeededRandom random(4711);
  fs::Options options = test::test_options(clock, random);
  options.read_only = read_only;
  test::FsFixture fixture(device, options);
  if (!fixture.mount().ok()) return;
  std::set<Ino> seen;
  use(fixture, kRootIno, seen, 0);
  (void)fixture.make("/new", 0100644);
  (void)fixture.call([&](fs::Operation& op) { return fixture.fs().sync(op); });
  (void)fixture.checkpoint();
  use_snapshots(fixture);
  if (!fixture.unmount().ok()) fixture.crash();
}

void check_and_repair(io::MemDevice& device) {
  (void)check::check(device, {.verify_data = true});
  const auto before = device.snapshot();
  const auto done = repair::repair(device, fsck::recover, {.search = true});
  if (!done.ok()) return;
  // The rest of the device may be brought back: the one error that is left as it is, with all others.
  if (done->before.problems.count(check::Code::device_too_small) > 0)
    return require(!repair::test::first_difference(device, *before), "a part of a larger filesystem was changed");
  const auto report = check::check(device, {});
  require(report.ok(), "repaired, and cannot be checked");
  require(report->errors() == done->errors_left(), "the repair does not know what it has left");
  // What is damaged of a snapshot's tree stays, and goes with the snapshot.
  if (report->errors() > report->problems.count(check::Code::snapshot_damaged))
    require(false, "the repair left errors:\n" + check::test::lines(*report));
  mount_and_use(device, true);
}

constexpr std::uint64_t kWithSnapshots = 0x80;

void suffer(const io::MemDevice& device) {
  mount_and_use(*device.snapshot(), true);
  mount_and_use(*device.snapshot(), false);
  check_and_repair(*device.snapshot());
}

}  // namespace

void image(Input input) {
  spdlog::set_level(spdlog::level::off);
  Source source(input);
  // Few files are several times faster; only many make trees with interior nodes.
  const std::uint64_t kind = source.number(1);
  const auto device = kind & kWithSnapshots ? repair::test::populated_with_snapshots(kind % 2 == 1)
                                            : repair::test::populated_image(kind % 2 == 1, kind & 2 ? 12 : 120);
  Forger forger(*device);
  for (int i = 0; i < 8 && !source.empty(); ++i) {
    const std::size_t which = source.number(2);
    const std::size_t offset = source.number(2);
    forger.change(which, offset, source.bytes(source.number(1) % 16));
  }
  suffer(*device);
}

void sfile(Input input) {
  spdlog::set_level(spdlog::level::off);
  Source source(input);
  const auto device = repair::test::populated_with_snapshots(source.number(1) % 2 == 1);
  Forger forger(*device);
  forger.keep_to_tables();
  for (int i = 0; i < 8 && !source.empty(); ++i) {
    const std::size_t which = source.number(1);
    const std::size_t offset = source.number(2);
    forger.change(which, offset, source.bytes(source.number(1) % 16));
  }
  suffer(*device);
}

// Each node, in what it says of itself and in its first items.
Seeds sfile_seeds() {
  Seeds seeds;
  SeededRandom random(2);
  for (unsigned i = 0; i < 24; ++i) {
    std::vector<std::byte> seed{static_cast<std::byte>(i % 2)};
    for (unsigned n = 0; n <= i % 3; ++n) {
      const std::uint64_t offset = i % 4 ? 64 + random.next() % 1000 : random.next() % 64;
      for (const std::uint64_t byte :
           {std::uint64_t{i}, offset & 255, offset >> 8, std::uint64_t{2}, random.next() & 255, random.next() & 255})
        seed.push_back(static_cast<std::byte>(byte));
    }
    seeds.push_back(seed);
  }
  return seeds;
}

// One for each kind of block in each image: its header's first bytes are changed, or its payload's.
Seeds image_seeds() {
  Seeds seeds;
  SeededRandom random(1);
  for (unsigned i = 0; i < 24; ++i) {
    std::vector<std::byte> seed{static_cast<std::byte>(i % 4)};
    for (unsigned n = 0; n <= i % 3; ++n) {
      const std::uint64_t which = random.next(), offset = i % 4 ? 64 + random.next() % 256 : random.next() % 128;
      for (const std::uint64_t byte : {which & 255, which >> 8 & 255, offset & 255, offset >> 8, std::uint64_t{2},
                                       random.next() & 255, random.next() & 255})
        seed.push_back(static_cast<std::byte>(byte));
    }
    seeds.push_back(seed);
    if (i % 2) continue;
    seed[0] |= std::byte{kWithSnapshots};
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace varve::fuzz

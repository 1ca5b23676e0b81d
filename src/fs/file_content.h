// Blocks of a file for the operations on data: reading them into memory and building new ones. May answer would_block.
#pragma once

#include <vector>

#include "fs/inode_util.h"

namespace varve::fs {

// The bytes of one mapped block, verified; zeros for holes. The span lives as long as the operation or until the inode's
// lock is released, whichever is shorter.
Result<std::span<const std::byte>> block_bytes(Attempt& attempt, const changes::Inode& inode, std::uint64_t block,
                                               const changes::MappedBlock& mapped) REQUIRES_SHARED(inode.mutex);

// Says whether `bytes` are what the mapping promises; reports it if not. The inode need not be locked.
Status verify_block(Attempt& attempt, Ino ino, std::uint64_t block, const changes::MappedBlock& mapped, std::span<const std::byte> bytes);

// Copies a block at this address that is still on its way to the device. False: it is not.
bool copy_in_flight(Attempt& attempt, const changes::MappedBlock& mapped, std::span<std::byte> out);

// What a write needs to know of blocks [first, first + count): whether they are owned. Reads no tree as long as the
// file's counts tell, or there is room enough to take those it does not know for holes.
struct Ownership {
  boost::container::small_vector<changes::MappedBlock, 4> old;
  std::span<changes::MappedBlock> all_old() { return {old.data(), old.size()}; }
  bool assume_owned = false;  // for those that stay unknown
  std::uint64_t fresh = 0;    // of them, may need new space
};
Result<Ownership> ownership(Attempt& attempt, const changes::Inode& inode, std::uint64_t first, std::size_t count)
    REQUIRES_SHARED(inode.mutex);

// A block of content that is kept by `keeper` and does not change any more.
changes::PendingPtr make_pending(log::PayloadBufferPtr keeper, std::byte* bytes);

// New blocks of content: data(i) takes the 4096 bytes.
class BlockBuilder {
 public:
  explicit BlockBuilder(std::size_t blocks) : buffer_(new log::OwnPayloadBuffer(blocks)) {}
  std::byte* data(std::size_t index) { return buffer_->block(index); }
  changes::PendingPtr finish(std::size_t index) { return make_pending(buffer_, buffer_->block(index)); }

 private:
  boost::intrusive_ptr<log::OwnPayloadBuffer> buffer_;
};

// Bytes [from, to) of one block, which are to become zeros. Only looking may have to wait: a caller that looks at several before it
// zeros one changes all of them or nothing.
struct PartToZero {
  std::uint64_t from = 0, to = 0;
  changes::MappedBlock mapped;
  std::span<const std::byte> bytes;  // of the whole block; none: there are only zeros
};
Result<PartToZero> look_at_part(Attempt& attempt, const changes::Inode& inode, std::uint64_t from, std::uint64_t to)
    REQUIRES_SHARED(inode.mutex);
void zero(Attempt& attempt, changes::Inode& inode, const PartToZero& part) REQUIRES(inode.mutex);  // after having been admitted
// Both.
Status zero_part(Attempt& attempt, changes::Inode& inode, std::uint64_t from, std::uint64_t to) REQUIRES(inode.mutex);

// Where the file has a tail, or might get one by what waits, it gets a block there. Before it becomes longer than that block, and before
// room is set aside for it.
Status leave_tail(Attempt& attempt, changes::Inode& inode) REQUIRES(inode.mutex);

}  // namespace varve::fs

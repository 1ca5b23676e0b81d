#include "compare/joint_read.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/invariant.h"
#include "changes/layers.h"
#include "fs/file_content.h"

namespace varve::compare {

namespace {

constexpr std::uint32_t kMostTogether = 256;  // blocks in one request

struct Wanted {
  const changes::InodePtr* inode = nullptr;
  std::uint64_t block = 0;  // of the file
  changes::MappedBlock mapped;
  std::span<std::byte> out;  // the beginning of the block goes here
};

class JointRead {
 public:
  explicit JointRead(operation::Attempt& attempt) : a_(attempt) {}

  Status run(const std::vector<KeptFile*>& files) {
    inodes_.reserve(files.size());
    for (KeptFile* const file : files) TRY(look_up(*file));
    std::ranges::sort(wanted_, {}, [](const Wanted& one) { return one.mapped.address; });
    bool blocked = false;
    for (std::size_t i = 0; i < wanted_.size();) {
      std::size_t end = i + 1;
      while (end < wanted_.size() && end - i < kMostTogether && wanted_[end].mapped.address == wanted_[end - 1].mapped.address + 1) ++end;
      const Status done = fetch(i, end);
      if (done.fails_with(Errc::would_block)) blocked = true;
      else TRY(done);
      i = end;
    }
    return blocked ? Status(Errc::would_block) : Status();
  }

 private:
  // Where its blocks stand now: the cleaner may move them between two attempts.
  Status look_up(KeptFile& file) {
    a_.inside();
    inodes_.push_back(TRY(a_.inode(file.ino)));
    changes::Inode& inode = *inodes_.back();
    WriteLock lock(inode.mutex);
    file.data.resize(file.data_bytes());
    std::span<std::byte> rest = file.data;
    for (const BlockRun& run : file.runs) {
      const std::uint64_t end = std::min(run.first + run.length, blocks_for(file.inode.attributes.size));
      if (run.is != BlockState::data || run.first >= end) continue;
      std::vector<changes::MappedBlock> mapped(end - run.first);
      TRY(changes::resolve_blocks(inode, a_.view(), a_.source(), run.first, mapped));
      for (std::size_t i = 0; i < mapped.size(); ++i) {
        const auto out = rest.first(std::min<std::size_t>(rest.size(), kBlockSize));
        rest = rest.subspan(out.size());
        TRY(want({&inodes_.back(), run.first + i, mapped[i], out}));
      }
    }
    INVARIANT(rest.empty());  // or a part of the answer would be zeros that nobody has read
    return {};
  }

  // What is being written comes from memory.
  Status want(const Wanted& one) {
    a_.inside();
    if (one.mapped.kind == changes::MappedBlock::Kind::tail) return changes::copy_tail(*one.mapped.tail, 0, one.out), Status();
    if (one.mapped.kind != changes::MappedBlock::Kind::device)
      return Error(Errc::corrupt, fmt::format("inode {}: block {} of the file has gone from a snapshot", (*one.inode)->ino, one.block));
    if (!fs::copy_in_flight(a_, one.mapped, one.out)) wanted_.push_back(one);
    return {};
  }

  Status fetch(std::size_t begin, std::size_t end) {
    std::vector<changes::MappedBlock> blocks;
    for (std::size_t i = begin; i < end; ++i) blocks.push_back(wanted_[i].mapped);
    const auto whose = [&](std::size_t i) { return operation::FileBlock{(*wanted_[begin + i].inode)->ino, wanted_[begin + i].block}; };
    const auto bytes = TRY(a_.fetch(blocks, whose));
    MEMORY_INVARIANT(bytes.size() == (end - begin) * kBlockSize);
    for (std::size_t i = begin; i < end; ++i) {
      const Wanted& one = wanted_[i];
      const auto block = bytes.subspan((i - begin) * kBlockSize, kBlockSize);
      TRY(fs::verify_block(a_, (*one.inode)->ino, one.block, one.mapped, block));
      std::memcpy(one.out.data(), block.data(), one.out.size());
    }
    return {};
  }

  operation::Attempt& a_;
  std::vector<changes::InodePtr> inodes_;
  std::vector<Wanted> wanted_;
};

}  // namespace

Status read_jointly(operation::Attempt& attempt, const std::vector<KeptFile*>& files) { return JointRead(attempt).run(files); }

}  // namespace varve::compare

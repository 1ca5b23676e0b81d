// Files of a snapshot in full, many in one answer: so that to read them all costs no question for each.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compare/difference.h"
#include "compare/kept_inode.h"
#include "compare/question.h"

namespace varve::compare {

struct KeptFile {
  Ino ino;
  // It does not fit among others: only its attributes are told. What else it has is to be asked for by itself.
  bool is_large = false;
  KeptInode inode;
  std::vector<BlockRun> runs;  // of a regular file: all blocks that are no holes, as runs_of() tells
  // Of its blocks with data, one after the other, up to the end of the file. None: there are none, nobody has asked, or it is too much.
  format::Bytes data;

  static constexpr std::size_t kMostData = 2 * kBlockSize, kMostRuns = 16;
  std::uint64_t data_bytes() const;  // that `data` would have
};

void append(const KeptFile& file, format::Bytes& out);
Result<std::vector<KeptFile>> decode_files(std::span<const std::byte> bytes);  // Errc::corrupt

// Calls `take` with each of these inodes in their order, with all that is asked for one by one where it is large, but for data.
enum class With : std::uint8_t { no_data, data };
Status ask_files(const Ask& ask, Serial snapshot, std::span<const Ino> inodes, With with, const std::function<Status(KeptFile&&)>& take);

}  // namespace varve::compare

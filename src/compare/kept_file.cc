#include "compare/kept_file.h"

#include <algorithm>

#include "compare/bytes.h"
#include "format/codec.h"

namespace varve::compare {

std::uint64_t KeptFile::data_bytes() const {
  std::uint64_t bytes = 0;
  for (const BlockRun& run : runs) {
    const std::uint64_t from = run.first << kBlockShift, to = std::min((run.first + run.length) << kBlockShift, inode.attributes.size);
    if (run.is == BlockState::data && from < to) bytes += to - from;
  }
  return bytes;
}

void append(const KeptFile& file, Bytes& out) {
  put(out, file.ino.v);
  put(out, std::uint64_t{file.is_large});
  Bytes inode;
  append(file.inode, inode);
  put(out, std::span<const std::byte>(inode));
  put(out, file.runs.size());
  for (const BlockRun& run : file.runs) {
    put(out, run.first);
    put(out, run.length);
    put(out, static_cast<std::uint64_t>(run.is));
  }
  put(out, std::span<const std::byte>(file.data));
}

namespace {

Result<BlockRun> decode_run(format::Reader& in) {
  BlockRun run;
  run.first = in.varint();
  run.length = in.varint();
  const std::uint64_t is = in.varint();
  constexpr std::uint64_t kEnd = 1ULL << 62;
  if (!in.ok() || run.length == 0 || run.first >= kEnd || run.length >= kEnd || is > static_cast<std::uint64_t>(BlockState::data))
    return Error(Errc::corrupt, "an answer about files has blocks that cannot be");
  run.is = static_cast<BlockState>(is);
  return run;
}

}  // namespace

Result<std::vector<KeptFile>> decode_files(std::span<const std::byte> bytes) {
  std::vector<KeptFile> files;
  format::Reader in(bytes);
  while (in.ok() && in.left() > 0) {
    KeptFile file;
    file.ino = Ino{in.varint()};
    file.is_large = in.varint() != 0;
    file.inode = TRY(decode_inode(in.bytes(in.varint())));
    for (std::uint64_t left = in.varint(); left > 0 && in.ok(); --left) file.runs.push_back(TRY(decode_run(in)));
    const auto data = in.bytes(in.varint());
    file.data.assign(data.begin(), data.end());
    files.push_back(std::move(file));
  }
  if (!in.ok()) return Error(Errc::corrupt, "an answer about files ends in the middle of one");
  return files;
}

Status ask_files(const Ask& ask, Serial snapshot, std::span<const Ino> inodes, With with, const std::function<Status(KeptFile&&)>& take) {
  const auto kind = with == With::data ? Question::Kind::contents : Question::Kind::files;
  while (!inodes.empty()) {
    const auto asked = inodes.first(std::min(inodes.size(), kMostAsked));
    auto files = TRY(decode_files(TRY(ask({kind, {}, snapshot, format::kMinKey, {asked.begin(), asked.end()}})).bytes));
    if (files.empty() || files.size() > asked.size()) return Error(Errc::corrupt, "an answer about files does not go on");
    for (std::size_t i = 0; i < files.size(); ++i) {
      KeptFile& file = files[i];
      if (file.ino != asked[i]) return Error(Errc::corrupt, "an answer about files is about others");
      if (file.is_large) {
        file.inode = TRY(ask_inode(ask, snapshot, file.ino));
        file.runs = TRY(runs_of(ask, snapshot, file.ino));
      }
      TRY(take(std::move(file)));
    }
    inodes = inodes.subspan(files.size());
  }
  return {};
}

}  // namespace varve::compare

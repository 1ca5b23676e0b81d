#include "compare/file_scan.h"

#include <sys/stat.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"
#include "changes/layers.h"
#include "compare/joint_read.h"
#include "fs/engine.h"
#include "operation/attempt.h"

namespace varve::compare {

namespace {

// What an answer has of a file beside its data, target and attributes, at most.
constexpr std::size_t kAround = 512;

std::size_t size_of(const KeptFile& file) {
  std::size_t size = kAround + file.inode.target.size() + file.runs.size() * 12 + file.data_bytes();
  for (const format::Xattr& one : file.inode.xattrs) size += one.name.size() + one.value.size() + 16;
  return size;
}

// Without these it fits into every answer.
void make_large(KeptFile& file) {
  file.is_large = true;
  file.inode.target.clear();
  file.inode.xattrs.clear();
  file.runs.clear();
}

// An attempt that lacks a leaf begins anew: of a file in many extents little is read before it is left to questions of its own.
Status find_runs(const TreeSide& side, KeptFile& file) {
  constexpr std::uint64_t kEnd = 1ULL << 50;
  constexpr int kMostPieces = 64;
  ExtentReader reader(side, file.ino);
  int pieces = 0;
  for (std::uint64_t at = 0; at < kEnd;) {
    if (++pieces > kMostPieces) return make_large(file), Status();
    const auto piece = TRY(reader.piece(at, kEnd));
    BlockRun* const last = file.runs.empty() ? nullptr : &file.runs.back();
    if (last && last->first + last->length == at && last->is == piece.state) last->length += piece.length;
    else if (piece.state != BlockState::hole) file.runs.push_back({at, piece.length, BlockState::hole, piece.state});
    if (file.runs.size() > KeptFile::kMostRuns) return make_large(file), Status();
    at += piece.length;
  }
  return {};
}

// The operation shows the snapshot, so nobody else has the inode.
Result<KeptFile> describe(operation::Attempt& a, Ino ino) {
  a.inside();
  const changes::InodePtr inode = TRY(a.inode(ino));
  WriteLock lock(inode->mutex);
  KeptFile file{.ino = ino, .inode = {inode->attributes, {}, {}}, .runs = {}, .data = {}};
  file.inode.xattrs = TRY(changes::load_xattrs(*inode, a.view(), a.source()));
  if (S_ISLNK(file.inode.attributes.mode)) file.inode.target = TRY(changes::load_symlink(*inode, a.view(), a.source()));
  if (S_ISREG(file.inode.attributes.mode)) TRY(find_runs({a.source(), a.view()}, file));
  if (size_of(file) - file.data_bytes() > kMostAnswerBytes) make_large(file);
  return file;
}

// As many as there is room for. What an attempt has not found it asks for, and goes on with the next.
class FileScan {
 public:
  FileScan(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress)
      : filesystem_(filesystem), operation_(operation), question_(question), progress_(progress), files_(progress.files) {}

  Status run() {
    if (question_.inodes.empty() || question_.inodes.size() > kMostAsked) return Error(Errc::invalid, "no list of inodes");
    for (const KeptFile& file : files_) used_ += room_for(file);
    TRY(filesystem_.operations().attempt(operation_, [this](operation::Attempt& a) -> Status {
      TRY(describe_all(a));
      return read_all(a);
    }));
    INVARIANT(!files_.empty() && files_.size() <= question_.inodes.size());  // or the next question would be the same
    Answer& answer = progress_.answer;
    for (const KeptFile& file : files_) append(file, answer.bytes);
    answer.ended = true;
    return {};
  }

 private:
  bool wants_data(const KeptFile& file) const {
    return question_.kind == Question::Kind::contents && file.data_bytes() > 0 && file.data_bytes() <= KeptFile::kMostData &&
           size_of(file) <= kMostAnswerBytes;
  }
  std::size_t room_for(const KeptFile& file) const { return size_of(file) - (wants_data(file) ? 0 : file.data_bytes()); }

  // Those that are known stay so. The first that does not fit is for the next question.
  Status describe_all(operation::Attempt& a) {
    a.inside();
    if (!a.view().kept) return Error(Errc::stale, fmt::format("the snapshot of checkpoint {} has gone", question_.after));
    bool blocked = false;
    while (!is_full_ && files_.size() < question_.inodes.size()) {
      auto file = describe(a, question_.inodes[files_.size()]);
      if (file.fails_with(Errc::would_block)) {
        blocked = true;
        look_ahead(a);
        break;
      }
      if (!file.ok()) return file.error();
      used_ += room_for(*file);
      if (used_ > kMostAnswerBytes && !files_.empty()) is_full_ = true;
      else files_.push_back(std::move(*file));
    }
    return blocked ? Status(Errc::would_block) : Status();
  }

  // The files behind the first one ask for their nodes, too, and these come together with what that one waits for.
  void look_ahead(operation::Attempt& a) {
    a.inside();
    constexpr std::size_t kAhead = 64;
    const std::size_t end = std::min(question_.inodes.size(), files_.size() + kAhead);
    for (std::size_t i = files_.size() + 1; i < end; ++i) (void)describe(a, question_.inodes[i]);
  }

  Status read_all(operation::Attempt& a) {
    std::vector<KeptFile*> with_data;
    for (KeptFile& file : files_)
      if (wants_data(file)) with_data.push_back(&file);
    return read_jointly(a, with_data);
  }

  fs::Filesystem& filesystem_;
  fs::Operation& operation_;
  const Question& question_;
  Progress& progress_;
  std::vector<KeptFile>& files_;
  std::size_t used_ = 0;
  bool is_full_ = false;
};

}  // namespace

Status scan_files(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress) {
  return FileScan(filesystem, operation, question, progress).run();
}

}  // namespace varve::compare

// What a file holds: only what differs is written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <span>

#include <fmt/format.h>

#include "base/errc.h"
#include "base/utf8.h"
#include "send/file_sender.h"
#include "send/host_file.h"
#include "send/restorer.h"

namespace varve::send {

using compare::BlockRun;
using compare::BlockState;
using compare::InodeChange;
using compare::KeptInode;

namespace {

// To the run that ends there, if there is one.
void add_block(std::vector<BlockRun>& runs, const BlockRun& block) {
  const bool goes_on = !runs.empty() && runs.back().first + runs.back().length == block.first && runs.back().was == block.was &&
                       runs.back().is == block.is;
  if (goes_on) runs.back().length += block.length;
  else runs.push_back(block);
}

// Empty: it cannot be read.
std::string target_of(const Spot& link) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = ::readlinkat(link.directory.get(), link.name.c_str(), target.data(), target.size());
  target.resize(static_cast<std::size_t>(std::max<ssize_t>(0, length)));
  return target;
}

}  // namespace

// Those of a run of data that differ from the file's, which is open.
Status Restorer::add_other_blocks(int file, const std::string& path, Ino ino, const BlockRun& run, std::uint64_t size,
                                  std::vector<BlockRun>& others) {
  const std::uint64_t end = std::min((run.first + run.length) << kBlockShift, size);
  for (std::uint64_t at = run.first << kBlockShift; at < end;) {
    const Bytes then = TRY(compare::ask_data(ask_, snapshot_, ino, at));
    if (then.empty()) return Error(Errc::corrupt, fmt::format("{}: its file ends before byte {}", printable(meant_by(path)), end));
    Bytes now(then.size());
    const ssize_t read = ::pread(file, now.data(), now.size(), static_cast<off_t>(at));
    if (read < 0) return failed("reading", path);
    const std::span<const std::byte> there(now.data(), static_cast<std::size_t>(read));
    const std::uint64_t stop = std::min(at + then.size(), end), begin = at;
    for (; at < stop; at = std::min(((at >> kBlockShift) + 1) << kBlockShift, stop)) {
      const std::uint64_t from = at - begin, length = std::min(kBlockSize, stop - at);
      const bool is_there = from + length <= there.size();
      const bool is_same = is_there && std::ranges::equal(there.subspan(from, length), std::span(then).subspan(from, length));
      if (!is_same) add_block(others, {at >> kBlockShift, 1, run.was, run.is});
    }
  }
  return {};
}

// Blocks that were written again may hold the same: then there is nothing to do, and a second run finds nothing.
Result<std::vector<BlockRun>> Restorer::other_blocks(const std::string& path, Ino ino, std::uint64_t size,
                                                     const std::vector<BlockRun>& runs) {
  const Spot spot = spot_of(root_.get(), path);
  const Descriptor file(open_content(spot.directory.get(), spot.name, O_RDONLY));
  if (!file) return failed("opening", path);
  std::vector<BlockRun> others;
  for (const BlockRun& run : runs) {
    const bool may_be_same = run.was == BlockState::data && run.is == BlockState::data;
    if (may_be_same) TRY(add_other_blocks(file.get(), path, ino, run, size, others));
    else others.push_back(run);
  }
  return others;
}

// By another inode: restored before an interruption, or a copy of somebody's. It may have fewer names than then: those outside of the tree
// are of the file that has gone. But with more names, or where it stands for two files of the snapshot, one would be written through the
// other.
Result<bool> Restorer::is_there_already(const std::string& path, Ino ino) {
  struct stat status {};
  if (!look_at(path, status)) return false;
  const KeptInode kept = TRY(compare::ask_inode(ask_, snapshot_, ino));
  const format::Attributes& then = kept.attributes;
  const bool may_be = status.st_mode == then.mode && status.st_uid == then.uid && status.st_gid == then.gid &&
                      status.st_nlink <= then.nlink && status.st_rdev == then.rdev &&
                      static_cast<std::uint64_t>(status.st_size) == then.size && status.st_mtim.tv_sec == then.mtime.seconds &&
                      static_cast<std::uint32_t>(status.st_mtim.tv_nsec) == then.mtime.nanoseconds &&
                      static_cast<std::uint64_t>(status.st_blocks) * 512 >> kBlockShift == then.blocks;
  if (!may_be || taken_.contains(status.st_ino) || !TRY(has_content(path, ino, kept))) return false;
  if (status.st_nlink > 1) taken_.insert(status.st_ino);
  if (!options_.only_says) TRY(finish(path, kept));  // what cannot be seen here: attributes of others
  if (then.nlink > 1) linked_.emplace(ino, path);
  return true;
}

Result<bool> Restorer::has_content(const std::string& path, Ino ino, const KeptInode& kept) {
  if (S_ISLNK(kept.attributes.mode)) return target_of(spot_of(root_.get(), path)) == kept.target;
  if (!S_ISREG(kept.attributes.mode)) return true;
  std::vector<BlockRun> runs = TRY(compare::runs_of(ask_, snapshot_, ino));
  std::erase_if(runs, [](const BlockRun& run) { return run.is != BlockState::data; });
  for (BlockRun& run : runs) run.was = BlockState::data;  // as many blocks are there
  const std::vector<BlockRun> others = TRY(other_blocks(path, ino, kept.attributes.size, runs));
  return others.empty();
}

Status Restorer::change_in_place(const std::string& path, const InodeChange& since, Ino ino) {
  const KeptInode kept = TRY(compare::ask_inode(ask_, snapshot_, ino));
  InodeChange change = since;
  if (S_ISREG(kept.attributes.mode)) change.runs = TRY(other_blocks(path, ino, kept.attributes.size, since.runs));
  if (!changes_itself(change)) return {};
  const bool other_size = change.before && change.after && change.before->size != change.after->size;
  const bool has_data = S_ISREG(kept.attributes.mode) && (other_size || !change.runs.empty());
  if (other_size && has_data && change.before->size > change.after->size)
    TRY(add_room_behind(ask_, snapshot_, ino, kept.attributes.size, change.runs));
  if (!options_.only_says) {
    const Spot spot = spot_to_change(path);
    Unlocked file(spot.directory.get(), spot.name);
    if (has_data) TRY(write_runs(path, ino, kept.attributes.size, change.runs));
    TRY(finish(path, kept));
    file.keep();
  }
  note(has_data ? "modified" : "metadata", path);
  return {};
}

// In its place: what both have stays where it is.
Status Restorer::write_runs(const std::string& path, Ino ino, std::uint64_t size, const std::vector<BlockRun>& runs) {
  const Spot spot = spot_to_change(path);
  Descriptor file(open_content(spot.directory.get(), spot.name, O_RDWR));
  if (!file) return failed("opening", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed("looking", path);
  const bool has_size = static_cast<std::uint64_t>(status.st_size) == size;  // then what is set aside behind its end stays
  if (!has_size && ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return failed("setting its size", path);
  for (const BlockRun& run : runs) {
    const std::uint64_t from = run.first << kBlockShift, to = (run.first + run.length) << kBlockShift;
    if (run.is == BlockState::data && from < size) TRY(write_data(file.get(), path, ino, from, std::min(to, size)));
    if (run.is != BlockState::data) TRY(clear(file.get(), path, run, size));
  }
  return file.close() ? Status() : Status(failed("writing", path));
}

Status Restorer::clear(int file, const std::string& path, const BlockRun& run, std::uint64_t size) {
  const std::uint64_t from = run.first << kBlockShift, to = (run.first + run.length) << kBlockShift;
  const std::uint64_t end = run.is == BlockState::hole ? end_of_hole(run, size) : to;
  if (end <= from) return {};
  const int mode = FALLOC_FL_KEEP_SIZE | (run.is == BlockState::hole ? FALLOC_FL_PUNCH_HOLE : FALLOC_FL_ZERO_RANGE);
  if (::fallocate(file, mode, static_cast<off_t>(from), static_cast<off_t>(end - from)) == 0) return {};
  return failed("clearing a part", path);
}

Status Restorer::write_data(int file, const std::string& path, Ino ino, std::uint64_t from, std::uint64_t to) {
  while (from < to) {
    const Bytes bytes = TRY(compare::ask_data(ask_, snapshot_, ino, from));
    if (bytes.empty()) return Error(Errc::corrupt, fmt::format("{}: its file ends before byte {}", printable(meant_by(path)), to));
    const ssize_t wrote = ::pwrite(file, bytes.data(), std::min<std::uint64_t>(bytes.size(), to - from), static_cast<off_t>(from));
    if (wrote <= 0) return failed("writing", path);
    from += static_cast<std::uint64_t>(wrote);
    restored_.data_bytes += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

}  // namespace varve::send

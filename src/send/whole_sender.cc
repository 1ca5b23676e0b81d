#include "send/whole_sender.h"

#include <dirent.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <utility>

namespace varve::send {

using compare::Entries;
using compare::KeptFile;

Result<Sent> WholeSender::send(const Begin& begin) {
  TRY(out_.begin(begin));
  levels_.push_back({kRootIno, "", 0, {}, false});
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.waiting.empty()) {
      const Entries::Entry next = std::move(level.waiting.front());
      level.waiting.pop_front();
      TRY(enter(next));
    } else if (!level.ended) {
      TRY(send_page(level));
    } else {
      TRY(leave(level));
      levels_.pop_back();
    }
  }
  if (!linked_.empty()) return Error(Errc::corrupt, fmt::format("inode {} has fewer names than it should", linked_.begin()->first));
  TRY(out_.end());
  sent_.data_bytes = files_.data_bytes();
  return sent_;
}

// Its mode and owner come at the end, when nothing in it changes any more.
Status WholeSender::enter(const Entries::Entry& entry) {
  const std::string path = levels_.back().path + "/" + entry.name;
  if (is_in_staging(path))
    return Error(Errc::busy, fmt::format("{}: a receive was under way when the snapshot was made: it cannot be sent", path));
  ++sent_.inodes;
  TRY(out_.add(Create{S_IFDIR | 0700, 0, {}, path}));
  levels_.push_back({entry.ino, path, 0, {}, false});
  return {};
}

Status WholeSender::leave(const Level& level) {
  const auto kept = TRY(compare::ask_inode(ask_, snapshot_, level.directory));
  return files_.send_attributes(level.path.empty() ? "/" : level.path, kept.attributes, kept.xattrs);
}

// Files first, so that a page's can be asked for together.
Status WholeSender::send_page(Level& level) {
  const compare::Answer answer =
      TRY(ask_({compare::Question::Kind::entries, {}, snapshot_, {level.directory, format::ItemKind::dirent, level.cookie}}));
  Entries found = TRY(compare::decode_entries(answer.bytes));
  if (!answer.ended && answer.next.offset <= level.cookie) return Error(Errc::corrupt, "an answer about names goes back");
  level.ended = answer.ended;
  level.cookie = answer.next.offset;
  std::vector<Ino> inodes;
  std::vector<std::string> names;
  for (Entries::Entry& entry : found.entries) {
    if (entry.type == DT_DIR) {
      level.waiting.push_back(std::move(entry));
      continue;
    }
    inodes.push_back(entry.ino);
    names.push_back(std::move(entry.name));
  }
  std::size_t next = 0;
  const auto with = out_.skips() ? compare::With::no_data : compare::With::data;
  return compare::ask_files(ask_, snapshot_, inodes, with,
                            [&](KeptFile&& file) { return send_file(level.path + "/" + names[next++], file); });
}

Status WholeSender::send_file(const std::string& path, const KeptFile& file) {
  if (const auto linked = linked_.find(file.ino); linked != linked_.end()) return send_link(linked->second, file.ino, path);
  const format::Attributes& attributes = file.inode.attributes;
  ++sent_.inodes;
  TRY(out_.add(Create{attributes.mode & (S_IFMT | 0777U), attributes.rdev, file.inode.target, path}));
  if (S_ISREG(attributes.mode) && (attributes.size > 0 || !file.runs.empty()))
    TRY(files_.send_contents(file.ino, path, attributes.size, file.runs, file.data));
  if (attributes.nlink <= 1) return files_.send_attributes(path, attributes, file.inode.xattrs);
  linked_.emplace(file.ino, Linked{path, attributes.nlink - 1});
  return {};
}

// Its attributes come with its last name: a file that is immutable gets no more names.
Status WholeSender::send_link(Linked& linked, Ino ino, const std::string& path) {
  TRY(out_.add(Attach{ino, false, linked.path, path}));
  if (--linked.left > 0) return {};
  const auto kept = TRY(compare::ask_inode(ask_, snapshot_, ino));
  TRY(files_.send_attributes(linked.path, kept.attributes, kept.xattrs));
  linked_.erase(ino);
  return {};
}

}  // namespace varve::send

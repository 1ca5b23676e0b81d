#include "support/snapshot.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "support/pattern.h"

namespace varve::test {

namespace {

std::uint64_t content_hash(const ModelInode& inode) {
  if (!inode.content_hash) inode.content_hash = inode.content.hash(inode.size);
  return *inode.content_hash;
}

std::string describe_xattrs(const ModelInode& inode) {
  std::string text;
  for (const auto& [name, value] : inode.xattrs) {
    text += fmt::format("{}={}:{:x} ", name, value.length, hash_bytes(pattern_bytes(value.seed, 0, value.length)));
  }
  return text;
}

class ModelWalk {
 public:
  explicit ModelWalk(const ModelFs& model) : model_(model) {}

  void visit(const std::string& path, ModelId id) {
    const ModelInode& inode = model_.inode(id);
    SnapshotEntry entry = entry_of(inode);
    entry.path = path;
    const auto [first, is_first] = seen_.try_emplace(id, path);
    entry.first_path = first->second;
    entry.symlink = inode.symlink;
    if (is_first) {
      if (inode.is_file()) entry.content = content_hash(inode);
      entry.xattrs = describe_xattrs(inode);
    }
    snapshot.entries.push_back(std::move(entry));
    const std::string prefix = path == "/" ? path : path + "/";
    for (const auto& [name, child] : inode.entries) visit(prefix + name, child);
  }

  Snapshot snapshot;

 private:
  const ModelFs& model_;
  std::unordered_map<ModelId, std::string> seen_;
};

struct Line {
  const char* name;
  std::string expected;
  std::string found;
};

std::string text_of(Timestamp t) { return fmt::format("{}.{:09}", t.seconds, t.nanoseconds); }

// Every attribute by name, as text; what both must agree in.
std::vector<Line> lines_of(const SnapshotEntry& a, const SnapshotEntry& b, const CompareOptions& options) {
  std::vector<Line> lines = {
      {"mode", fmt::format("{:o}", a.mode), fmt::format("{:o}", b.mode)},
      {"uid", fmt::format("{}", a.uid), fmt::format("{}", b.uid)},
      {"gid", fmt::format("{}", a.gid), fmt::format("{}", b.gid)},
      {"nlink", fmt::format("{}", a.nlink), fmt::format("{}", b.nlink)},
      {"rdev", fmt::format("{}", a.rdev), fmt::format("{}", b.rdev)},
      {"size", fmt::format("{}", a.size), fmt::format("{}", b.size)},
      {"first path", a.first_path, b.first_path},
      {"content", fmt::format("{:x}", a.content), fmt::format("{:x}", b.content)},
      {"symlink", a.symlink, b.symlink},
      {"xattrs", a.xattrs, b.xattrs},
  };
  if (options.times) {
    lines.push_back({"atime", text_of(a.atime), text_of(b.atime)});
    lines.push_back({"mtime", text_of(a.mtime), text_of(b.mtime)});
    lines.push_back({"ctime", text_of(a.ctime), text_of(b.ctime)});
    lines.push_back({"btime", text_of(a.btime), text_of(b.btime)});
  }
  if (options.identity && a.ino && b.ino) {
    lines.push_back({"ino", fmt::format("{}", a.ino), fmt::format("{}", b.ino)});
    lines.push_back({"generation", fmt::format("{}", a.generation), fmt::format("{}", b.generation)});
  }
  return lines;
}

// Calls report(line of text) for each difference.
template <class Report>
void each_difference(const Snapshot& expected, const Snapshot& found, const CompareOptions& options, Report&& report) {
  if (expected.error != found.error) report(fmt::format("walk failed: {}{}", expected.error, found.error));
  std::map<std::string, const SnapshotEntry*> rest;
  for (const SnapshotEntry& entry : found.entries) {
    if (!rest.emplace(entry.path, &entry).second) report(fmt::format("{}: listed twice", entry.path));
  }
  for (const SnapshotEntry& entry : expected.entries) {
    auto other = rest.find(entry.path);
    if (other == rest.end()) {
      report(fmt::format("{}: missing ({})", entry.path, to_string(entry)));
      continue;
    }
    for (const Line& line : lines_of(entry, *other->second, options)) {
      if (line.expected == line.found) continue;
      report(fmt::format("{}: {} is {}, expected {}", entry.path, line.name, line.found, line.expected));
    }
    rest.erase(other);
  }
  for (const auto& [path, entry] : rest) report(fmt::format("{}: should not be there ({})", path, to_string(*entry)));
}

std::uint64_t mix_time(std::uint64_t hash, Timestamp t) {
  return mix_hash(mix_hash(hash, static_cast<std::uint64_t>(t.seconds)), t.nanoseconds);
}

std::uint64_t mix_text(std::uint64_t hash, const std::string& text) {
  return mix_hash(mix_hash(hash, text.size()), hash_bytes(std::as_bytes(std::span(text))));
}

}  // namespace

SnapshotEntry entry_of(const ModelInode& inode) {
  SnapshotEntry entry;
  entry.ino = inode.ino;
  entry.generation = inode.generation;
  entry.mode = inode.mode;
  entry.uid = inode.uid;
  entry.gid = inode.gid;
  entry.nlink = inode.nlink;
  entry.rdev = inode.rdev;
  entry.size = inode.is_directory() ? 0 : inode.size;
  entry.atime = inode.atime;
  entry.mtime = inode.mtime;
  entry.ctime = inode.ctime;
  entry.btime = inode.btime;
  return entry;
}

SnapshotEntry entry_of(const fs::Attr& attr) {
  SnapshotEntry entry;
  entry.ino = attr.ino;
  entry.generation = attr.generation;
  entry.mode = attr.mode;
  entry.uid = attr.uid;
  entry.gid = attr.gid;
  entry.nlink = attr.nlink;
  entry.rdev = attr.rdev;
  entry.size = S_ISDIR(attr.mode) ? 0 : attr.size;
  entry.atime = attr.atime;
  entry.mtime = attr.mtime;
  entry.ctime = attr.ctime;
  entry.btime = attr.btime;
  return entry;
}

std::string difference(const SnapshotEntry& expected, const SnapshotEntry& found, const CompareOptions& options) {
  std::string text;
  for (const Line& line : lines_of(expected, found, options)) {
    if (line.expected == line.found) continue;
    text += fmt::format("{}{} is {}, expected {}", text.empty() ? "" : "; ", line.name, line.found, line.expected);
  }
  return text;
}

void add_kept(const std::string& name, Snapshot kept, Snapshot& all) {
  if (!kept.error.empty()) all.error = fmt::format("snapshot {}: {}", name, kept.error);
  for (SnapshotEntry& entry : kept.entries) {
    entry.path = fmt::format("@{}:{}", name, entry.path);
    entry.first_path = fmt::format("@{}:{}", name, entry.first_path);
    all.entries.push_back(std::move(entry));
  }
}

Snapshot snapshot_of(const ModelFs& model, bool with_slots) {
  ModelWalk walk(model);
  walk.visit("/", kModelRoot);
  if (with_slots) {
    for (const auto& [slot, id] : model.slots()) {
      if (model.inode(id).nlink == 0) walk.visit(slot, id);
    }
    for (const auto& [name, state] : model.kept()) add_kept(name, snapshot_of(*state), walk.snapshot);
  }
  return std::move(walk.snapshot);
}

std::uint64_t hash_of(const Snapshot& snapshot, bool times) {
  std::uint64_t hash = mix_text(snapshot.entries.size(), snapshot.error);
  for (const SnapshotEntry& entry : snapshot.entries) {
    hash = mix_text(hash, entry.path);
    for (const std::uint64_t value : {std::uint64_t{entry.mode}, std::uint64_t{entry.uid}, std::uint64_t{entry.gid},
                                      std::uint64_t{entry.nlink}, std::uint64_t{entry.rdev}, entry.size,
                                      entry.content}) {
      hash = mix_hash(hash, value);
    }
    hash = mix_text(mix_text(mix_text(hash, entry.first_path), entry.symlink), entry.xattrs);
    if (!times) continue;
    for (const Timestamp t : {entry.atime, entry.mtime, entry.ctime, entry.btime}) hash = mix_time(hash, t);
  }
  return hash;
}

std::string difference(const Snapshot& expected, const Snapshot& found, const CompareOptions& options,
                       std::size_t limit) {
  std::string text;
  std::size_t count = 0;
  each_difference(expected, found, options, [&](const std::string& line) {
    if (++count <= limit) text += "  " + line + "\n";
  });
  if (count > limit) text += fmt::format("  … and {} more differences\n", count - limit);
  return text;
}

std::size_t count_differences(const Snapshot& expected, const Snapshot& found, const CompareOptions& options) {
  std::size_t count = 0;
  each_difference(expected, found, options, [&](const std::string&) { ++count; });
  return count;
}

std::string to_string(const SnapshotEntry& entry) {
  return fmt::format("inode {}, mode {:o}, {} links, {} bytes", entry.ino, entry.mode, entry.nlink, entry.size);
}

}  // namespace varve::test

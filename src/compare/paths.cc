#include "compare/paths.h"

#include <dirent.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace varve::compare {

namespace {

std::string joined(const std::string& directory, std::string_view name) {
  return (directory == "/" ? "" : directory) + "/" + std::string(name);
}

}  // namespace

void Paths::know_directories(const std::map<Ino, InodeChange>& inodes, Side side) {
  for (const auto& [ino, change] : inodes) {
    const auto& attributes = side == Side::before ? change.before : change.after;
    if (!attributes || !S_ISDIR(attributes->mode)) continue;
    for (const Name& name : side == Side::before ? change.lost : change.gained) know_directory(ino, name);
  }
}

Result<Ino> Paths::read(Ino directory, const std::function<bool(const Entries::Entry&)>& visit) {
  Question question{Question::Kind::entries, {}, snapshot_, {directory, format::ItemKind::dirent, 0}};
  for (;;) {
    const Answer answer = TRY(ask_(question));
    const Entries found = TRY(decode_entries(answer.bytes));
    bool goes_on = true;
    for (const Entries::Entry& entry : found.entries) {
      if (entry.type == DT_DIR) know_directory(entry.ino, {directory, entry.name});
      goes_on = goes_on && visit(entry);
    }
    if (answer.ended || !goes_on) return found.parent;
    if (answer.next <= question.from) return Error(Errc::corrupt, "an answer about names goes back");
    question.from = answer.next;
  }
}

// What a question about names cannot find. The state of this moment goes on: a directory may have been removed or moved since it was heard
// of. A snapshot is whole.
bool Paths::is_gone(const Error& error) const {
  const Errc code = error.code();
  return snapshot_ == kNewest && (code == Errc::not_directory || code == Errc::stale || code == Errc::corrupt || code == Errc::not_found);
}

Result<Name> Paths::name_of(Ino directory) {
  auto name = find_name(directory);
  if (name.ok() || !is_gone(name.error())) return name;
  return Name{kRootIno, fmt::format("inode {}", directory)};
}

Result<Name> Paths::find_name(Ino directory) {
  if (const auto known = directories_.find(directory); known != directories_.end()) return known->second;
  const Ino parent = TRY(read(directory, [](const Entries::Entry&) { return false; }));
  TRY(read(parent, [&](const Entries::Entry& entry) { return entry.ino != directory; }));
  const auto known = directories_.find(directory);
  if (known == directories_.end()) return Error(Errc::corrupt, fmt::format("directory {} is not in its parent {}", directory, parent));
  return known->second;
}

Result<std::string> Paths::of(const Name& name) { return joined(TRY(of_directory(name.directory)), name.name); }

Result<std::string> Paths::of_directory(Ino directory) {
  constexpr std::size_t kDeepest = 100'000;
  std::vector<Name> way;  // to the first directory whose path is known
  Ino at = directory;
  paths_.emplace(kRootIno, "/");
  while (!paths_.contains(at)) {
    if (way.size() == kDeepest) return Error(Errc::corrupt, fmt::format("directory {} is below itself", directory));
    way.push_back(TRY(name_of(at)));
    at = way.back().directory;
  }
  std::string path = paths_.at(at);
  for (; !way.empty(); way.pop_back()) path = joined(path, way.back().name);
  return paths_.insert_or_assign(directory, path).first->second;
}

Result<std::map<Ino, std::string>> Paths::of_files(std::set<Ino> files, const std::set<Name>& apart, Ino top) {
  std::map<Ino, std::string> found;
  std::set<Ino> waiting{top}, seen{top};
  while (!waiting.empty() && !files.empty()) {
    const auto behind = waiting.upper_bound(*files.begin());
    const Ino directory = waiting.extract(behind == waiting.begin() ? behind : std::prev(behind)).value();
    std::vector<Entries::Entry> hits;
    const auto end = read(directory, [&](const Entries::Entry& entry) {
      if (entry.type == DT_DIR && seen.insert(entry.ino).second) waiting.insert(entry.ino);
      const bool counts = entry.type != DT_DIR && files.contains(entry.ino) && !apart.contains({directory, entry.name});
      if (counts && files.erase(entry.ino) > 0) hits.push_back(entry);
      return !files.empty();
    });
    if (!end.ok() && !is_gone(end.error())) return end.error();
    for (const Entries::Entry& entry : hits) found.emplace(entry.ino, TRY(of({directory, entry.name})));
  }
  return found;
}

}  // namespace varve::compare

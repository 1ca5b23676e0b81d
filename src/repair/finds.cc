#include "repair/finds.h"

#include <algorithm>

#include "base/counted.h"

namespace varve::repair {

using format::ItemKind;
using format::Key;

namespace {

constexpr std::uint64_t kFirstCookie = 3;

Key start_of(Ino ino) { return {ino, ItemKind::extent, 0}; }

// The first key from this one on that an item can have. The list of orphans is made anew, whatever it was.
Key first_possible(Key key) {
  if (key.ino < kRootIno) return {kRootIno, ItemKind::dirent, kFirstCookie};
  if (key.kind > ItemKind::attributes || (key.kind == ItemKind::attributes && key.offset > 0)) return start_of(key.ino + 1);
  if (key.kind < ItemKind::extent) key = start_of(key.ino);
  if (key.kind == ItemKind::extent && key.ino == kRootIno) key = {key.ino, ItemKind::dirent, 0};
  if (key.kind == ItemKind::dirent) key.offset = std::max(key.offset, kFirstCookie);
  if (key.kind == ItemKind::orphan) key = {key.ino, ItemKind::attributes, 0};
  return key;
}

// Where a stretch ends that ends before this key. A directory has nothing before its first entry.
Key end_before(const Key& key) {
  const bool first_entry = key.kind == ItemKind::dirent && key.offset <= kFirstCookie;
  return key.kind < ItemKind::extent || first_entry ? start_of(key.ino) : key;
}

Ino last_of(const KeyRange& range) { return range.upper == start_of(range.upper.ino) ? range.upper.ino - 1 : range.upper.ino; }

std::string data_words(const KeyRange& range) {
  const bool to_the_end = range.upper.ino != range.lower.ino || range.upper.kind != ItemKind::extent;
  const std::uint64_t from = range.lower.offset;
  if (!to_the_end) return fmt::format("data of file blocks {} to {}", from, range.upper.offset - 1);
  return from == 0 ? "its data" : fmt::format("its data from file block {} on", from);
}

// What an inode may lack of which this is lost; `range` has no other.
std::string words_of(const KeyRange& range) {
  std::string words;
  const auto say = [&](ItemKind kind, const std::string& what) {
    const KeyRange all{{range.lower.ino, kind, 0}, {range.lower.ino, static_cast<ItemKind>(static_cast<std::uint8_t>(kind) + 1), 0}};
    if (!common(range, all).empty()) words += (words.empty() ? "" : ", ") + what;
  };
  if (range.lower.kind == ItemKind::extent) say(ItemKind::extent, data_words(range));
  say(ItemKind::dirent, "names in it");
  say(ItemKind::xattr, "extended attributes");
  say(ItemKind::symlink, "where it leads as a symlink");
  say(ItemKind::attributes, "size, times, owner and mode");
  return words + ", as far as it had that";
}

void report_lost(const KeyRange& lost, const format::Superblock& super, ActionLog& actions) {
  const KeyRange range = noticeable(lost, super);
  if (range.empty()) return;
  const Ino last = last_of(range);
  const bool begun = range.lower != start_of(range.lower.ino), whole = !begun && range.upper == start_of(last + 1);
  if (last == range.lower.ino)
    return actions.add(ActionCode::items_lost, last, whole ? "the file or directory of this number, if there was one" : words_of(range));
  actions.add(ActionCode::items_lost, range.lower.ino,
              fmt::format("{}all files that had these numbers, if any", begun ? "a part of the first, and " : ""), last);
}

void report_old(const LeafPiece& leaf, ActionLog& actions) {
  actions.add(ActionCode::old_copy_used, leaf.range.lower.ino, fmt::format("block {}, of checkpoint {}", leaf.address, leaf.serial),
              last_of(leaf.range));
}

bool changes_nothing(const Verdicts& verdicts, const Facts& facts) {
  if (!verdicts.removed.empty() || !verdicts.types.empty() || !verdicts.added.empty() || !verdicts.made.empty()) return false;
  return std::ranges::all_of(facts.inodes, [&](const InodeFact& inode) {
    const auto verdict = verdicts.inodes.find(inode.ino);
    return verdict == verdicts.inodes.end() || verdict->second.nlink == inode.nlink;
  });
}

}  // namespace

KeyRange noticeable(const KeyRange& lost, const format::Superblock& super) {
  const Key end = start_of(Ino{std::min(super.next_ino, format::kInoLimit)});  // nothing behind it was ever handed out
  const KeyRange range{first_possible(lost.lower), std::min(end_before(lost.upper), end)};
  // The index can be told from the names.
  const KeyRange index{{range.lower.ino, ItemKind::name_hash, 0}, {range.lower.ino, ItemKind::xattr, 0}};
  const bool only_index = range.lower >= index.lower && range.upper <= index.upper;
  return only_index ? KeyRange{} : range;
}

bool may_be_newest(const LeafPlan& plan) {
  const bool has_old = std::ranges::any_of(plan.leaves, [](const LeafPiece& leaf) { return leaf.trust == Trust::old_copy; });
  return has_old && !plan.leaf_lost && plan.misplaced_items == 0;
}

LeafPlan newest(const LeafPlan& plan) {
  LeafPlan result = plan;
  std::erase_if(result.leaves, [](const LeafPiece& leaf) { return leaf.trust == Trust::old_copy && !leaf.whole; });
  return result;
}

bool fits_all_counts(const LeafPlan& plan, const format::Superblock& super, const Survey& survey, const Verdicts& verdicts) {
  if (!may_be_newest(plan) || !survey.counts_right || !survey.lost.empty() || !survey.facts.disputed.empty()) return false;
  return survey.facts.inodes.size() == super.inodes && survey.file_blocks == super.inode_file.blocks &&
         changes_nothing(verdicts, survey.facts);
}

void report_finds(LeafPlan& plan, const format::Superblock& super, bool fits, ActionLog& actions) {
  std::uint64_t taken = 0;
  for (LeafPiece& leaf : plan.leaves) {
    if (leaf.trust == Trust::found) actions.add(ActionCode::leaves_found, {}, fmt::format("block {}", leaf.address));
    if (leaf.trust != Trust::old_copy) continue;
    if (!fits && !noticeable(leaf.range, super).empty()) report_old(leaf, actions);
    if (fits) leaf.trust = Trust::found;
    taken += fits;
  }
  if (fits) actions.add(ActionCode::newest_leaves_taken, {}, counted(taken, "block"));
  for (const KeyRange& range : plan.lost)
    if (!fits) report_lost(range, super, actions);
}

}  // namespace varve::repair

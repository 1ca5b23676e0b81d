#include "compare/difference.h"

#include <algorithm>
#include <iterator>

namespace varve::compare {

bool InodeChange::content_differs() const {
  const auto shows = [](const BlockRun& run) { return run.was == BlockState::data || run.is == BlockState::data; };
  const bool other_size = before && after && before->size != after->size;
  return other_size || std::ranges::any_of(runs, shows);
}

namespace {

void add_run(std::vector<BlockRun>& runs, const Record& record) {
  BlockRun* const last = runs.empty() ? nullptr : &runs.back();
  const bool goes_on = last && last->first + last->length == record.first && last->was == record.was && last->is == record.is;
  if (goes_on) last->length += record.length;
  else runs.push_back({record.first, record.length, record.was, record.is});
}

Result<std::vector<Record>> ask_records(const Ask& ask, Question& question, bool& ended) {
  const Answer answer = TRY(ask(question));
  ended = answer.ended;
  if (!ended && answer.next <= question.from && question.from != format::kMinKey)
    return Error(Errc::corrupt, "an answer about changes goes back");
  question.from = answer.next;
  return decode_records(answer.bytes);
}

}  // namespace

Result<std::vector<BlockRun>> runs_of(const Ask& ask, Serial snapshot, Ino ino) {
  std::vector<BlockRun> runs;
  Question question{Question::Kind::changes, {}, snapshot, {ino, format::ItemKind::extent, 0}};
  for (bool ended = false; !ended && question.from < format::Key{ino, format::ItemKind::dirent, 0};)
    for (const Record& record : TRY(ask_records(ask, question, ended)))
      if (record.ino == ino && record.kind == Record::Kind::blocks) add_run(runs, record);
  return runs;
}

Result<Difference> Difference::find(const Ask& ask, Serial before, Serial after) {
  Difference found;
  Question question{Question::Kind::changes, before, after};
  for (bool ended = false; !ended;)
    for (Record& record : TRY(ask_records(ask, question, ended))) found.take(std::move(record));
  found.tidy();
  return found;
}

void Difference::take(Record&& record) {
  InodeChange& change = inodes_[record.ino];
  switch (record.kind) {
    case Record::Kind::attributes:
      change.attributes_differ = true;
      change.before = std::move(record.attributes_before);
      change.after = std::move(record.attributes_after);
      return;
    case Record::Kind::entry:
      change.entries = true;
      if (const auto& entry = record.entry_before) inodes_[entry->ino].lost.push_back({record.ino, entry->name});
      if (const auto& entry = record.entry_after) inodes_[entry->ino].gained.push_back({record.ino, entry->name});
      return;
    case Record::Kind::blocks: return add_run(change.runs, record);
    case Record::Kind::xattrs: change.xattrs = true; return;
    case Record::Kind::target: change.target = true; return;
  }
}

// A name that was taken away and given again is the same.
void Difference::tidy() {
  for (auto& [ino, change] : inodes_) {
    std::ranges::sort(change.lost);
    std::ranges::sort(change.gained);
    std::vector<Name> lost, gained;
    std::ranges::set_difference(change.lost, change.gained, std::back_inserter(lost));
    std::ranges::set_difference(change.gained, change.lost, std::back_inserter(gained));
    change.lost = std::move(lost);
    change.gained = std::move(gained);
  }
}

}  // namespace varve::compare

#include "compare/answer.h"

#include <fmt/format.h>

#include "compare/bytes.h"
#include "compare/entries.h"
#include "fs/attempt.h"
#include "store/layers.h"
#include "store/places.h"

namespace varve::compare {

namespace {

Result<store::TreeView> view_of(fs::Attempt& a, Serial snapshot) {
  a.inside();
  const auto kept = a.store().snapshots().find(snapshot);
  if (!kept) return Error(Errc::stale, fmt::format("the snapshot of checkpoint {} has gone", snapshot));
  return store::as_of(a.view(), *kept);
}

// Places are those of this moment, so that both views agree.
Status scan_changes(fs::Attempt& a, const Question& question, Progress& progress) {
  a.inside();
  const store::TreeView before = TRY(view_of(a, question.before)), after = TRY(view_of(a, question.after));
  fs::OperationSource former(a.store(), a.wait(), &before), present(a.store(), a.wait(), &after);
  return ChangeScan({former, before}, {present, after}, progress).run();
}

Status list_entries(fs::Attempt& a, const Question& question, Progress& progress) {
  a.inside();
  const store::TreeView view = TRY(view_of(a, question.after));
  fs::OperationSource source(a.store(), a.wait(), &view);
  const store::InodePtr directory(new store::Inode(question.from.ino));
  WriteLock lock(directory->mutex);
  TRY(store::load_attributes(*directory, view, source));
  if (directory->gone() || (directory->attributes.mode & 0170000) != 0040000)
    return Error(Errc::not_directory, fmt::format("inode {} of a snapshot is no directory", question.from.ino));
  Answer& answer = progress.answer;
  answer = {.next = question.from, .ended = true, .bytes = {}};  // begins anew: nothing is told twice
  put(answer.bytes, directory->attributes.parent.v);
  return store::scan_entries(*directory, view, source, question.from.offset,
                             [&](std::uint64_t cookie, Ino ino, std::uint8_t type, std::string_view name) -> Result<bool> {
                               append_entry({std::string(name), ino, type}, answer.bytes);
                               answer.next.offset = cookie;
                               answer.ended = answer.bytes.size() <= Progress::kFullAnswerBytes;
                               return answer.ended;
                             });
}

}  // namespace

Result<Answer> answer(fs::Engine& engine, fs::Operation& operation, const Question& question, Progress& progress) {
  if (!std::exchange(progress.began, true)) progress.answer.next = question.from;
  const Status done = engine.attempt(operation, [&](fs::Attempt& a) -> Status {
    switch (question.kind) {
      case Question::Kind::changes: return scan_changes(a, question, progress);
      case Question::Kind::entries: return list_entries(a, question, progress);
    }
    return Error(Errc::invalid, "a question that nobody knows");
  });
  if (!done.ok()) return done.error();
  return std::move(progress.answer);
}

Ask asking(fs::Filesystem& filesystem) {
  return [&filesystem](const Question& question) -> Result<Answer> {
    fs::Operation operation(filesystem.engine(), {});
    Progress progress;
    return fs::block_on(operation, [&] { return answer(filesystem.engine(), operation, question, progress); });
  };
}

}  // namespace varve::compare

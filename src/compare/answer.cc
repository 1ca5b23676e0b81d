#include "compare/answer.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>

#include "changes/layers.h"
#include "compare/bytes.h"
#include "compare/entries.h"
#include "compare/file_scan.h"
#include "operation/attempt.h"
#include "snapshots/places.h"
#include "snapshots/snapshots.h"

namespace varve::compare {

namespace {

bool is_about_files(const Question& question) {
  return question.kind == Question::Kind::files || question.kind == Question::Kind::contents;
}

// It reads as a snapshot would that was made with it: places of moved blocks are asked for from its checkpoint on.
tree::TreeView newest_view(operation::Attempt& a) {
  a.inside();
  tree::TreeView view = a.view();
  if (!view.kept) view.kept = view.serial;
  return view;
}

// Without a snapshot: nothing at all.
Result<tree::TreeView> view_of(operation::Attempt& a, Serial snapshot) {
  a.inside();
  if (!snapshot) return tree::TreeView();
  if (snapshot == kNewest) return newest_view(a);
  const auto kept = a.store().snapshots().find(snapshot);
  if (!kept) return Error(Errc::stale, fmt::format("the snapshot of checkpoint {} has gone", snapshot));
  return tree::as_of(a.view(), *kept);
}

// Places are those of this moment, so that both views agree.
Status scan_changes(operation::Attempt& a, const Question& question, Progress& progress) {
  a.inside();
  const tree::TreeView before = TRY(view_of(a, question.before));
  const tree::TreeView after = TRY(view_of(a, question.after));
  operation::OperationSource former(a.store(), a.wait(), &before), present(a.store(), a.wait(), &after);
  return ChangeScan({former, before}, {present, after}, progress).run();
}

// `tell` finds its attributes loaded. No other thread has this object.
template <auto tell>
Status tell_of_inode(operation::Attempt& a, const Question& question, Progress& progress) {
  a.inside();
  const tree::TreeView view = TRY(view_of(a, question.after));
  operation::OperationSource source(a.store(), a.wait(), &view);
  const changes::InodePtr inode(new changes::Inode(question.from.ino));
  WriteLock lock(inode->mutex);
  TRY(changes::load_attributes(*inode, view, source));
  return tell(*inode, view, source, question, progress);
}

Status list_entries(const changes::Inode& directory, const tree::TreeView& view, tree::NodeSource& source, const Question& question,
                    Progress& progress) REQUIRES_SHARED(directory.mutex) {
  if (directory.gone() || !S_ISDIR(directory.attributes.mode))
    return Error(Errc::not_directory, fmt::format("inode {} of a snapshot is no directory", question.from.ino));
  Answer& answer = progress.answer;
  answer = {.next = question.from, .ended = true, .bytes = {}};  // begins anew: nothing is told twice
  put(answer.bytes, directory.attributes.parent.v);
  return changes::scan_entries(directory, view, source, question.from.offset,
                             [&](std::uint64_t cookie, Ino ino, std::uint8_t type, std::string_view name) -> Result<bool> {
                               append_entry({std::string(name), ino, type}, answer.bytes);
                               answer.next.offset = cookie;
                               answer.ended = answer.bytes.size() <= Progress::kFullAnswerBytes;
                               return answer.ended;
                             });
}

Status describe_inode(const changes::Inode& inode, const tree::TreeView& view, tree::NodeSource& source, const Question& question,
                      Progress& progress) REQUIRES_SHARED(inode.mutex) {
  if (inode.gone()) return Error(Errc::stale, fmt::format("inode {} is not in the snapshot", question.from.ino));
  KeptInode kept{inode.attributes, {}, TRY(changes::load_xattrs(inode, view, source))};
  if (S_ISLNK(kept.attributes.mode)) kept.target = TRY(changes::load_symlink(inode, view, source));
  Bytes bytes;
  append(kept, bytes);
  const std::span<const std::byte> rest = std::span(bytes).subspan(std::min<std::uint64_t>(question.from.offset, bytes.size()));
  const auto piece = rest.first(std::min(rest.size(), kMostAnswerBytes));
  progress.answer = {question.from, piece.size() == rest.size(), {piece.begin(), piece.end()}};
  return {};
}

// The operation shows the snapshot: the file is read like any other.
Status read_data(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress) {
  Bytes& bytes = progress.answer.bytes;
  bytes.resize(kMostDataBytes);
  bytes.resize(TRY(filesystem.read(operation, question.from.ino, question.from.offset, bytes)));
  progress.answer.ended = bytes.empty();
  return {};
}

Status try_to_answer(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress) {
  if (question.kind == Question::Kind::data) return read_data(filesystem, operation, question, progress);
  if (is_about_files(question)) return scan_files(filesystem, operation, question, progress);
  return filesystem.operations().attempt(operation, [&](operation::Attempt& a) -> Status {
    switch (question.kind) {
      case Question::Kind::changes: return scan_changes(a, question, progress);
      case Question::Kind::entries: return tell_of_inode<list_entries>(a, question, progress);
      case Question::Kind::inode: return tell_of_inode<describe_inode>(a, question, progress);
      case Question::Kind::data:
      case Question::Kind::files:
      case Question::Kind::contents: break;
    }
    return Error(Errc::invalid, "a question that nobody knows");
  });
}

}  // namespace

Result<Answer> answer(fs::Filesystem& filesystem, fs::Operation& operation, const Question& question, Progress& progress) {
  if (!std::exchange(progress.began, true)) {
    progress.answer.next = question.from;
    if (question.kind == Question::Kind::data || is_about_files(question)) {
      if (!question.after) return Error(Errc::invalid, "data of no snapshot");
      operation.show(question.after);
    }
  }
  TRY(try_to_answer(filesystem, operation, question, progress));
  return std::move(progress.answer);
}

}  // namespace varve::compare

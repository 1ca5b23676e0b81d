#include "control/kept_page.h"

#include <cstring>

#include "base/invariant.h"

namespace varve::control {

static_assert(compare::kMostAnswerBytes <= sizeof(KeptPage::text));

namespace {

void set_key(KeptPage& page, const format::Key& key) {
  page.ino = key.ino.v;
  page.item = static_cast<std::uint32_t>(key.kind);
  page.offset = key.offset;
}

Result<format::Key> key_of(const KeptPage& page) {
  if (page.item > 0xFF) return Error(Errc::invalid, "no kind of item");
  return format::Key{Ino{page.ino}, static_cast<format::ItemKind>(page.item), page.offset};
}

}  // namespace

KeptPage to_page(const compare::Question& question) {
  static_assert(compare::kMostAsked * sizeof(std::uint64_t) <= sizeof(KeptPage::text));
  INVARIANT(question.inodes.size() <= compare::kMostAsked);
  KeptPage page;
  page.bytes = static_cast<std::uint32_t>(question.inodes.size() * sizeof(std::uint64_t));
  if (page.bytes > 0) std::memcpy(page.text, question.inodes.data(), page.bytes);
  page.question = static_cast<std::uint32_t>(question.kind);
  page.before = question.before.v;
  page.after = question.after.v;
  set_key(page, question.from);
  return page;
}

Result<compare::Question> question_from(const KeptPage& page) {
  if (page.bytes % sizeof(std::uint64_t) || page.bytes > compare::kMostAsked * sizeof(std::uint64_t))
    return Error(Errc::invalid, "no list of inodes");
  compare::Question question{static_cast<compare::Question::Kind>(page.question), Serial{page.before}, Serial{page.after},
                             TRY(key_of(page)), std::vector<Ino>(page.bytes / sizeof(std::uint64_t))};
  if (page.bytes > 0) std::memcpy(question.inodes.data(), page.text, page.bytes);
  return question;
}

KeptPage to_page(const compare::Answer& answer) {
  KeptPage page;
  INVARIANT(answer.bytes.size() <= sizeof page.text);
  set_key(page, answer.next);
  page.ended = answer.ended;
  page.bytes = static_cast<std::uint32_t>(answer.bytes.size());
  if (page.bytes > 0) std::memcpy(page.text, answer.bytes.data(), page.bytes);
  return page;
}

Result<compare::Answer> answer_from(const KeptPage& page) {
  const auto next = key_of(page);
  if (page.bytes > sizeof page.text || !next.ok()) return Error(Errc::corrupt, "the daemon's answer makes no sense");
  const auto text = std::as_bytes(std::span(page.text)).first(page.bytes);
  return compare::Answer{*next, page.ended != 0, {text.begin(), text.end()}};
}

}  // namespace varve::control

#include "varve/snapshots/kept_damage.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/utf8.h"
#include "compare/paths.h"

namespace varve::tool {

namespace {

using compare::Question;

bool is_damage(const Error& why) { return why.is(Errc::io) || why.is(Errc::corrupt); }

// The inode whose answer cannot be given. Many are asked about at once: then each by itself. None: it is a part of the tree.
std::optional<Ino> culprit(const compare::Ask& ask, const Question& question) {
  if (question.kind == Question::Kind::changes) return std::nullopt;
  if (question.inodes.empty()) return question.from.ino;
  for (const Ino ino : question.inodes) {
    Question one = question;
    one.inodes = {ino};
    if (const auto answer = ask(one); !answer.ok() && is_damage(answer.error())) return ino;
  }
  return std::nullopt;
}

// Empty: no name of it can be read.
std::string path_of(const compare::Ask& ask, Serial snapshot, Ino ino) {
  compare::Paths paths(ask, snapshot);
  if (const auto files = paths.of_files({ino}); files.ok() && files->contains(ino)) return files->at(ino);
  const auto directory = paths.of_directory(ino);
  return directory.ok() ? *directory : "";
}

std::string named(const compare::Ask& ask, const Question& question) {
  const auto ino = culprit(ask, question);
  if (!ino) return "a part of its tree";
  const std::string path = path_of(ask, question.after, *ino);
  return path.empty() ? fmt::format("inode {}", *ino) : printable(path);
}

Error explained(const Error& why, const std::string& what, const std::string& place, const std::string& snapshot) {
  return {why.code(), fmt::format("{}\n  The snapshot '{}' is damaged: {} cannot be read. `varve scrub {}` finds all that is; deleting the "
                                  "snapshot takes the damage away, if no other has it, too.", why.message(), snapshot, what, place)};
}

}  // namespace

compare::Ask telling_of_damage(compare::Ask ask, std::string place, std::string snapshot) {
  using compare::Answer;
  return [ask = std::move(ask), place = std::move(place), snapshot = std::move(snapshot)](const Question& question) -> Result<Answer> {
    auto answer = ask(question);
    if (answer.ok() || !is_damage(answer.error())) return answer;
    return explained(answer.error(), named(ask, question), place, snapshot);
  };
}

}  // namespace varve::tool

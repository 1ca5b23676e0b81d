#include "repair/action.h"

#include <algorithm>

namespace varve::repair {

namespace {

struct Row {
  ActionCode code;
  const char* name;
  Safety safety;
  const char* text;
};

constexpr Row kRows[] = {
#define X(number, name, safety, text) {ActionCode::name, #name, Safety::safety, text},
    VARVE_ACTIONS(X)
#undef X
};

const Row& row_of(ActionCode code) {
  for (const Row& row : kRows)
    if (row.code == code) return row;
  return kRows[0];
}

}  // namespace

const char* name_of(ActionCode code) { return row_of(code).name; }
const char* text_of(ActionCode code) { return row_of(code).text; }
Safety safety_of(ActionCode code) { return row_of(code).safety; }

std::string to_line(const Action& a, const std::string& name) {
  std::string line = fmt::format("R{}", static_cast<unsigned>(a.code));
  if (a.last_ino && a.last_ino != a.ino) line += fmt::format(" inodes {} to {}", a.ino, a.last_ino);
  else if (a.ino) line += fmt::format(" inode {}", a.ino);
  if (!name.empty()) line += fmt::format(" ({})", name);
  line += fmt::format(": {}", text_of(a.code));
  if (!a.entry.empty()) line += fmt::format(": \"{}\"", a.entry);
  if (!a.detail.empty()) line += fmt::format(": {}", a.detail);
  return line;
}

void ActionLog::add(ActionCode code, Ino ino, std::string detail, Ino last_ino) {
  if (++counts_[code] <= kMostPerCode) kept_.push_back({code, ino, last_ino, std::move(detail), {}});
}

void ActionLog::add_entry(ActionCode code, Ino directory, std::string entry, std::string detail) {
  if (++counts_[code] <= kMostPerCode) kept_.push_back({code, directory, {}, std::move(detail), std::move(entry)});
}

std::uint64_t ActionLog::count(ActionCode code) const {
  const auto found = counts_.find(code);
  return found == counts_.end() ? 0 : found->second;
}

std::uint64_t ActionLog::losses() const {
  std::uint64_t sum = 0;
  for (const auto& [code, count] : counts_)
    if (safety_of(code) == Safety::lossy) sum += count;
  return sum;
}

Status demand_safe(const ActionLog& actions, const std::string& device) {
  if (actions.is_safe()) return {};
  const auto lossy = std::ranges::find_if(actions.kept(), [](const Action& a) { return safety_of(a.code) == Safety::lossy; });
  return Error(Errc::needs_fsck, fmt::format("{0}: this repair, which may lose nothing, would now do more than its trial: {1}. It was "
                                             "not done. Perhaps the device can be read only at times: copy it to another one; what is "
                                             "wrong says fsck.varve -n {0}", device, to_line(*lossy)));
}

}  // namespace varve::repair

#include "check/problem.h"

namespace varve::check {

namespace {

struct Row {
  Code code;
  const char* name;
  Severity severity;
  const char* text;
};

constexpr Row kRows[] = {
#define X(number, name, severity, text) {Code::name, #name, Severity::severity, text},
    VARVE_PROBLEMS(X)
#undef X
};

const Row& row_of(Code code) {
  for (const Row& row : kRows)
    if (row.code == code) return row;
  return kRows[0];
}

}  // namespace

const char* name_of(Code code) { return row_of(code).name; }
const char* text_of(Code code) { return row_of(code).text; }
Severity severity_of(Code code) { return row_of(code).severity; }

void ProblemLog::add(Code code, Where where, std::string detail, const std::string& snapshot) {
  ++counts_[code];
  auto& places = places_[code];
  if (places.size() == kMostPerCode) return;
  places.push_back(kept_.size());
  kept_.push_back({.code = code, .where = where, .detail = std::move(detail), .snapshot = snapshot});
}

void ProblemLog::add_block(Code code, Where where, std::uint64_t file_block, std::string detail, const std::string& snapshot) {
  if (const auto places = places_.find(code); places != places_.end()) {
    Problem& last = kept_[places->second.back()];
    const bool follows = last.where.ino == where.ino && last.where.address + last.blocks == where.address &&
                         last.file_block + last.blocks == file_block && last.detail == detail && last.snapshot == snapshot;
    if (follows) {
      ++counts_[code];
      ++last.blocks;
      return;
    }
  }
  const std::size_t before = kept_.size();
  add(code, where, std::move(detail), snapshot);
  if (kept_.size() > before) kept_.back().file_block = file_block;
}

std::uint64_t ProblemLog::kept_blocks(Code code) const {
  std::uint64_t blocks = 0;
  if (const auto places = places_.find(code); places != places_.end())
    for (const std::size_t place : places->second) blocks += kept_[place].blocks;
  return blocks;
}

std::uint64_t ProblemLog::not_kept(Code code) const { return count(code) - kept_blocks(code); }

std::uint64_t ProblemLog::count(Code code) const {
  const auto found = counts_.find(code);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace varve::check

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

void ProblemLog::add(Code code, Where where, std::string detail) {
  if (++counts_[code] <= kMostPerCode) kept_.push_back({code, where, std::move(detail)});
}

std::uint64_t ProblemLog::count(Code code) const {
  const auto found = counts_.find(code);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace varve::check

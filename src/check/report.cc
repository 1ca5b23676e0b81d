#include "check/report.h"

namespace varve::check {

std::uint64_t Report::total(Severity severity) const {
  std::uint64_t sum = 0;
  for (const auto& [code, count] : problems.counts())
    if (severity_of(code) == severity) sum += count;
  return sum;
}

std::string to_line(const Problem& p) {
  static constexpr char kLetters[] = {'N', 'W', 'E'};
  std::string line = fmt::format("{}{}", kLetters[static_cast<unsigned>(severity_of(p.code))], static_cast<unsigned>(p.code));
  if (p.where.address) line += fmt::format(" block {}", p.where.address);
  if (p.where.ino) line += fmt::format(" inode {}", p.where.ino);
  line += fmt::format(": {}", text_of(p.code));
  if (!p.detail.empty()) line += fmt::format(": {}", p.detail);
  return line;
}

}  // namespace varve::check

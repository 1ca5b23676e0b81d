#include "check/report.h"

namespace varve::check {

std::uint64_t Report::total(Severity severity) const {
  std::uint64_t sum = 0;
  for (const auto& [code, count] : problems.counts())
    if (severity_of(code) == severity) sum += count;
  return sum;
}

std::string detail_of(const Problem& p) {
  if (p.code != Code::data_damaged && p.code != Code::data_unreadable) return p.detail;
  const std::string place = p.blocks > 1 ? fmt::format("file blocks {} to {}", p.file_block, p.file_block + p.blocks - 1)
                                         : fmt::format("file block {}", p.file_block);
  const std::string whose = p.snapshot.empty() ? "" : fmt::format("snapshot {}: ", p.snapshot);
  return whose + (p.detail.empty() ? place : place + ": " + p.detail);
}

std::string to_line(const Problem& p, const std::string& name) {
  static constexpr char kLetters[] = {'N', 'W', 'E'};
  std::string line = fmt::format("{}{}", kLetters[static_cast<unsigned>(severity_of(p.code))], static_cast<unsigned>(p.code));
  if (p.where.address && p.blocks > 1) line += fmt::format(" blocks {} to {}", p.where.address, p.where.address + (p.blocks - 1));
  else if (p.where.address) line += fmt::format(" block {}", p.where.address);
  if (p.where.ino) line += fmt::format(" inode {}", p.where.ino);
  if (!name.empty()) line += fmt::format(" ({})", name);
  line += fmt::format(": {}", text_of(p.code));
  const std::string detail = detail_of(p);
  if (!detail.empty()) line += ": " + detail;
  return line;
}

}  // namespace varve::check

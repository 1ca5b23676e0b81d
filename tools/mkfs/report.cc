#include "mkfs/report.h"

#include "base/json_text.h"

namespace varve::mkfs {

namespace {

std::string with_unit(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  unsigned unit = 0;
  for (; value >= 1024; value /= 1024) ++unit;
  return fmt::format("{:.{}f} {}", value, value == static_cast<double>(static_cast<std::uint64_t>(value)) ? 0 : 1,
                     kUnits[unit]);
}

std::string value_text(const Fact& fact) {
  if (const auto* number = std::get_if<std::uint64_t>(&fact.value))
    return fact.is_size ? fmt::format("{} ({} bytes)", with_unit(*number), *number) : fmt::format("{}", *number);
  if (const auto* flag = std::get_if<bool>(&fact.value)) return *flag ? "yes" : "no";
  return std::get<std::string>(fact.value);
}

Fact known(const char* key, const char* label, std::uint64_t value, bool is_size, format::Source source) {
  return {key, value ? label : nullptr, value, is_size, value ? fmt::format(", {}", format::name_of(source)) : ""};
}

}  // namespace

Report report_of(const format::Superblock& s, const std::string& path, bool dry_run) {
  return {dry_run,
          {{"target", "Target", path},
           {"uuid", "UUID", format::uuid_text(s.uuid)},
           {"label", "Label", s.label},
           {"format_version", "Format version", std::uint64_t{s.version}},
           {"size", "Size", s.device_blocks * kBlockSize, true},
           {"segment_size", "Segment size", s.segment_blocks * kBlockSize, true},
           {"segments", "Segments", s.segments},
           {"first_segment_block", "First segment at block", s.first_segment.v},
           {"metadata_blocks", "Metadata blocks", s.live_blocks},
           known("erase_unit", "Erase unit", s.device.erase_blocks * kBlockSize, true, s.device.erase_source),
           {"erase_unit_is", nullptr, std::string(format::name_of(s.device.erase_source))},
           known("streams", "Places written in turn", s.device.streams, false, s.device.streams_source),
           {"streams_are", nullptr, std::string(format::name_of(s.device.streams_source))},
           {"tails", s.tails.kept ? "Bytes beside an inode" : nullptr, s.tails.kept},
           {"dry_run", "Dry run", dry_run}}};
}

void add_findings(Report& report, const Findings& findings) {
  const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  const auto time = [&](std::uint64_t ns) { return fmt::format("{:.3g} ms", 1e3 * seconds(ns)); };
  const std::string took = findings.took_ns ? fmt::format(" ({:.1f} s)", seconds(findings.took_ns)) : "";
  report.facts.push_back({"probe_found", "Probe", findings.outcome, false, took});
  report.facts.push_back({"probe_ns", nullptr, findings.took_ns});
  const format::WritingCosts& costs = findings.costs;
  if (!costs.in_row) return;
  report.facts.push_back({"block_read_ns", nullptr, findings.read_ns});
  report.facts.push_back({"block_in_row_ns", nullptr, std::uint64_t{costs.in_row}});
  report.facts.push_back({"block_scattered_ns", nullptr, std::uint64_t{costs.scattered}});
  report.facts.push_back({nullptr, "A block", fmt::format("read {}, written in a row {}, here and there {}", time(findings.read_ns),
                                                          time(costs.in_row), time(costs.scattered))});
}

std::string to_text(const Report& report) {
  std::string text = report.dry_run ? "Nothing was written. This would be made:\n" : "Varve filesystem made.\n";
  for (const Fact& fact : report.facts) {
    if (!fact.label) continue;
    const std::string value = value_text(fact);
    if (!value.empty() && fact.label != std::string_view("Dry run")) text += fmt::format("  {:<24}{}{}\n", fact.label, value, fact.note);
  }
  return text;
}

std::string to_json(const Report& report) {
  Json json;
  for (const Fact& fact : report.facts)
    if (fact.key) std::visit([&](const auto& value) { json[fact.key] = value; }, fact.value);
  return json_text(json, 2);
}

}  // namespace varve::mkfs

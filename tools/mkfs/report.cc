#include "mkfs/report.h"

#include <nlohmann/json.hpp>

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
           {"dry_run", "Dry run", dry_run}}};
}

std::string to_text(const Report& report) {
  std::string text = report.dry_run ? "Nothing was written. This would be made:\n" : "Varve filesystem made.\n";
  for (const Fact& fact : report.facts) {
    const std::string value = value_text(fact);
    if (!value.empty() && fact.label != std::string_view("Dry run")) text += fmt::format("  {:<24}{}\n", fact.label, value);
  }
  return text;
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json json;
  for (const Fact& fact : report.facts) std::visit([&](const auto& value) { json[fact.key] = value; }, fact.value);
  return json_text(json, 2);
}

}  // namespace varve::mkfs

#include "control/status_json.h"

#include <algorithm>
#include <string>

#include "base/errc.h"
#include "control/status_fields.h"
#include "format/map_record.h"

namespace varve::control {

namespace {

// Segments by the head that filled them.
Json groups_json(const fs::FilesystemStatus& s) {
  Json groups = Json::array();
  for (const fs::GroupCounts& group : s.groups) {
    const Json name = group.group == format::kGroupChain   ? Json("log")
                      : group.group == format::kGroupNodes ? Json("metadata")
                                                           : Json(group.group);
    groups.push_back({{"group", name}, {"segments", group.segments}, {"live_blocks", group.live_blocks}, {"open", group.open}});
  }
  return groups;
}

Json finding_json(const scrub::Finding& finding) {
  Json json{{"kind", name_of(finding.kind)}, {"block", finding.address.v}, {"error", finding.error}};
  if (finding.kind == scrub::Finding::Kind::data) {
    json["inode"] = finding.ino.v;
    json["offset"] = finding.file_block << kBlockShift;
    json["bytes"] = finding.blocks << kBlockShift;
  }
  if (finding.kind == scrub::Finding::Kind::node) {
    json["tree"] = name_of(finding.tree);
    json["level"] = finding.level;
    if (finding.tree == format::TreeId::inode_file && finding.first != finding.bound) {
      json["first_inode"] = finding.first.ino.v;
      json["last_inode"] = finding.bound.ino.v;
    }
  }
  if (finding.is_in_snapshot()) {
    json["snapshot"] = finding.snapshot;
    json["snapshot_serial"] = finding.snapshot_serial.v;
    json["snapshots"] = finding.snapshots;
  }
  return json;
}

Json wait_json(const fs::FilesystemStatus& s, operation::WaitCause cause) {
  const operation::WaitCount& count = s.waits[static_cast<std::size_t>(cause)];
  return {{"times", count.times}, {"total_us", count.total_ns / 1000}, {"longest_us", count.longest_ns / 1000}};
}

Json rules_json(const fs::FilesystemStatus& s) {
  Json rules = Json::array();
  for (const auto& [age, spacing] : s.protection.rules) rules.push_back({{"age_seconds", age}, {"spacing_seconds", spacing}});
  return rules;
}

struct Maker {
  std::string_view section, key;
  Json (*value)(const fs::FilesystemStatus& s);
};
constexpr Maker kMakers[] = {
#define COUNTER(section, key, ...) {section, #key, [](const fs::FilesystemStatus& s) { return Json(s.key); }},
#define FIELD(section, key, value, ...) {section, #key, [](const fs::FilesystemStatus& s) { return ((void)s, Json(value)); }},
#define TOLD(...)
    VARVE_STATUS_FIELDS(COUNTER, FIELD, TOLD)
#undef COUNTER
#undef FIELD
#undef TOLD
};

Json& place_of(Json& status, std::string_view section) {
  if (section.empty()) return status;
  const auto dot = std::min(section.find('.'), section.size());
  Json& outer = status[std::string(section.substr(0, dot))];
  return dot == section.size() ? outer : outer[std::string(section.substr(dot + 1))];
}

// One section, of a status of which nothing else is known.
Json only(std::string_view section, const fs::FilesystemStatus& s) {
  Json json;
  for (const Maker& maker : kMakers)
    if (maker.section == section) json[std::string(maker.key)] = maker.value(s);
  return json;
}

}  // namespace

Json to_json(const format::LifetimeCounters& counters) {
  fs::FilesystemStatus status;
  status.lifetime = counters;
  return only("lifetime", status);
}

Json to_json(const format::ErrorEvent& event) {
  if (event.code == 0) return nullptr;
  return {{"seconds", event.when.seconds},
          {"error",
           event.code <= static_cast<std::uint32_t>(Errc::shut_down) ? name_of(static_cast<Errc>(event.code)) : "?"},
          {"block", event.address.v},
          {"inode", event.ino.v}};
}

Json to_json(const scrub::State& state) {
  fs::FilesystemStatus status;
  status.scrub = state;
  Json json = only("scrub", status);
  auto& findings = json["findings"] = Json::array();
  for (const scrub::Finding& finding : state.findings) findings.push_back(finding_json(finding));
  return json;
}

Json to_json(const format::DeviceProfile& device) {
  fs::FilesystemStatus status;
  status.device_profile = device;
  return only("device_profile", status);
}

Json to_json(const fs::FilesystemStatus& s) {
  Json json;
  for (const Maker& maker : kMakers) place_of(json, maker.section)[std::string(maker.key)] = maker.value(s);
  return json;
}

// --- what there is of a status ---

const Json& section_of(const Json& status, std::string_view section) {
  static const Json kNothing = Json::object();
  if (section.empty()) return status;
  const auto dot = std::min(section.find('.'), section.size());
  const auto found = status.find(std::string(section.substr(0, dot)));
  if (found == status.end() || !found->is_object()) return kNothing;
  return dot == section.size() ? *found : section_of(*found, section.substr(dot + 1));
}

const Json& value_of(const Json& status, const Field& field) {
  static const Json kNull;
  const Json& section = section_of(status, field.section);
  const auto found = section.find(std::string(field.key));
  return found == section.end() ? kNull : *found;
}

std::uint64_t number_of(const Json& status, FieldPath path) {
  const Json& value = value_of(status, *path);
  return value.is_number() ? value.get<std::uint64_t>() : 0;
}

std::uint64_t bytes_of(const Json& status, FieldPath path) { return number_of(status, path) << (path->is_in_blocks() ? kBlockShift : 0); }

double factor_of(const Json& status, FieldPath path) {
  const Json& value = value_of(status, *path);
  return value.is_number() ? value.get<double>() : 0;
}

std::string words_of(const Json& status, FieldPath path) {
  const Json& value = value_of(status, *path);
  return value.is_string() ? value.get<std::string>() : "";
}

bool flag_of(const Json& status, FieldPath path) { return value_of(status, *path) == true; }

}  // namespace varve::control

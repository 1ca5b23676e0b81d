// The table of a status' fields (fs/status_fields.h) for programs that show a status.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json_text.h"
#include "fs/status_fields.h"

namespace varve::control {

enum class Unit : std::uint8_t {
  words,
  flag,
  count,
  bytes,
  blocks,   // of 4 KiB
  share,    // blocks of the device, which are also shown as a part of it
  seconds,
  time,     // seconds since 1970; 0: never
  factor,
  wait,     // how often, how long together, and the longest one, in µs
  event,    // an error
  list,     // several values
};

struct Metric {
  enum class Kind : std::uint8_t { none, counter, gauge } kind = Kind::none;
  const char* name = "";  // without _total
};
inline constexpr Metric none;
constexpr Metric counter(const char* name) { return {Metric::Kind::counter, name}; }
constexpr Metric gauge(const char* name) { return {Metric::Kind::gauge, name}; }

struct Field {
  std::string_view section;  // "space.segments"; empty: not in one
  std::string_view key;
  Unit unit;
  const char* label;  // as text; empty: it is not shown, or in a way of its own
  Metric metric;
  const char* meaning;  // a sentence, also of the metric

  constexpr bool is_in_blocks() const { return unit == Unit::blocks || unit == Unit::share; }
};

inline constexpr Field kFields[] = {
#define COUNTER(section, key, unit, label, metric, meaning) {section, #key, Unit::unit, label, metric, meaning},
#define FIELD(section, key, value, unit, label, metric, meaning) {section, #key, Unit::unit, label, metric, meaning},
    VARVE_STATUS_FIELDS(COUNTER, FIELD, COUNTER)
#undef COUNTER
#undef FIELD
};

// The field "space.live_blocks" or "uptime_seconds": a name that is not in the table does not compile.
class FieldPath {
 public:
  consteval FieldPath(const char* path) {  // NOLINT(google-explicit-constructor): it stands for the name
    const std::string_view whole(path);
    const auto dot = whole.rfind('.');
    const std::string_view section = dot == whole.npos ? "" : whole.substr(0, dot), key = whole.substr(dot == whole.npos ? 0 : dot + 1);
    for (const Field& field : kFields)
      if (field.section == section && field.key == key) field_ = &field;
    if (!field_) throw "no such field of a status";
  }
  const Field& operator*() const { return *field_; }
  const Field* operator->() const { return field_; }

 private:
  const Field* field_ = nullptr;
};

// These read a status, which may be of another version. A field that it does not have is an empty object, null, 0 or "".
const Json& section_of(const Json& status, std::string_view section);
const Json& value_of(const Json& status, const Field& field);
std::uint64_t number_of(const Json& status, FieldPath path);
std::uint64_t bytes_of(const Json& status, FieldPath path);  // also of blocks
double factor_of(const Json& status, FieldPath path);
std::string words_of(const Json& status, FieldPath path);
bool flag_of(const Json& status, FieldPath path);

}  // namespace varve::control

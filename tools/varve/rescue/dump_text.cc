#include <fmt/format.h>

#include "base/json_text.h"
#include "varve/rescue/dump.h"

namespace varve::tool {

namespace {

bool is_flat(const Json& json) {
  for (const auto& value : json)
    if (value.is_structured() && !value.empty()) return false;
  return true;
}

std::string value_text(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

// An object without further structure fits on a line: "key value  key value".
std::string line_of(const Json& json) {
  if (!json.is_object()) return value_text(json);
  std::string text;
  for (const auto& [key, value] : json.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", key, value_text(value));
  return text;
}

void show(const Json& json, std::size_t indent, std::string& out);

void show_member(const std::string& key, const Json& value, std::size_t indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += fmt::format("{:{}}{:<20} {}\n", "", indent, key, value_text(value));
  } else if (value.is_object() && is_flat(value)) {
    out += fmt::format("{:{}}{:<20} {}\n", "", indent, key, line_of(value));
  } else {
    out += fmt::format("{:{}}{}\n", "", indent, key);
    show(value, indent + 2, out);
  }
}

void show(const Json& json, std::size_t indent, std::string& out) {
  if (json.is_array()) {
    for (const auto& element : json) {
      if (element.is_structured() && !is_flat(element)) {
        show(element, indent, out);
        out += "\n";
      } else {
        out += fmt::format("{:{}}{}\n", "", indent, line_of(element));
      }
    }
    return;
  }
  for (const auto& [key, value] : json.items()) show_member(key, value, indent, out);
}

}  // namespace

std::string dump_text(const Json& json) {
  if (!json.is_structured()) return value_text(json) + "\n";
  std::string out;
  show(json, 0, out);
  return out;
}

}  // namespace varve::tool

#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace varve::bench {

namespace {
constexpr std::size_t kNarrowest = 9;

std::string text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.3f}", value.get<double>());
  if (value.is_array()) return "...";  // for the plot
  return value.is_null() ? "-" : value.dump();
}

// Words are left, numbers right; the first columns name the row.
void print(std::size_t at, const std::string& text) {
  if (at < 2) fmt::print("{:<28} ", text);
  else fmt::print("{:>{}} ", text, std::max(kNarrowest, text.size()));
}
}  // namespace

Table::Table(std::string title, std::vector<std::string> columns) : title_(std::move(title)), columns_(std::move(columns)) {
  fmt::print("\n{}\n", title_);
  for (std::size_t i = 0; i < columns_.size(); ++i) print(i, columns_[i]);
  fmt::print("\n");
  std::fflush(stdout);
}

void Table::add(std::vector<Json> values) {
  Json row;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string shown = text(values.at(i));
    if (i < 2) print(i, shown);
    else fmt::print("{:>{}} ", shown, std::max(kNarrowest, columns_[i].size()));
    row[columns_[i]] = std::move(values[i]);
  }
  fmt::print("\n");
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

Json Table::json() const { return {{"title", title_}, {"rows", rows_}}; }

}  // namespace varve::bench

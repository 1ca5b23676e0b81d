// Results of a bench: printed as they come, and kept for bench/cleaning/plot_published.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace varve::bench {

class Table {
 public:
  Table(std::string title, std::vector<std::string> columns);
  // One value for each column; printed at once.
  void add(std::vector<nlohmann::ordered_json> values);
  nlohmann::ordered_json json() const;  // {"title": …, "rows": [{column: value, …}, …]}

 private:
  const std::string title_;
  const std::vector<std::string> columns_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

}  // namespace varve::bench

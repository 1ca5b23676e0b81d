// Results of a bench: printed as they come, and kept for bench/cleaning/plot_published.
#pragma once

#include <string>
#include <vector>

#include "base/json_text.h"

namespace varve::bench {

class Table {
 public:
  Table(std::string title, std::vector<std::string> columns);
  // One value for each column; printed at once.
  void add(std::vector<Json> values);
  Json json() const;  // {"title": …, "rows": [{column: value, …}, …]}

 private:
  const std::string title_;
  const std::vector<std::string> columns_;
  Json rows_ = Json::array();
};

}  // namespace varve::bench

// How a policy is named: "greedy", or "segregation:window=65536:seed=oldest" with parameters. Used by mount options,
// `varve tune`, tests and benches.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace varve::cleaner {

class Parameters {
 public:
  // Errc::invalid: not name[:key=value]…
  static Result<Parameters> parse(std::string_view spelling);

  const std::string& name() const { return name_; }
  const std::string& spelling() const { return spelling_; }

  // The value, or `otherwise` where none is given. Values that are no number, or outside [least, most], and names that
  // nobody asks for are found by check().
  double number(std::string_view key, double otherwise, double least, double most) const;
  // One of `allowed`; the first of them where none is given.
  std::string_view word(std::string_view key, std::initializer_list<std::string_view> allowed) const;

  // After the plugin was made: Errc::invalid says what was wrong.
  Status check() const;

 private:
  std::string spelling_, name_;
  std::map<std::string, std::string, std::less<>> values_;
  mutable std::set<std::string, std::less<>> asked_;
  mutable std::string problem_;
};

}  // namespace varve::cleaner

// A file or a directory of a mounted filesystem through time, as its folder of snapshots shows it to this user.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "varve/snapshots/snapshot_choice.h"
#include "varve/steps.h"

namespace varve::tool {

// Where it is, or was: directories above may have gone, and the last name may be one of a symbolic link.
Result<std::string> place_of(const std::string& path);
// The mount that has this place. Errc::not_found.
Result<std::string> mount_of(const std::string& place);

class PastView {
 public:
  // Errc::unsupported: the mount shows no folder of snapshots.
  static Result<PastView> open(const std::string& path);

  const std::string& place() const { return place_; }                             // as it is now
  const std::vector<ChosenSnapshot>& snapshots() const { return snapshots_; }     // oldest first
  std::string in(const ChosenSnapshot& snapshot) const;                           // the same place in this one
  bool is_there(const ChosenSnapshot& snapshot) const;                            // an automatic one goes meanwhile

 private:
  std::string place_, folder_, inside_;
  std::vector<ChosenSnapshot> snapshots_;
};

// Before each of `all` snapshots is looked into.
Status look_on(Steps& steps, std::size_t looked, std::size_t all);

}  // namespace varve::tool

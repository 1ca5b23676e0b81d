// A file or a directory of a mounted filesystem through time, as its folder of snapshots shows it to this user.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/json_text.h"
#include "base/result.h"
#include "varve/snapshots/named_path.h"
#include "varve/snapshots/snapshot_choice.h"
#include "varve/steps.h"

namespace varve::tool {

class PastView {
 public:
  enum class Kind : std::uint8_t { any, directory };

  // If a link stands there now and a snapshot has a directory in its place, the directory is meant. Otherwise Kind::directory follows a
  // link at the end. Errc::unsupported: the folder of snapshots cannot be seen here.
  static Result<PastView> open(const std::string& path, Kind kind = Kind::any);

  const std::string& place() const { return place_; }                          // as it is now
  const std::vector<ChosenSnapshot>& snapshots() const { return snapshots_; }  // oldest first
  std::string in(const ChosenSnapshot& snapshot) const;                        // the same place in this one
  bool is_there(const ChosenSnapshot& snapshot) const;                         // an automatic one goes meanwhile

  // None: it is not there. An error: that cannot be seen.
  Result<std::optional<struct stat>> status_now() const;
  Result<std::optional<struct stat>> status_in(const ChosenSnapshot& snapshot) const;

 private:
  Status open_folder(const std::string& whole);
  bool some_snapshot_has(const std::string& inside, Kind kind) const;
  Result<bool> is_link_now() const;

  std::string place_, folder_;
  std::string inside_;  // from the root of the filesystem on
  bool is_direct_ = false;  // a link above stands there now
  Descriptor root_, kept_;
  std::vector<ChosenSnapshot> snapshots_;
};

// Snapshots that this user cannot look into, while others are told of.
class Unseen {
 public:
  void add(const ChosenSnapshot& snapshot, const Error& why);
  bool any() const { return !all_.empty(); }
  Json json() const { return all_; }
  // Names the last one.
  Status status(const std::string& place) const;

 private:
  Json all_ = Json::array();
  std::optional<Error> last_;
};

// Before each of `all` snapshots is looked into.
Status look_on(Steps& steps, std::size_t looked, std::size_t all);

}  // namespace varve::tool

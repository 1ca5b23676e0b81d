// Talking to the daemon of a mount, through the mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_text.h"
#include "base/result.h"
#include "compare/question.h"
#include "control/control.h"
#include "snapshots/snapshot_change.h"

namespace varve::tool {

class MountClient {
 public:
  // Any directory of a mount. Errc::unsupported: not one of Varve; Errc::io: its daemon is gone.
  static Result<MountClient> open(const std::string& directory);
  MountClient(MountClient&& other) noexcept;
  MountClient& operator=(MountClient&&) = delete;
  ~MountClient();

  Result<Json> status();
  Result<Json> scrub_report();
  Status scrub(const control::ScrubCommand& command);
  Result<Json> clean_report();
  Status clean(const Json& request);  // control/request_json.h; errors in the daemon's words
  Status stop_clean();
  Result<Json> resize_report();
  Status resize(const Json& request);  // control/request_json.h; errors in the daemon's words
  Status stop_resize();
  Result<Json> snapshots();  // control/request_json.h
  Result<std::optional<Serial>> find_snapshot(const std::string& name);
  Status change_snapshot(const snapshots::SnapshotChange& change);        // errors in the daemon's words; any thread
  // Errc::stale: it has gone; Errc::no_space. control.h, SnapshotHold; a daemon from before holds nothing, and no error is made of it.
  Status hold_snapshot(Serial snapshot, std::uint64_t reader, std::uint64_t seconds);  // any thread
  Result<compare::Answer> ask(const compare::Question& question);  // about snapshots
  Result<Json> history();  // control/request_json.h
  Status checkpoint();           // returns when it is settled
  // Returns how many bytes of this range of the device were trimmed: whole segments that are free within it.
  Result<std::uint64_t> trim(std::uint64_t start, std::uint64_t length);
  Status tune(const std::string& setting);  // "name=value"; Errc::invalid with the daemon's words

 private:
  MountClient(int fd, std::string directory) : fd_(fd), directory_(std::move(directory)) {}
  Result<Json> document(unsigned long number, const char* what);
  Error error(const char* action) const;

  int fd_;
  std::string directory_;
};

// Opened, asked and closed: a tool that watches a mount must not keep it busy between two looks.
Result<Json> mount_status(const std::string& directory);

}  // namespace varve::tool

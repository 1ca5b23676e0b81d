// Snapshots that a tool looks into: of a mounted filesystem, through its daemon, or of an image that nobody has mounted.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include "base/json_text.h"
#include "compare/question.h"

namespace varve::tool {

class SnapshotSource {
 public:
  // What is mounted, or an image or a device. `wants_now`: now() will be asked for.
  static Result<std::unique_ptr<SnapshotSource>> open(const std::string& path, bool wants_now);
  virtual ~SnapshotSource() = default;

  virtual const compare::Ask& ask() = 0;
  virtual Result<std::string> uuid() = 0;  // of the filesystem
  virtual Result<Serial> serial_of(const std::string& name) = 0;  // Errc::not_found
  virtual Result<bool> has(Serial serial) = 0;
  virtual Result<std::uint64_t> data_bytes(Serial serial) = 0;  // of its files, shared or not; 0: not known
  virtual Result<Json> list() = 0;  // control/request_json.h
  // If it is an automatic one it stays until close(), or until this tool has ended. Errc::no_space: there is no room to hold it.
  virtual Status hold(Serial) { return {}; }
  // For an hour, so that another attempt finds it. False: nothing is held.
  virtual bool hold_on() { return false; }
  // The state of this moment, kept until close(). Of an image that is only read it is kept in memory, with what a recovery changes.
  virtual Result<Serial> now() = 0;
  // The state of this moment without keeping it (compare::kNewest), for where there is no room to keep it. What others change while
  // it is asked about may be in an answer or not.
  virtual Result<Serial> newest() = 0;
  // What it held is room again. Questions about it are answered no more, others are.
  virtual Status forget_now() = 0;
  virtual Status close() = 0;
};

// now(), or newest() where there is no room to keep it: `err` tells that.
Result<Serial> now_or_newest(SnapshotSource& source, std::ostream& err);
// The name of the snapshot that is meant by its name or a time (snapshot_choice.h). `err` tells which one a time means. Errc::not_found.
Result<std::string> name_of_snapshot(SnapshotSource& source, const std::string& path, const std::string& which, std::ostream& err);
// hold(), for what only reads: where there is no room for that it goes on, and says so.
Status hold_if_it_fits(SnapshotSource& source, Serial snapshot, std::ostream& err);

}  // namespace varve::tool

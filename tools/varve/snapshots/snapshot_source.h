// Snapshots that a tool looks into: of a mounted filesystem, through its daemon, or of an image that nobody has mounted.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "compare/question.h"
#include "varve/snapshots/successor.h"
#include "varve/volume/volume.h"

namespace varve::tool {

class SnapshotSource {
 public:
  // What is mounted, or an image or a device. `wants_now`: now() will be asked for.
  static Result<std::unique_ptr<SnapshotSource>> open(const std::string& path, bool wants_now);
  ~SnapshotSource();
  SnapshotSource(const SnapshotSource&) = delete;
  SnapshotSource& operator=(const SnapshotSource&) = delete;

  const compare::Ask& ask() { return ask_; }
  Result<std::string> uuid();  // of the filesystem
  Result<Serial> serial_of(const std::string& name);  // Errc::not_found
  Result<bool> has(Serial serial);
  Result<std::uint64_t> data_bytes(Serial serial);  // of its files, shared or not; 0: not known
  Result<Json> list() { return volume_.snapshots(); }  // control/request_json.h
  // If it is an automatic one of a mount it stays until close(), or until this tool has ended. Errc::no_space: there is no room to hold it.
  Status hold(Serial serial);
  // For an hour, so that another attempt finds it. False: nothing is held.
  bool hold_on();
  // The state of this moment, kept until close(). Of an image that is only read it is kept in memory, with what a recovery changes.
  Result<Serial> now();
  // The state of this moment without keeping it (compare::kNewest), for where there is no room to keep it. What others change while
  // it is asked about may be in an answer or not.
  Result<Serial> newest();
  // What it held is room again. Questions about it are answered no more, others are.
  Status forget_now();
  Status close();

 private:
  SnapshotSource(Volume volume, std::string place);
  Status change_now(snapshots::SnapshotChange::Kind kind);

  Volume volume_;
  const std::string place_;  // for messages: of a mount as the user named it
  const compare::Ask ask_;
  const std::uint64_t reader_;
  std::string now_;  // name of the snapshot that goes again
  std::unique_ptr<Successor> successor_;
  std::vector<Serial> held_;
  std::vector<std::unique_ptr<Successor>> holders_;  // one for each of these
};

// now(), or newest() where there is no room to keep it: `err` tells that.
Result<Serial> now_or_newest(SnapshotSource& source, std::ostream& err);
// The name of the snapshot that is meant by its name or a time (snapshot_choice.h). `err` tells which one a time means. Errc::not_found.
Result<std::string> name_of_snapshot(SnapshotSource& source, const std::string& path, const std::string& which, std::ostream& err);
// hold(), for what only reads: where there is no room for that it goes on, and says so.
Status hold_if_it_fits(SnapshotSource& source, Serial snapshot, std::ostream& err);

}  // namespace varve::tool

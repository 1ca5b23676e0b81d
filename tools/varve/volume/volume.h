// A filesystem that a tool asks (control/requests.h), mounted or not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/json_text.h"
#include "base/result.h"
#include "compare/question.h"
#include "control/place.h"
#include "control/requests.h"
#include "snapshots/snapshot_change.h"

namespace varve::tool {

class Volume {
 public:
  enum class Use : std::uint8_t {
    looks,    // an image is not written, not even by a recovery
    changes,
    trial,    // changes, which a device in memory takes
  };
  // `path`: any place where it is mounted, or a device or image, which this program mounts for itself. It has the lease then,
  // in the name of `program`, as "varve resize". A mount is opened anew for each question, which must not keep it busy.
  // Errc::in_use: somebody else has the image.
  static Result<Volume> open(const std::string& path, const std::string& program, Use use);
  static Result<Volume> open(const control::Place& place, const std::string& program, Use use);  // the same, found already
  static Result<Volume> of_image(const std::string& device, const std::string& program, Use use);
  // Any directory of a mount, which is busy for as long as this lives. Errc::io: its daemon is gone.
  static Result<Volume> of_mount(const std::string& directory);

  bool is_mounted() const { return is_mounted_; }
  const std::string& name() const { return name_; }  // its directory, or its device: for messages

  // Any thread. Errors are in words, and name the place. Errc::unsupported: not a filesystem of Varve, or its daemon is too old.
  Result<control::Answer> ask(const control::Request& request);
  Result<Json> ask(const std::string& what, Json arguments = Json::object());
  Status tell(const std::string& what, Json arguments = Json::object());  // the same, where nothing is answered
  // Ends an image cleanly, and gives the lease back; what is unfinished is left as after a stop.
  Status close() { return side_->close(); }

  Result<Json> status() { return ask("status"); }
  Result<Json> snapshots() { return ask("snapshot_list"); }
  Result<std::optional<Serial>> find_snapshot(const std::string& name);
  Result<Json> find_snapshot(Serial serial);  // as in snapshots(); null: there is none
  Status change_snapshot(const snapshots::SnapshotChange& change);
  Status hold_snapshot(Serial snapshot, std::uint64_t reader, std::uint64_t seconds);  // Errc::stale: it has gone; Errc::no_space
  Result<compare::Answer> compare(const compare::Question& question);
  Result<Ino> find(const std::string& path) { return side_->find(path); }  // a file or directory; of an image: a path in it
  Status checkpoint() { return tell("checkpoint"); }  // returns when it is settled
  Status tune(const std::string& setting);            // "name=value"
  // Trims whole segments of a mount that are free within this range of the device. Returns how many bytes they have.
  Result<std::uint64_t> trim(std::uint64_t start, std::uint64_t length);

  class Side {
   public:
    virtual ~Side() = default;
    virtual Result<control::Answer> ask(const control::Request& request) = 0;
    virtual Status close() { return {}; }
    virtual Result<Ino> find(const std::string& path) = 0;
  };

 private:
  Volume(std::unique_ptr<Side> side, std::string name, bool is_mounted)
      : side_(std::move(side)), name_(std::move(name)), is_mounted_(is_mounted) {}

  std::unique_ptr<Side> side_;
  std::string name_;
  bool is_mounted_;
};

// Opened, asked and closed: a tool that watches a mount must not keep it busy between two looks.
Result<Json> mount_status(const std::string& directory);

}  // namespace varve::tool

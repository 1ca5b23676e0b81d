// Where `varve receive` receives: a directory of a mounted Varve filesystem, and the snapshot that is made there in the end.
//
// Its mark (send/mark.h) says "keeping", the sender's snapshot and a name before that snapshot is made, and the same without
// that word after, with the serial of what was made. So a crash in between is found by the next receive.
#pragma once

#include <optional>
#include <string>

#include "send/receiver.h"
#include "varve/volume/volume.h"

namespace varve::tool {

class ReceiveTarget {
 public:
  // `directory`: absolute, in what is mounted at `mount`; `name`: of the snapshot that comes.
  ReceiveTarget(Volume client, std::string directory, std::string mount, std::string name)
      : client_(std::move(client)), directory_(std::move(directory)), mount_(std::move(mount)), name_(std::move(name)) {}

  // Makes the snapshot of what was received as a whole before a crash, if there is such. Was it this stream?
  Result<bool> keep_what_was_left(const send::Begin& begin);

  // What an earlier receive of this stream has left; none: the directory is what the stream begins with.
  Result<std::optional<send::Interrupted>> check(const send::Begin& begin, const send::Receiver& receiver);

  // All of it is there.
  Status keep(const send::Begin& begin);

  // The snapshot that a directory has received last, as the sender calls it. Errc::not_found: there is none, or it has been deleted here.
  static Result<std::string> last_of(const std::string& directory);

 private:
  Status make_snapshot(const std::string& name);
  Status note_made(const send::State& sent, const std::string& name);
  Status check_name();
  Status check_base(const send::State& base);
  Status check_empty();
  Status check_unchanged(const std::string& name) const;

  Volume client_;
  const std::string directory_, mount_, name_;
};

}  // namespace varve::tool

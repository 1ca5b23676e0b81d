// Makes a stream of what differs between two snapshots.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compare/difference.h"
#include "compare/paths.h"
#include "compare/question.h"
#include "send/file_sender.h"
#include "send/sent.h"
#include "send/stream.h"

namespace varve::send {

class Sender {
 public:
  Sender(const compare::Ask& ask, Serial before, Serial after, Sink sink)
      : ask_(ask), before_(before), after_(after), former_(ask_, before), present_(ask_, after), out_(std::move(sink)),
        files_(ask_, after, out_) {}

  Result<Sent> send(const Begin& begin);

 private:
  using Inodes = std::map<Ino, compare::InodeChange>;
  struct Placed {
    std::string path;
    Ino ino;
    const compare::InodeChange* change = nullptr;
  };

  Status look();                   // what has changed, and where it is
  Status find_paths();
  Status check_is_orphan(Ino ino);
  Status send_detached();
  Status send_made();
  Status send_attached();
  Status attach(const Placed& inode);
  Status send_contents();
  Status send_content(const Placed& inode);
  Status find_capable();
  Status send_attributes();
  Status send_finish(const Placed& inode);
  bool waits_in_staging(const compare::InodeChange& change) const;

  const compare::Ask& ask_;
  const Serial before_, after_;
  compare::Paths former_, present_;
  StreamWriter out_;
  FileSender files_;
  Inodes inodes_;
  std::vector<Placed> placed_;          // what is there in the new state and has changed
  std::map<Ino, std::string> kept_;     // of files that get one more name: one that they have had and keep
  std::set<Ino> capable_;               // files that have capabilities, and lose them on the other side
  Sent sent_;
};

}  // namespace varve::send

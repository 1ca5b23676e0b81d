// Makes a stream of what differs between two snapshots, or of all that one has.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compare/difference.h"
#include "compare/paths.h"
#include "compare/question.h"
#include "send/stream.h"

namespace varve::send {

// This attribute of the directory that receives says what it has received. It is no part of a stream.
inline constexpr std::string_view kReceivedAttribute = "trusted.varve.received";

struct Sent {
  std::uint64_t inodes = 0;      // that are new, gone or changed
  std::uint64_t data_bytes = 0;
};

class Sender {
 public:
  // `before`: none: everything.
  Sender(const compare::Ask& ask, Serial before, Serial after, Sink sink)
      : ask_(ask), before_(before), after_(after), former_(ask_, before), present_(ask_, after), out_(std::move(sink)) {}

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
  Status send_detached();
  Status send_made();
  Status send_attached();
  Status attach(const Placed& inode);
  Status send_contents();
  Status send_content(const Placed& inode);
  Status send_run(Ino ino, const compare::BlockRun& run, std::uint64_t size);
  Status send_data(Ino ino, std::uint64_t from, std::uint64_t to);
  Status send_attributes();
  Status send_finish(const Placed& inode);
  bool waits_in_staging(const compare::InodeChange& change) const;

  const compare::Ask& ask_;
  const Serial before_, after_;
  compare::Paths former_, present_;
  StreamWriter out_;
  Inodes inodes_;
  std::vector<Placed> placed_;          // what is there in the new state and has changed
  std::map<Ino, std::string> kept_;     // of files that get one more name: one that they have had and keep
  Sent sent_;
};

}  // namespace varve::send

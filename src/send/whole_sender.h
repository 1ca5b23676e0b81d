// Makes a stream of all that a snapshot has: a walk of its directories, with many files in each question.
//
// Memory does not grow with the number of files, but for those with several names: about a hundred bytes for each of these until its last
// name has come.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "compare/entries.h"
#include "compare/kept_file.h"
#include "compare/question.h"
#include "send/file_sender.h"
#include "send/sent.h"
#include "send/stream.h"

namespace varve::send {

class WholeSender {
 public:
  WholeSender(const compare::Ask& ask, Serial snapshot, Sink sink)
      : ask_(ask), snapshot_(snapshot), out_(std::move(sink)), files_(ask_, snapshot, out_) {}

  Result<Sent> send(const Begin& begin);

 private:
  // A directory on the way down.
  struct Level {
    Ino directory;
    std::string path;  // without a slash at its end: the root's is empty
    std::uint64_t cookie = 0;  // everything before it has been sent, but for
    std::deque<compare::Entries::Entry> waiting;  // these directories
    bool ended = false;
  };
  struct Linked {
    std::string path;
    std::uint32_t left = 0;  // names that are to come
  };

  Status enter(const compare::Entries::Entry& entry);
  Status leave(const Level& level);
  Status send_page(Level& level);
  Status send_file(const std::string& path, const compare::KeptFile& file);
  Status send_link(Linked& linked, Ino ino, const std::string& path);

  const compare::Ask& ask_;
  const Serial snapshot_;
  StreamWriter out_;
  FileSender files_;
  std::vector<Level> levels_;
  std::map<Ino, Linked> linked_;
  Sent sent_;
};

}  // namespace varve::send

// The records about one file of a snapshot: its contents and its attributes.
#pragma once

#include <string>

#include "compare/difference.h"
#include "compare/kept_file.h"
#include "compare/question.h"
#include "send/stream.h"

namespace varve::send {

// Where a part ends that has become a hole; at or before its beginning: there is nothing to do. Behind the end of the file there is nothing
// but blocks that were set aside.
std::uint64_t end_of_hole(const compare::BlockRun& run, std::uint64_t size);
// A file that becomes smaller loses what is set aside behind its end, also where both sides have it: adds all of that.
Status add_room_behind(const compare::Ask& ask, Serial snapshot, Ino ino, std::uint64_t size, std::vector<compare::BlockRun>& runs);

class FileSender {
 public:
  FileSender(const compare::Ask& ask, Serial snapshot, StreamWriter& out) : ask_(ask), snapshot_(snapshot), out_(out) {}

  // These runs of a file. `data`: what KeptFile says of it, for all that is data in `runs`; or none, and it is asked for.
  Status send_contents(Ino ino, const std::string& path, std::uint64_t size, const std::vector<compare::BlockRun>& runs,
                       std::span<const std::byte> data = {});
  // `xattrs`: none: as in the base.
  Status send_attributes(const std::string& path, const format::Attributes& attributes,
                         std::optional<std::vector<format::Xattr>> xattrs);
  std::uint64_t data_bytes() const { return data_bytes_; }

 private:
  Status send_data(Ino ino, std::uint64_t from, std::uint64_t to, std::span<const std::byte> known);
  Result<Bytes> ask_data(Ino ino, std::uint64_t from, std::uint64_t length);

  const compare::Ask& ask_;
  const Serial snapshot_;
  StreamWriter& out_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace varve::send

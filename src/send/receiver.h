// Carries a stream out in a directory of this machine.
//
// The stream is believed to be what its sender wants, and nothing more: it reaches no file outside of the directory, whatever it says.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "send/stream.h"

namespace varve::send {

struct Received {
  std::uint64_t records = 0;
  std::uint64_t data_bytes = 0;
};

class Receiver {
 public:
  // The directory has what the stream's base has; without a base it is empty.
  static Result<Receiver> open(const std::string& directory);

  // Until the stream has ended. After an error the directory is neither what it was nor what it should be.
  Result<Received> receive(StreamReader& stream);

 private:
  // Where a path leads: the directory it is in, and the name there.
  struct Place {
    int directory = -1;
    std::string name;
  };

  explicit Receiver(Descriptor root, std::string directory) : root_(std::move(root)), directory_(std::move(directory)) {}
  Status prepare();
  Status tidy();
  Status apply(const Detach& detach);
  Status apply(const Make& make);
  Status apply(const Attach& attach);
  Status apply(const Open& open);
  Status apply(const Data& data);
  Status apply(const Range& range);
  Status apply(const Finish& finish);
  Status set_attributes(const Finish& finish, const Descriptor& file);
  Status set_xattrs(const Finish& finish, const Descriptor& file);
  Status set_flags(const Finish& finish, const Place& place);
  Result<Place> place_of(const std::string& path);
  Error failed(const char* action, const std::string& path) const;

  Descriptor root_;
  const std::string directory_;
  Descriptor staging_;
  bool attached_ = false;       // since then the staging directory is needed no more, and has been removed
  std::string parent_path_;     // of the directory that is open
  Descriptor parent_;
  std::string open_path_;
  Descriptor open_;
  Received received_;
};

}  // namespace varve::send

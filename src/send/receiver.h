// Carries a stream out in a directory of this machine.
//
// The stream is believed to be what its sender wants, and nothing more: it reaches no file outside of the directory, whatever it says.
// What was interrupted can go on, with the same stream or with one that begins where it was (mark.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "send/mark.h"
#include "send/stream.h"

namespace varve::send {

struct Received {
  std::uint64_t records = 0;  // that were carried out, not those from before an interruption
  std::uint64_t data_bytes = 0;
};

class Receiver {
 public:
  // How many records may have to be done once more, and how much data they may have.
  static constexpr std::uint64_t kStep = 1000, kStepBytes = 8u << 20;

  // The directory has what the stream's base has; without a base it is empty. Or it is what an interrupted receive has left.
  static Result<Receiver> open(const std::string& directory, std::uint64_t step = kStep);

  // Errc::corrupt: the mark makes no sense.
  Result<std::optional<Interrupted>> interrupted() const;

  // What interrupted() tells, and what it builds on, survives a crash.
  Status keep_mark() const;

  // Until the stream has ended. `from`: interrupted(), if it goes on there. After an error the directory is neither what it was nor what
  // it should be, and its mark tells where to go on. The mark stays until somebody writes another one.
  Result<Received> receive(StreamReader& stream, const Begin& begin, const std::optional<Interrupted>& from);

 private:
  // Where a path leads: the directory it is in, and the name there.
  struct Place {
    int directory = -1;
    std::string name;
  };
  // Records of one phase never stand behind those of a later one. Until the last one paths mean something else from phase to phase.
  enum class Phase : std::uint8_t { detaching, making, attaching, filling };

  Receiver(Descriptor root, std::string directory, std::uint64_t step)
      : root_(std::move(root)), directory_(std::move(directory)), step_(step) {}
  Status begin(const Begin& begin, const std::optional<Interrupted>& from);
  Status begin_anew();
  Status go_on(const Interrupted& from);
  Status carry_out(const Record& record, const Position& before);
  Status enter(Phase phase, const Position& before);
  Status note(const Position& position);
  Phase phase_of(const Record& record) const;
  Status prepare_staging();
  Status remove_staging();
  Status apply(const Detach& detach);
  Status apply(const Make& make);
  Status apply(const Create& create);
  Status apply(const Attach& attach);
  Status link(const Attach& attach);
  Status apply(const Open& open);
  Status apply(const Data& data);
  Status apply(const Range& range);
  Status apply(const Finish& finish);
  int make_file(const Create& create, const Place& place);
  Status settle_size();
  Status hand_over_file();
  Status close_file();
  bool is_there(int directory, const std::string& name) const;
  Result<Place> place_of(const std::string& path);
  Error failed(const std::string& action, const std::string& path) const;

  Descriptor root_;
  const std::string directory_;
  const std::uint64_t step_;
  Begin begin_;
  bool keeps_marks_ = true;
  Phase phase_ = Phase::detaching;
  std::optional<std::uint64_t> redo_until_;  // records before it may have been carried out already
  bool is_redo_ = false;
  Position noted_;
  std::uint64_t noted_bytes_ = 0;
  Descriptor staging_;
  std::string parent_path_;     // of the directory that is open
  Descriptor parent_;
  std::string open_path_;
  Descriptor open_;
  std::optional<std::uint64_t> size_to_set_;  // of the open file, which is new: what is written may make it so
  Received received_;
};

}  // namespace varve::send

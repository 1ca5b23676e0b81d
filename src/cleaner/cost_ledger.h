// What making room costs the device by whole rounds: reading, moving and the checkpoint after it, and what users' own writes cost
// between rounds. So what one kind of cleaning does to the writes of others is in its account. Such is a write into a hole that throws
// a head's allocation unit out of a card's few open ones, or that a disk's cache takes now and carries out later. All of it is time of
// the device: the host's is in no account.
//
// Used by the thread that runs checkpoints. Pure but for what it is told.
#pragma once

#include <cstdint>
#include <string>

#include "device/device_span.h"
#include "format/superblock.h"

namespace varve::cleaner {

class CostLedger {
 public:
  // Since the mount.
  struct Reading {
    std::uint64_t writing_ns = 0;  // the device was busy with writes and flushes of users' for so long, and meanwhile…
    std::uint64_t waited_ns = 0;   // …threads of this process waited so long for a CPU
    std::uint64_t users = 0;       // blocks that users wrote; of these…
    std::uint64_t in_holes = 0;    // …so many into holes. Counts what a round puts there, too: only looked at between rounds
  };
  enum class Kind : std::uint8_t { copying, filling };  // what lives goes to heads; to holes, and users' pieces as well

  // What a former mount has found counts until there is something newer.
  explicit CostLedger(const format::WritingCosts& remembered);

  // A round for want of room begins, has moved so many blocks, has been settled by a checkpoint, and the device took so long. None of
  // them, or what is no such round, comes between: interrupt().
  void begin(const Reading& now);
  void ended(Kind kind, std::uint64_t moved, const device::DeviceSpan& took);
  void settled(const device::DeviceSpan& took, const Reading& now);
  void interrupt();
  // Takes what users have written since into account before the next round begins. False: too little yet.
  bool look(const Reading& now);

  // Has what filling costs been forgotten since this was asked last? Then it is to be tried again.
  bool take_forgotten();

  // The device's time for a block that users write, in ns, where what is cleaned is this full; 0: not known.
  double copying(double live) const;
  double filling(double live) const;
  double plugging() const { return moves_[1].each(); }  // the same for a block that is moved into a hole
  std::string text(double live) const;  // both, for people; empty if one is not known

  // For the next mount. The requests of the cleaner alone are not among them (device/write_cost.h).
  format::WritingCosts remembered() const;

 private:
  // A moving mean: of no more than some blocks and some seconds, so that an error does not last.
  struct Mean {
    double ns = 0, blocks = 0;  // each by the weight of its measurement
    void add(double more_ns, double more_blocks, double weight);
    double each() const { return blocks >= kFewest ? ns / blocks : 0; }
  };
  static constexpr double kFewest = 8, kMostBlocks = 4096, kMostNs = 5e9;

  void add_users(const Reading& now);
  void spend(Kind kind, double ns);

  Mean moves_[2], users_[2];  // by kind
  double in_holes_ = 0.8;     // share of what users write while holes are filled
  Kind kind_ = Kind::copying;  // of the last round
  bool between_ = false;       // rounds: since_ is where that began
  Reading since_;
  double unsettled_ns_ = 0;    // of the round under way
  double usual_ns_ = 0;        // a checkpoint after copying
  // Of the kind that is in use, since the other one was: that may be another by then. What was spent on finding out bounds how soon.
  double spent_ns_[2] = {0, 0};
  bool forgotten_ = false;
};

}  // namespace varve::cleaner

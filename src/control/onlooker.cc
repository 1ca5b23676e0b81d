#include "control/onlooker.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "checkpoint/superblocks.h"
#include "lease/area.h"
#include "lease/process.h"
#include "log/recovery.h"

namespace varve::control {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{250};

lease::Self self_on(const io::BlockDevice& device) {
  return {lease::this_process("", ""), lease::object_of(device.name()), device.geometry().may_be_shared};
}

}  // namespace

Onlooker::Onlooker(io::BlockDevice& device) : device_(device) {
  lease::Area area(device);
  if (!area.has_room()) return;
  auto found = area.read();
  if (!found.ok() || !found->lease) return;
  const lease::Self self = self_on(device);
  const bool is_alive = lease::life_of(*found->lease, self) == lease::Life::alive;
  if (!is_alive && !lease::may_write_unseen(*found->lease, self)) return;
  presence_ = is_alive || device.is_locked_by_another() ? Presence::lives : Presence::unknown;
  holder_ = lease::describe(found->lease->process, found->lease->taken);
  lease_ = std::move(found->lease);
  answer_ = found->answer;
  if (presence_ == Presence::unknown) (void)has_moved_on();
}

Presence Onlooker::watch(std::chrono::milliseconds time) {
  while (presence_ == Presence::unknown) {
    if (look()) presence_ = Presence::lives;
    const auto left = time - (std::chrono::steady_clock::now() - began_);
    if (presence_ != Presence::unknown || left <= left.zero()) break;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kBetweenLooks));
  }
  return presence_;
}

// Whether the holder shows itself. A lease that is given back meanwhile does it as well.
bool Onlooker::look() {
  const auto found = lease::Area(device_).read();
  if (found.ok() && (found->lease != lease_ || found->answer != answer_)) return true;
  return has_moved_on();
}

// The log has grown, or there is a newer superblock. Where neither can be read, nothing is known of it.
bool Onlooker::has_moved_on() {
  const auto supers = checkpoint::read_superblocks(device_);
  if (!supers.ok()) return false;
  if (end_ && supers->best.serial != end_->serial) return true;
  format::Superblock end = end_ ? *end_ : supers->best;
  const auto log = log::recover_chain(device_, end, [](const format::Chunk&) { return Status(); },
                                      {.accept_damage = true, .looks_behind = false});
  if (!log.ok()) return false;
  const bool has_grown = end_ && log->position.lsn != end_->lsn;
  end.chain = log->position.rest;
  end.next_run = log->position.next_run;
  end.lsn = log->position.lsn;
  end.chain_crc = log->position.crc;
  end_ = std::move(end);
  return has_grown;
}

std::string warning_of(const Onlooker& onlooker, Presence presence) {
  if (presence == Presence::lives)
    return fmt::format("{}, is using it: this may be of a filesystem that changes. Stop that first, and try again", onlooker.holder());
  if (presence == Presence::unknown)
    return fmt::format("{}, has not given it back. If it is still in use there, this may be of a filesystem that changes",
                       onlooker.holder());
  return "";
}

}  // namespace varve::control

// The options of a mount: what stands behind `-o` on the command line and in fstab.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/server.h"
#include "fs/options.h"
#include "fuse/operations/session.h"
#include "fuse/protocol/negotiation.h"

namespace varve::daemon {

struct MountOptions {
  fs::Options fs;
  fuse::Wishes wishes;
  ServerOptions server;
  fuse::DurableChanges durable;
  unsigned commit_seconds = 0;            // what nobody syncs is on its way to the device after so many; 0: as usual_commit_seconds()
  std::size_t memory_bound = 0;           // of the whole daemon; 0: as plan_memory() has it
  bool allow_other = false;
  bool lock_memory = false;               // mlockall(2): the daemon is never paged out
  unsigned patience_s = 30;               // io::OpenOptions
  bool take_over = false;                 // lease::Use
  std::string log_file;                   // instead of the system's log
  bool log_was_asked_for = false;         // else it is made with the first message
  std::string trace_file;                 // of the device's requests; empty: none
  std::string snapshots_dir = ".varve-snapshots";  // the folder of snapshots in the root; empty: none
  bool show_snapshots = false;               // that folder is in listings
  std::string given;                      // all of them, as they were written; for the status
  std::vector<std::string> kernel_flags;  // nosuid, sync…: for mount(2), as given
  bool nosymfollow = false;               // for mount_setattr(2), since the library does not know it
};

// Options separated by commas, applied to `options` from left to right. Rules of protect= have commas of their own. What means something
// only to mount(8) or systemd (nofail, x-…) is dropped. Errc::invalid names what is not known or has no possible value.
Status parse_options(std::string_view text, MountOptions& options);

// As long as ext4 waits. Less where the kernel does not pass sync(2) and syncfs(2) on: callers count on them all the same.
constexpr unsigned usual_commit_seconds(bool gets_syncs) { return gets_syncs ? 30 : 5; }

// Bytes, with an optional suffix K, M, G or T (powers of 1024).
Result<std::uint64_t> parse_size(std::string_view text);

struct OptionHelp {
  const char* name;
  const char* text;
};
std::vector<OptionHelp> option_help();

}  // namespace varve::daemon

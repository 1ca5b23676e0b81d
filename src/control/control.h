// What tools ask a running daemon, by ioctl(2) on any directory or file of the mount. Shared with tools/varve.
#pragma once

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace varve::control {

// A piece of a document (of the status, or of what a scrub has to say). The first call has snapshot 0 and offset 0: the
// daemon makes the document, names it and gives its first piece; further calls ask for the rest by name and offset.
// ENODATA: forgotten, begin again.
struct StatusPage {
  std::uint64_t snapshot = 0;
  std::uint32_t offset = 0;  // bytes
  std::uint32_t total = 0;   // bytes of the document
  char text[8176] = {};      // total - offset bytes of it are valid, if it holds so many
};
static_assert(sizeof(StatusPage) == 8192, "part of the ioctl's number");

inline constexpr unsigned long kStatusIoctl = _IOWR('V', 0x60, StatusPage);  // JSON: state of the mount
// A setting to change: "name=value", as in mount options; those that `varve tune --help` lists. The answer is empty, or
// what is wrong with it.
struct TuneText {
  char text[4096] = {};  // ends with a 0
};

inline constexpr unsigned long kTuneIoctl = _IOWR('V', 0x64, TuneText);
inline constexpr unsigned long kCheckpointIoctl = _IO('V', 0x61);            // returns when it is settled

// What to do about the background scrub. Stopping returns at once; the report tells when it has stopped.
struct ScrubCommand {
  enum : std::uint32_t { kStart = 1, kStop = 2 };
  enum : std::uint32_t { kFromTheBeginning = 1 };
  std::uint32_t command = 0;
  std::uint32_t flags = 0;             // of kStart
  std::uint64_t bytes_per_second = 0;  // of kStart; 0: no limit
};
static_assert(sizeof(ScrubCommand) == 16, "part of the ioctl's number");

inline constexpr unsigned long kScrubIoctl = _IOW('V', 0x62, ScrubCommand);
inline constexpr unsigned long kScrubReportIoctl = _IOWR('V', 0x63, StatusPage);  // JSON: state and findings

// Cleaning somebody asks for: JSON as of control/request_json.h, ending with a 0. The answer is empty, or what is wrong with it.
// It goes on in the background; the report tells what it does, and has done.
struct CleanText {
  char text[8192] = {};
};

inline constexpr unsigned long kCleanIoctl = _IOWR('V', 0x65, CleanText);
inline constexpr unsigned long kCleanStopIoctl = _IO('V', 0x66);
inline constexpr unsigned long kCleanReportIoctl = _IOWR('V', 0x67, StatusPage);  // JSON

inline constexpr unsigned long kHistoryIoctl = _IOWR('V', 0x68, StatusPage);  // JSON: control/request_json.h

// Another size: JSON as of control/request_json.h, ending with a 0. The answer is empty, or what is wrong with it. It goes on in the
// background; the report tells how far it is, also where nobody has asked for one.
inline constexpr unsigned long kResizeIoctl = _IOWR('V', 0x70, TuneText);
inline constexpr unsigned long kResizeStopIoctl = _IO('V', 0x71);
inline constexpr unsigned long kResizeReportIoctl = _IOWR('V', 0x72, StatusPage);  // JSON

// A snapshot is made, gets another name, or goes. Names end with a 0. The answer is empty when that is settled, or what is wrong with it,
// with `error` as errno has it.
struct SnapshotCommand {
  enum : std::uint32_t { kCreate = 1, kRename = 2, kRemove = 3 };
  std::uint32_t command = 0;
  std::uint32_t error = 0;  // of the answer; daemons from before say 0
  char name[256] = {};
  char new_name[256] = {};  // of kRename
  char answer[1024] = {};
};
static_assert(sizeof(SnapshotCommand) == 1544, "part of the ioctl's number");

inline constexpr unsigned long kSnapshotIoctl = _IOWR('V', 0x73, SnapshotCommand);
inline constexpr unsigned long kSnapshotsIoctl = _IOWR('V', 0x74, StatusPage);  // JSON: control/request_json.h

// A tool reads an automatic snapshot, which is not given up meanwhile (checkpoint/readers.h). ESTALE: it has gone; ENOSPC: no room.
struct SnapshotHold {
  std::uint64_t snapshot = 0;  // its checkpoint
  std::uint64_t reader = 0;    // any number of the tool's own
  std::uint64_t seconds = 0;   // until the tool asks again; 0: it has ended
};
static_assert(sizeof(SnapshotHold) == 24, "part of the ioctl's number");

inline constexpr unsigned long kSnapshotHoldIoctl = _IOW('V', 0x76, SnapshotHold);

// A question about snapshots and its answer (compare/question.h): the tool fills in what comes before `bytes`.
struct KeptPage {
  std::uint32_t question = 0;        // kind
  std::uint32_t item = 0;            // kind of `from`
  std::uint64_t before = 0, after = 0;
  std::uint64_t ino = 0, offset = 0;  // with `item`: from which key on; of the answer: where the next question goes on
  std::uint32_t bytes = 0;
  std::uint32_t ended = 0;
  char text[15u << 10] = {};
};
static_assert(sizeof(KeptPage) == 48 + (15u << 10), "part of the ioctl's number");

inline constexpr unsigned long kKeptIoctl = _IOWR('V', 0x75, KeptPage);

}  // namespace varve::control

// The words of tools and daemons of 0.1.0, which have an ioctl for each matter. Daemons of today answer them by
// fuse/operations/ops_older.cc, and tools of today ask by it in tools/varve/volume/older_daemon.cc, until nobody comes from 0.1.0 any more.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace varve::control {

// A piece of a document, which the first call with snapshot 0 makes and names.
struct StatusPage {
  std::uint64_t snapshot = 0;
  std::uint32_t offset = 0;  // bytes
  std::uint32_t total = 0;   // bytes of the document
  char text[8176] = {};      // total - offset bytes of it are valid, if it holds so many
};
static_assert(sizeof(StatusPage) == 8192, "part of the ioctl's number");

inline constexpr unsigned long kStatusIoctl = _IOWR('V', 0x60, StatusPage);
inline constexpr unsigned long kScrubReportIoctl = _IOWR('V', 0x63, StatusPage);
inline constexpr unsigned long kCleanReportIoctl = _IOWR('V', 0x67, StatusPage);
inline constexpr unsigned long kHistoryIoctl = _IOWR('V', 0x68, StatusPage);
inline constexpr unsigned long kResizeReportIoctl = _IOWR('V', 0x72, StatusPage);
inline constexpr unsigned long kSnapshotsIoctl = _IOWR('V', 0x74, StatusPage);
inline constexpr unsigned long kCheckpointIoctl = _IO('V', 0x61);
inline constexpr unsigned long kCleanStopIoctl = _IO('V', 0x66);
inline constexpr unsigned long kResizeStopIoctl = _IO('V', 0x71);

// Texts end with a 0. The answer is empty, or what is wrong.
struct TuneText {
  char text[4096] = {};  // "name=value", or JSON
};
struct CleanText {
  char text[8192] = {};
};
inline constexpr unsigned long kTuneIoctl = _IOWR('V', 0x64, TuneText);
inline constexpr unsigned long kCleanIoctl = _IOWR('V', 0x65, CleanText);
inline constexpr unsigned long kResizeIoctl = _IOWR('V', 0x70, TuneText);

struct ScrubCommand {
  enum : std::uint32_t { kStart = 1, kStop = 2 };
  enum : std::uint32_t { kFromTheBeginning = 1 };
  std::uint32_t command = 0;
  std::uint32_t flags = 0;             // of kStart
  std::uint64_t bytes_per_second = 0;  // of kStart; 0: no limit
};
static_assert(sizeof(ScrubCommand) == 16, "part of the ioctl's number");
inline constexpr unsigned long kScrubIoctl = _IOW('V', 0x62, ScrubCommand);

struct SnapshotCommand {
  enum : std::uint32_t { kCreate = 1, kRename = 2, kRemove = 3 };
  std::uint32_t command = 0;
  std::uint32_t error = 0;  // of the answer: errno
  char name[256] = {};
  char new_name[256] = {};  // of kRename
  char answer[1024] = {};
};
static_assert(sizeof(SnapshotCommand) == 1544, "part of the ioctl's number");
inline constexpr unsigned long kSnapshotIoctl = _IOWR('V', 0x73, SnapshotCommand);

struct SnapshotHold {
  std::uint64_t snapshot = 0, reader = 0, seconds = 0;
};
inline constexpr unsigned long kSnapshotHoldIoctl = _IOW('V', 0x76, SnapshotHold);

struct KeptPage {
  std::uint32_t question = 0;  // kind
  std::uint32_t item = 0;      // kind of `from`
  std::uint64_t before = 0, after = 0;
  std::uint64_t ino = 0, offset = 0;  // with `item`: from which key on; of the answer: where the next question goes on
  std::uint32_t bytes = 0;
  std::uint32_t ended = 0;
  char text[15u << 10] = {};
};
static_assert(sizeof(KeptPage) == 48 + (15u << 10), "part of the ioctl's number");
inline constexpr unsigned long kKeptIoctl = _IOWR('V', 0x75, KeptPage);

}  // namespace varve::control

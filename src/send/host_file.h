// Files of the host below one directory: opened without leaving it, and given attributes.
#pragma once

#include <linux/fs.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/result.h"
#include "send/stream.h"

namespace varve::send {

inline constexpr unsigned kLocks = FS_IMMUTABLE_FL | FS_APPEND_FL;
inline constexpr unsigned kFlags = kLocks | FS_SYNC_FL | FS_NODUMP_FL | FS_NOATIME_FL;  // that Varve keeps; others are the host's business

// What a file with the flags `now` gets where it is to have `wanted`. Nobody is promised synchronous writes any more: a mount refuses that
// flag, but files that have it from before may keep it.
constexpr unsigned flags_to_set(unsigned now, unsigned wanted) { return (now & ~kFlags) | (wanted & kFlags & ~(FS_SYNC_FL & ~now)); }

// Below a directory and through no symbolic link, whatever others do there meanwhile. -1 and errno.
int open_below(int directory, const std::string& path, int flags, mode_t mode = 0);

// A regular file or a directory in one, without waiting. Anything else is not opened, since that alone may do something: -1 and ENXIO.
int open_content(int directory, const std::string& name, int flags);

// Of a path from the filesystem's root on: what is in it, the directory it is in, and how calls name it that begin at an open root.
std::string below(const std::string& directory, const std::string& name);
std::string parent_of(const std::string& path);
std::string relative(const std::string& path);

// The name of a file in its directory, which is opened through no link.
struct Spot {
  Descriptor directory;
  std::string name;
};
Spot spot_of(int root, const std::string& path);

// Takes away the flags that forbid to change it. False: there are none, or they stay. Keeps errno.
bool unlock(int directory, const std::string& name);

// A file or a directory that is immutable can be changed for as long as this lives. Then it has its flags again, also under another name.
class Unlocked {
 public:
  Unlocked(int directory, const std::string& name);
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked();  // keeps errno

  void keep() { flags_ = 0; }  // the flags that it has got meanwhile

 private:
  const Descriptor file_;
  unsigned flags_;  // that it had; 0: it was not locked
};

// A change of what is in a directory that may be immutable.
template <class Change>
int unlocking_directory(int directory, Change&& change) {
  const int done = change();
  if (done >= 0 || errno != EPERM) return done;
  const Unlocked folder(directory, ".");
  return change();
}

// A file that is immutable gets its flags at the end, as all that changes does. Its directory may be none of that.
template <class Change>
int unlocking(int directory, const std::string& name, Change&& change) {
  const int done = change();
  if (done >= 0 || errno != EPERM) return done;
  unlock(directory, name);
  return unlocking_directory(directory, change);
}

// A change that takes this name from its file. The file may have others, and keeps its flags.
template <class Change>
int unlocking_name(int directory, const std::string& name, Change&& change) {
  const int done = change();
  if (done >= 0 || errno != EPERM) return done;
  const Unlocked file(directory, name);
  return unlocking_directory(directory, change);
}

// Of a file that is open, or only named by its descriptor (O_PATH): symbolic links and devices have attributes, too.
Result<std::set<std::string>> names_of_xattrs(int file);
Result<std::map<std::string, format::Bytes>> xattrs_of(int file);  // errno says why

// What its writer has handed over to the kernel is handed over to the filesystem. False, and errno.
bool hand_over(int file);

// Owner, attributes, mode and times, as they are to be. Flags last, since an immutable file can have nothing else set. `apart`: this
// attribute stays as it is. errno says why, and the text what could not be done; empty: all is done.
std::string set_attributes(int file, const Finish& finish, const std::string& apart);

}  // namespace varve::send

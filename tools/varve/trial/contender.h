// The filesystems of a trial: how each one is made on the device, mounted, and unmounted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace varve::tool {

struct Contender {
  std::string name;
  std::vector<std::string> make;     // words of the command; the device stands at their end
  std::vector<std::string> mount;    // device and directory stand at their end
  std::vector<std::string> unmount;  // the directory stands at their end
  std::vector<std::string> check{};  // the device stands at their end; none: it is not checked
};

// "varve", "ext4", "f2fs", "btrfs", "xfs". `of_file`: the device is a file. Errors: no such name; its programs are
// not there, or not for this user.
Result<Contender> contender(const std::string& name, bool of_file);

// A contender that is made and mounted for a while, in a new directory of its own, which goes with it.
class MountedContender {
 public:
  static Result<MountedContender> make(const Contender& contender, const std::string& device);
  MountedContender(MountedContender&& other) noexcept;
  MountedContender& operator=(MountedContender&&) = delete;
  ~MountedContender();  // unmount(), without a check

  const std::string& directory() const { return directory_; }
  const std::string& said() const { return said_; }  // by what has made it
  Status remount();   // so that nothing is cached
  Status unmount();   // with the check

 private:
  MountedContender(const Contender& contender, std::string device, std::string directory, std::string said);
  Status mount();
  Status leave();

  Contender contender_;
  std::string device_, directory_, said_;
  bool is_mounted_ = false;
};

}  // namespace varve::tool

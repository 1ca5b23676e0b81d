#include "daemon/umount_table.h"

#include <libmount.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/logging.h"

namespace varve::daemon {

namespace {

struct Release {
  void operator()(libmnt_fs* fs) const { ::mnt_unref_fs(fs); }
  void operator()(libmnt_update* update) const { ::mnt_free_update(update); }
};

// `fs` for a mount, `target` for its end. Nothing to do: nobody keeps such a table here.
void change_table(const char* target, libmnt_fs* fs) {
  const std::unique_ptr<libmnt_update, Release> update(::mnt_new_update());
  if (!update) return;
  int result = ::mnt_update_set_fs(update.get(), 0, target, fs);
  if (result == 0) result = ::mnt_update_table(update.get(), nullptr);
  if (result < 0) log_debug("utab: {}", std::strerror(-result));
}

}  // namespace

void enter_umount_helper(const std::string& source, const std::string& directory) {
  if (::geteuid() != 0) return;
  const std::unique_ptr<libmnt_fs, Release> fs(::mnt_new_fs());
  if (!fs || ::mnt_fs_set_source(fs.get(), source.c_str()) != 0 || ::mnt_fs_set_target(fs.get(), directory.c_str()) != 0 ||
      ::mnt_fs_set_fstype(fs.get(), "fuse.varve") != 0 ||
      ::mnt_fs_set_options(fs.get(), "uhelper=fuse.varve") != 0)
    return;
  drop_umount_helper(directory);  // what a daemon has left that was killed
  change_table(nullptr, fs.get());
}

void drop_umount_helper(const std::string& directory) {
  if (::geteuid() == 0) change_table(directory.c_str(), nullptr);
}

}  // namespace varve::daemon

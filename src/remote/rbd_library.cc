#include "remote/rbd_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

namespace varve::remote {

namespace {

class Loader {
 public:
  explicit Loader(const char* file) : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) note();
  }

  template <class Function>
  Loader& find(Function& function, const char* name) {
    if (!handle_ || !why_.empty()) return *this;
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (!function) note();
    return *this;
  }

  const std::string& why_not() const { return why_; }

 private:
  void note() {
    const char* text = ::dlerror();
    why_ = text ? text : "unknown error";
  }

  void* handle_;
  std::string why_;
};

std::string load_rados(RbdLibrary& library) {
  return Loader("librados.so.2")
      .find(library.rados.create, "rados_create")
      .find(library.rados.conf_read_file, "rados_conf_read_file")
      .find(library.rados.conf_parse_env, "rados_conf_parse_env")
      .find(library.rados.conf_set, "rados_conf_set")
      .find(library.rados.connect, "rados_connect")
      .find(library.rados.shutdown, "rados_shutdown")
      .find(library.rados.instance_id, "rados_get_instance_id")
      .find(library.rados.blocklist_add, "rados_blocklist_add")
      .find(library.rados.ioctx_create, "rados_ioctx_create")
      .find(library.rados.ioctx_destroy, "rados_ioctx_destroy")
      .find(library.rados.ioctx_set_namespace, "rados_ioctx_set_namespace")
      .why_not();
}

std::string load_rbd(RbdLibrary& library) {
  return Loader("librbd.so.1")
      .find(library.rbd.open, "rbd_open")
      .find(library.rbd.open_read_only, "rbd_open_read_only")
      .find(library.rbd.close, "rbd_close")
      .find(library.rbd.get_size, "rbd_get_size")
      .find(library.rbd.get_features, "rbd_get_features")
      .find(library.rbd.watchers_list, "rbd_watchers_list")
      .find(library.rbd.watchers_list_cleanup, "rbd_watchers_list_cleanup")
      .find(library.rbd.is_lock_owner, "rbd_is_exclusive_lock_owner")
      .find(library.rbd.lock_acquire, "rbd_lock_acquire")
      .find(library.rbd.lock_release, "rbd_lock_release")
      .find(library.rbd.lock_break, "rbd_lock_break")
      .find(library.rbd.lock_owners, "rbd_lock_get_owners")
      .find(library.rbd.lock_owners_cleanup, "rbd_lock_get_owners_cleanup")
      .find(library.requests.create_completion, "rbd_aio_create_completion")
      .find(library.requests.return_value, "rbd_aio_get_return_value")
      .find(library.requests.release, "rbd_aio_release")
      .find(library.requests.readv, "rbd_aio_readv")
      .find(library.requests.writev, "rbd_aio_writev")
      .find(library.requests.flush, "rbd_aio_flush")
      .find(library.requests.discard, "rbd_aio_discard")
      .why_not();
}

struct Loaded {
  RbdLibrary library;
  std::string why_not;
};

Loaded load_both() {
  Loaded loaded;
  loaded.why_not = load_rados(loaded.library);
  if (loaded.why_not.empty()) loaded.why_not = load_rbd(loaded.library);
  return loaded;
}

}  // namespace

Result<const RbdLibrary*> RbdLibrary::load() {
  static const Loaded loaded = load_both();
  if (loaded.why_not.empty()) return &loaded.library;
  return Error(Errc::unsupported, fmt::format("images of Ceph need its client library (Debian: librbd1): {}", loaded.why_not));
}

}  // namespace varve::remote

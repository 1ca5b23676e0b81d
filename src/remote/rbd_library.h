// librbd and librados, loaded when the first image is opened: they are large, and no other use of Varve should need or wait for them.
#pragma once

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "base/result.h"

namespace varve::remote {

struct RadosCalls {
  decltype(&::rados_create) create = nullptr;
  decltype(&::rados_conf_read_file) conf_read_file = nullptr;
  decltype(&::rados_conf_parse_env) conf_parse_env = nullptr;
  decltype(&::rados_conf_set) conf_set = nullptr;
  decltype(&::rados_connect) connect = nullptr;
  decltype(&::rados_shutdown) shutdown = nullptr;
  decltype(&::rados_get_instance_id) instance_id = nullptr;
  decltype(&::rados_blocklist_add) blocklist_add = nullptr;
  decltype(&::rados_ioctx_create) ioctx_create = nullptr;
  decltype(&::rados_ioctx_destroy) ioctx_destroy = nullptr;
  decltype(&::rados_ioctx_set_namespace) ioctx_set_namespace = nullptr;
};

struct RbdCalls {
  decltype(&::rbd_open) open = nullptr;
  decltype(&::rbd_open_read_only) open_read_only = nullptr;
  decltype(&::rbd_close) close = nullptr;
  decltype(&::rbd_get_size) get_size = nullptr;
  decltype(&::rbd_get_features) get_features = nullptr;
  decltype(&::rbd_watchers_list) watchers_list = nullptr;
  decltype(&::rbd_watchers_list_cleanup) watchers_list_cleanup = nullptr;
  decltype(&::rbd_is_exclusive_lock_owner) is_lock_owner = nullptr;
  decltype(&::rbd_lock_acquire) lock_acquire = nullptr;
  decltype(&::rbd_lock_release) lock_release = nullptr;
  decltype(&::rbd_lock_break) lock_break = nullptr;
  decltype(&::rbd_lock_get_owners) lock_owners = nullptr;
  decltype(&::rbd_lock_get_owners_cleanup) lock_owners_cleanup = nullptr;
};

struct RbdRequests {
  decltype(&::rbd_aio_create_completion) create_completion = nullptr;
  decltype(&::rbd_aio_get_return_value) return_value = nullptr;
  decltype(&::rbd_aio_release) release = nullptr;
  decltype(&::rbd_aio_readv) readv = nullptr;
  decltype(&::rbd_aio_writev) writev = nullptr;
  decltype(&::rbd_aio_flush) flush = nullptr;
  decltype(&::rbd_aio_discard) discard = nullptr;
};

struct RbdLibrary {
  RadosCalls rados;
  RbdCalls rbd;
  RbdRequests requests;

  // Once for the process; never unloaded. Errc::unsupported where they are not installed. Any thread.
  static Result<const RbdLibrary*> load();
};

}  // namespace varve::remote

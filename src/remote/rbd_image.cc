#include "remote/rbd_image.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/logging.h"

namespace varve::remote {

namespace {

std::string text_of(int result) { return std::strerror(-result); }

// "10.0.0.3:0/12345": the part that all clients on one machine share.
std::string machine_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

}  // namespace

Error RbdImage::failed(const char* what, int result, const char* remedy) const {
  if (result == -ETIMEDOUT) remedy = "the cluster does not answer: see ceph -s";
  return {errc_from_errno(-result), fmt::format("{}: {}: {}: {}", name_, what, text_of(result), remedy)};
}

Result<std::unique_ptr<RbdImage>> RbdImage::open(const std::string& name, bool read_only, unsigned patience_s) {
  const RbdName parsed = TRY(parse_rbd_name(name));
  if (!parsed.snapshot.empty() && !read_only)
    return Error(Errc::read_only, fmt::format("{}: is a snapshot of an image: only read-only use is possible, as mount -o ro", name));
  auto library = RbdLibrary::load();
  if (!library.ok()) return Error(library.error().code(), fmt::format("{}: {}", name, library.error().message()));
  std::unique_ptr<RbdImage> made(new RbdImage(**library, name));
  TRY(made->connect(parsed, patience_s));
  TRY(made->open_image(parsed, read_only));
  return made;
}

// Nobody can tell when a request would arrive that was given up. So this client is shut out before another can take the lock. Closing
// asks the cluster many things one after the other: of one that does not answer it expects nothing more.
RbdImage::~RbdImage() {
  if (gave_up_) {
    for (const char* key : {"rados_osd_op_timeout", "rados_mon_op_timeout"}) library_.rados.conf_set(cluster_, key, "1");
    library_.rados.conf_parse_env(cluster_, nullptr);  // which makes it known to those that wait
    const int result = own_address_.empty() ? 0 : library_.rados.blocklist_add(cluster_, own_address_.data(), 0);
    if (result < 0) log_warn("{}: the cluster cannot be told to refuse what this client has sent: {}", name_, text_of(result));
  }
  if (image_) library_.rbd.close(image_);
  if (pool_) library_.rados.ioctx_destroy(pool_);
  if (cluster_) library_.rados.shutdown(cluster_);
}

Status RbdImage::configure(const RbdName& parsed, unsigned patience_s) {
  const int read = library_.rados.conf_read_file(cluster_, parsed.conf.empty() ? nullptr : parsed.conf.c_str());
  if (read < 0 && !parsed.conf.empty()) return failed("ceph.conf cannot be read", read, "check the path behind conf=");
  library_.rados.conf_parse_env(cluster_, nullptr);
  for (const auto& [key, value] : parsed.settings)
    if (const int set = library_.rados.conf_set(cluster_, key.c_str(), value.c_str()); set < 0)
      return Error(Errc::invalid, fmt::format("{}: Ceph knows no setting \"{}\", or not this value: {}", name_, key, text_of(set)));
  // An answer to a write means that the disks of the cluster have it, so no cache. And every request ends in time.
  const std::string patience = std::to_string(patience_s);
  const std::array<std::pair<const char*, const char*>, 6> ours = {{{"rbd_cache", "false"},
                                                                    {"rbd_persistent_cache_mode", "disabled"},
                                                                    {"rbd_blocklist_on_break_lock", "true"},
                                                                    {"rados_osd_op_timeout", patience.c_str()},
                                                                    {"rados_mon_op_timeout", patience.c_str()},
                                                                    {"client_mount_timeout", patience.c_str()}}};
  for (const auto& [key, value] : ours) library_.rados.conf_set(cluster_, key, value);
  return {};
}

Status RbdImage::connect(const RbdName& parsed, unsigned patience_s) {
  if (const int made = library_.rados.create(&cluster_, parsed.id.empty() ? nullptr : parsed.id.c_str()); made < 0)
    return failed("no client can be made", made, "see ceph.conf");
  TRY(configure(parsed, patience_s));
  if (const int connected = library_.rados.connect(cluster_); connected < 0) {
    library_.rados.shutdown(std::exchange(cluster_, nullptr));
    return failed("no connection to the cluster", connected,
                  "check that its monitors run, and ceph.conf, user and keyring (conf=, id=, keyring=)");
  }
  if (const int found = library_.rados.ioctx_create(cluster_, parsed.pool.c_str(), &pool_); found < 0)
    return failed("no pool of this name", found, "check the name (ceph osd lspools)");
  if (!parsed.space.empty()) library_.rados.ioctx_set_namespace(pool_, parsed.space.c_str());
  return {};
}

Status RbdImage::open_image(const RbdName& parsed, bool read_only) {
  const char* snapshot = parsed.snapshot.empty() ? nullptr : parsed.snapshot.c_str();
  const auto open = read_only ? library_.rbd.open_read_only : library_.rbd.open;
  if (const int opened = open(pool_, parsed.image.c_str(), &image_, snapshot); opened < 0) {
    image_ = nullptr;
    return failed("cannot be opened", opened, "check the names of image and snapshot (rbd ls, rbd snap ls) and what the user may do");
  }
  if (read_only) return {};
  TRY(check_features());
  own_address_ = address_of(library_.rados.instance_id(cluster_));
  return {};
}

Status RbdImage::check_features() const {
  std::uint64_t features = 0;
  if (const int got = library_.rbd.get_features(image_, &features); got < 0) return failed("its features are not known", got, "try again");
  if (features & RBD_FEATURE_EXCLUSIVE_LOCK) return {};
  return Error(Errc::unsupported, fmt::format("{}: the image has no exclusive lock, so that nothing would stop a second writer: "
                                              "rbd feature enable POOL/IMAGE exclusive-lock", name_));
}

Result<std::uint64_t> RbdImage::size() const {
  std::uint64_t bytes = 0;
  if (const int got = library_.rbd.get_size(image_, &bytes); got < 0) return failed("its size is not known", got, "try again");
  return bytes;
}

// --- the lock ---------------------------------------------------------------------------------------------------------

std::string RbdImage::address_of(std::uint64_t client) const {
  std::vector<rbd_image_watcher_t> found(64);
  std::size_t count = found.size();
  if (library_.rbd.watchers_list(image_, found.data(), &count) < 0) return "";
  std::string address;
  for (std::size_t at = 0; at < count; ++at)
    if (static_cast<std::uint64_t>(found[at].id) == client) address = found[at].addr;
  library_.rbd.watchers_list_cleanup(found.data(), count);
  return address;
}

bool RbdImage::is_watching(const std::string& address) const {
  std::vector<rbd_image_watcher_t> found(64);
  std::size_t count = found.size();
  if (library_.rbd.watchers_list(image_, found.data(), &count) < 0) return true;
  bool is_there = false;
  for (std::size_t at = 0; at < count; ++at) is_there |= address == found[at].addr;
  library_.rbd.watchers_list_cleanup(found.data(), count);
  return is_there;
}

std::optional<std::string> RbdImage::owner() const {
  int is_own = 0;
  if (library_.rbd.is_lock_owner(image_, &is_own) == 0 && is_own) return {};
  std::array<char*, 8> owners{};
  std::size_t count = owners.size();
  rbd_lock_mode_t mode = RBD_LOCK_MODE_EXCLUSIVE;
  if (library_.rbd.lock_owners(image_, &mode, owners.data(), &count) < 0 || count == 0) return {};
  std::string first = owners[0];
  library_.rbd.lock_owners_cleanup(owners.data(), count);
  return first;
}

// librbd does not tell a reader which client has the lock. But a client that may write watches the image, and readers do not.
bool RbdImage::has_writer() const {
  std::vector<rbd_image_watcher_t> found(64);
  std::size_t count = found.size();
  if (library_.rbd.watchers_list(image_, found.data(), &count) < 0) return false;
  library_.rbd.watchers_list_cleanup(found.data(), count);
  return count > 0;
}

Error RbdImage::in_use_by(const std::string& owner) const {
  return {Errc::in_use, fmt::format("{} is in use by the Ceph client at {}", name_, owner)};
}

Status RbdImage::lock(io::ShutOut others) {
  const std::optional<std::string> before = owner();
  const bool is_neighbour = before && !own_address_.empty() && machine_of(*before) == machine_of(own_address_);
  const bool by_force = before && (others == io::ShutOut::all || (others == io::ShutOut::dead_neighbour && is_neighbour));
  if (by_force) {
    log_warn("{}: the Ceph client at {} is shut out", name_, *before);
    const int broken = library_.rbd.lock_break(image_, RBD_LOCK_MODE_EXCLUSIVE, before->c_str());
    if (broken < 0 && broken != -ENOENT && broken != -EBUSY)  // another has it meanwhile: it lives
      return failed("the lock of another client cannot be broken", broken, "the user needs the capability \"profile rbd\"");
  }
  const int taken = library_.rbd.lock_acquire(image_, RBD_LOCK_MODE_EXCLUSIVE);
  if (taken == -EROFS || taken == -EBUSY || taken == -EAGAIN) return in_use_by(before.value_or("another address"));
  if (taken < 0) return failed("the exclusive lock cannot be had", taken, "see rbd lock ls");
  if (!before || by_force || !is_watching(*before)) return {};
  library_.rbd.lock_release(image_);  // it was given away by one that lives, and would be missed
  return in_use_by(*before);
}

}  // namespace varve::remote

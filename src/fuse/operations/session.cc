#include "fuse/operations/session.h"

#include <linux/capability.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/json_text.h"
#include "fs/engine.h"
#include "fuse/operations/opcodes.h"
#include "fuse/protocol/privilege.h"

namespace varve::fuse {

Session::Session(fs::Filesystem& fs, Transport& transport, SessionSettings settings,
                 std::function<void(int error)> ended)
    : fs_(fs), transport_(transport), settings_(std::move(settings)), ended_(std::move(ended)), flusher_(transport),
      read_ahead_(fs, *settings_.clock, settings_.read_ahead_bytes),
      cached_writes_(transport, [this](Ino ino) { drop_cached_attributes(ino); }),
      space_watch_(fs, transport, cached_writes_.lost),
      snapshot_mounts_(fs, settings_.mount_point, settings_.snapshots_dir) {}

RequestCounters& Session::add_counters() {
  const Lock lock(mutex_);
  counters_.push_back(std::make_unique<RequestCounters>());
  return *counters_.back();
}

Result<const Agreement*> Session::initialise(const fuse_init_in& offer) {
  const Lock lock(mutex_);
  if (agreement_) return Error(Errc::invalid, "the kernel began the same mount twice");
  agreement_ = negotiate(offer, settings_.wishes);
  if (!agreement_->ok()) return agreement_->error();
  if ((*agreement_)->drops_before_written) flusher_.wait_for_writes_too(settings_.wishes.max_background);
  agreed_.store(&agreement_->value(), std::memory_order_release);
  return agreed_.load();
}

void Session::initialised() {
  const Lock lock(mutex_);
  INVARIANT(agreement_.has_value());
  kernel_.initialised = true;
  changed_.notify_all();
}

Status Session::wait_initialised() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return kernel_.initialised || kernel_.ended; });
  if (!kernel_.initialised) return Error(Errc::shut_down, "the kernel ended the mount before it began");
  if (!agreement_->ok()) return agreement_->error();
  return {};
}

void Session::drop_cached_attributes(Ino ino) { notify_inval_inode(transport_, ino, -1); }

// The kernel has to ask for the attributes from now on, and that brings the next write(2) of the file here (getattr).
void Session::lose(Ino ino, std::uint64_t from, std::uint64_t end, Errc why) {
  cached_writes_.lost.refused(ino, from, end, why);
  drop_cached_attributes(ino);
  space_watch_.look();
}

void Session::write_back() {
  for (const Ino ino : fs_.referenced()) notify_inval_inode(transport_, ino, 0);
  flusher_.wait_for_writes();
}

void Session::destroy_requested(std::uint64_t unique) {
  {
    const Lock lock(mutex_);
    INVARIANT(!destroy_unique_);
    destroy_unique_ = unique;
  }
  end(0);
}

void Session::answer_destroy(int error) {
  std::optional<std::uint64_t> unique;
  {
    const Lock lock(mutex_);
    unique.swap(destroy_unique_);
  }
  if (!unique) return;
  fuse_out_header header{sizeof header, -error, *unique};
  const iovec part{&header, sizeof header};
  transport_.send({&part, 1});
}

void Session::end(int error) {
  {
    const Lock lock(mutex_);
    if (kernel_.ended) return;
    kernel_.ended = true;
    changed_.notify_all();
  }
  ended_(error);
}

// Of all threads. A bucket is [its end in µs, how many]; the end of the last possible one is null.
Json Session::latency_json(std::uint32_t opcode) {
  std::uint64_t total_ns = 0, times = 0;
  auto buckets = Json::array();
  for (unsigned bucket = 0; bucket < Latencies::kBuckets; ++bucket) {
    std::uint64_t sum = 0;
    for (const auto& counters : counters_) sum += counters->latencies.count(opcode, bucket);
    const std::uint64_t end = Latencies::end_of(bucket);
    if (sum) buckets.push_back({end ? Json(end) : Json(nullptr), sum});
    times += sum;
  }
  for (const auto& counters : counters_) total_ns += counters->latencies.total_ns(opcode);
  if (!times) return Json::object();
  return {{"times", times}, {"total_us", total_ns / 1000}, {"buckets", std::move(buckets)}};
}

void Session::add_facts(Json& json) {
  if (settings_.device_facts) json.update(settings_.device_facts());
  auto& mount = json["mount"];
  mount["source"] = settings_.source;
  mount["mount_point"] = settings_.mount_point;
  mount["options"] = settings_.options;
  mount["snapshots_dir"] = settings_.snapshots_dir;
  mount["log"] = settings_.log;
  mount["pid"] = ::getpid();
  mount["shut_down"] = is_shut_down();
  mount["read_only"] = fs_.engine().options().read_only;  // asked for; the filesystem's own may come from a failure
  if (const Agreement* agreed = agreement()) {
    mount["protocol"] = fmt::format("{}.{}", agreed->reply.major, agreed->reply.minor);
    mount["features"] = agreed->feature_names();
  }
  const Lock lock(mutex_);
  mount["threads"] = counters_.size();
  auto& requests = mount["requests"] = Json::object();
  for (std::uint32_t opcode = 0; opcode < kOpcodes; ++opcode) {
    std::uint64_t sum = 0;
    for (const auto& counters : counters_) sum += counters->served[opcode].load(std::memory_order_relaxed);
    if (sum) requests[opcode_name(opcode)] = sum;
  }
  auto& latencies = mount["latencies"] = Json::object();
  for (std::uint32_t opcode = 0; opcode < kOpcodes; ++opcode)
    if (auto histogram = latency_json(opcode); !histogram.empty()) latencies[opcode_name(opcode)] = std::move(histogram);
}

bool Session::may_control(const fuse_in_header& caller) {
  const uid_t own = ::getuid(), uid = caller_ids({caller.uid, caller.gid}, caller.pid).uid;
  if (own == 0) return uid == 0 && has_capability(caller.pid, CAP_SYS_ADMIN);
  return uid == 0 || uid == own;
}

}  // namespace varve::fuse

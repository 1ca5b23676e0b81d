#include "fs/operation.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "fs/engine.h"

namespace varve::fs {

namespace {

// Counts what an operation still waits for, and calls back when the last of it has come.
class Resumption {
 public:
  // `deliver(inside)`: inside = still within the call that began to wait.
  explicit Resumption(std::function<void(bool inside)> deliver) : deliver_(std::move(deliver)) {}

  void add() { outstanding_.fetch_add(1); }
  void done(bool inside = false) {
    if (outstanding_.fetch_sub(1) == 1) deliver_(inside);
  }

 private:
  std::atomic<int> outstanding_{1};  // the call that begins to wait
  std::function<void(bool)> deliver_;
};
using ResumptionPtr = std::shared_ptr<Resumption>;

// One of the things that are waited for; there is time to be counted until came().
class Awaited {
 public:
  Awaited(Engine& engine, WaitCause cause, ResumptionPtr resumption)
      : engine_(engine), cause_(cause), since_(engine.store().clock().monotonic_ns()), resumption_(std::move(resumption)) {
    resumption_->add();
  }
  void came() const {
    engine_.wait_times().add(cause_, engine_.store().clock().monotonic_ns() - since_);
    resumption_->done();
  }

 private:
  Engine& engine_;
  WaitCause cause_;
  std::uint64_t since_;
  ResumptionPtr resumption_;
};

void start_node_read(Engine& engine, Wait& wait, const meta::NodeWant& want, const ResumptionPtr& resumption) {
  auto block = std::make_shared<AlignedBuffer>(kBlockSize);
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::read;
  request->offset = want.ref.address.v << kBlockShift;
  request->add(block->data(), kBlockSize);
  engine.store().io().start(std::move(request), [&engine, &wait, want, block,
                                                 awaited = Awaited(engine, WaitCause::node, resumption)](int error) {
    Result<meta::NodePtr> node = Error(Errc::io, fmt::format("reading a tree node at block {} failed", want.ref.address));
    if (!error) node = engine.store().nodes().insert(want, std::move(*block));
    if (node.ok()) {
      wait.pins[want.ref.address.v] = {want.ref.crc, *node};
    } else {
      engine.store().note_error(node.error().code(), want.ref.address, {});
      wait.node_errors.insert_or_assign(want.ref.address.v, std::pair(want.ref.crc, node.error()));
    }
    awaited.came();
  });
}

void start_data_read(Engine& engine, DataRead& read, const ResumptionPtr& resumption) {
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::read;
  request->offset = read.address.v << kBlockShift;
  request->add(read.target, std::size_t{read.blocks} * kBlockSize);
  read.started = true;
  engine.store().io().start(std::move(request), [&read, awaited = Awaited(engine, WaitCause::data, resumption)](int error) {
    read.error = error;
    read.done = true;
    awaited.came();
  });
}

void begin_wait(Engine& engine, Wait& wait, const ResumptionPtr& resumption) {
  std::vector<meta::NodeWant> nodes;
  nodes.swap(wait.nodes);
  std::unordered_map<std::uint64_t, bool> seen;
  for (const meta::NodeWant& want : nodes)
    if (seen.emplace(want.ref.address.v, true).second) {
      wait.pins.erase(want.ref.address.v);  // of a former view, if it is there: let go of it now
      start_node_read(engine, wait, want, resumption);
    }
  for (DataRead& read : wait.reads)
    if (!read.started) start_data_read(engine, read, resumption);
  if (wait.trim.count && !wait.trim.started) {
    resumption->add();
    engine.start_discard(wait.trim, [resumption] { resumption->done(); });
  }
  if (std::exchange(wait.trim.for_turn, false)) {
    resumption->add();
    engine.trim_turn().when_free([resumption] { resumption->done(); });
  }
  if (wait.for_durable) {
    const Lsn lsn = *wait.for_durable;
    wait.for_durable.reset();
    const Awaited awaited(engine, WaitCause::durable, resumption);
    engine.store().log().durability().when_durable(lsn, [awaited](Status) { awaited.came(); });
  }
  if (wait.for_settled) {
    wait.for_settled = false;
    const Awaited awaited(engine, wait.for_space ? WaitCause::space : WaitCause::memory, resumption);
    engine.store().when_settled([awaited] { awaited.came(); });
    engine.request_checkpoint(std::exchange(wait.for_space, false));
  }
  if (wait.for_room) {
    wait.for_room = false;
    const Awaited awaited(engine, WaitCause::in_flight, resumption);
    engine.store().log().when_room([awaited] { awaited.came(); });
  }
}

}  // namespace

Operation::Operation(Engine& engine, Caller caller)
    : engine_(engine), caller_(caller), wait_(std::make_unique<Wait>()) {}

Operation::~Operation() = default;

void Operation::resume(io::IoQueue& queue, std::function<void()> ready) {
  auto shared = std::make_shared<std::function<void()>>(std::move(ready));
  auto resumption = std::make_shared<Resumption>([&queue, shared](bool inside) {
    if (!inside && log::ServingScope::current() == &queue) (*shared)();
    else queue.post([shared] { (*shared)(); });
  });
  begin_wait(engine_, *wait_, resumption);
  resumption->done(true);
}

void Operation::block() {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  const bool space = wait_->for_space;
  auto resumption = std::make_shared<Resumption>([&](bool) {
    std::lock_guard lock(mutex);
    ready = true;
    changed.notify_all();
  });
  begin_wait(engine_, *wait_, resumption);
  resumption->done(true);
  auto is_ready = [&] {
    std::lock_guard lock(mutex);
    return ready;
  };
  if (engine_.store().io().background()) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready; });
    return;
  }
  while (!is_ready()) {
    if (engine_.store().io().pump()) continue;
    engine_.work(space);
  }
}

}  // namespace varve::fs

#include "fs/operation.h"

#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <unordered_set>
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

// One of the things that are waited for; copies are of the same one. There is time to be counted until it has come.
class Awaited {
 public:
  Awaited(Engine& engine, std::optional<WaitCause> cause, const ResumptionPtr& resumption)
      : state_(std::make_shared<State>(engine, cause, engine.store().clock().monotonic_ns(), resumption)) {
    resumption->add();
  }
  void came() const {
    if (state_->is_over.exchange(true)) return;
    Engine& engine = state_->engine;
    if (state_->cause) engine.wait_times().add(*state_->cause, engine.store().clock().monotonic_ns() - state_->since);
    state_->resumption->done();
  }
  // It could not be asked for.
  void give_up() const {
    if (!state_->is_over.exchange(true)) state_->resumption->done();
  }

 private:
  struct State {
    State(Engine& its_engine, std::optional<WaitCause> its_cause, std::uint64_t begun, ResumptionPtr its_resumption)
        : engine(its_engine), cause(its_cause), since(begun), resumption(std::move(its_resumption)) {}
    Engine& engine;
    const std::optional<WaitCause> cause;
    const std::uint64_t since;
    const ResumptionPtr resumption;
    std::atomic<bool> is_over{false};
  };
  std::shared_ptr<State> state_;
};

// Begins one wait of an operation.
class Beginning {
 public:
  Beginning(Engine& engine, Wait& wait, const ResumptionPtr& resumption)
      : engine_(engine), wait_(wait), resumption_(resumption) {}

  void everything() {
    nodes();
    data();
    trim();
    log();
    checkpoint();
  }

 private:
  // Calls start(awaited), which must not have begun anything if it throws.
  template <class Start>
  void await(std::optional<WaitCause> cause, Start&& start) {
    const Awaited awaited(engine_, cause, resumption_);
    try {
      start(awaited);
    } catch (...) {
      awaited.give_up();
      throw;
    }
  }

  void nodes();
  void data();
  void trim();
  void log();
  void checkpoint();
  void read_node(const store::NodeWant& want);
  void read_data(DataRead& read);

  Engine& engine_;
  Wait& wait_;
  const ResumptionPtr& resumption_;
};

void take_node(Engine& engine, Wait& wait, const store::NodeWant& want, AlignedBuffer& block, int error) {
  Result<store::NodePtr> node = Error(Errc::io, fmt::format("reading a tree node at block {} failed", want.ref.address));
  if (!error) node = engine.store().nodes().insert(want, std::move(block));
  if (node.ok()) {
    wait.pins[want.ref.address.v] = {want.ref.crc, *node};
  } else {
    wait.failed_nodes.insert_or_assign(want.ref.address.v, FailedNode{want.ref.crc, node.error()});
  }
}

void Beginning::read_node(const store::NodeWant& want) {
  auto block = std::make_shared<AlignedBuffer>(kBlockSize);
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::read;
  request->offset = want.ref.address.v << kBlockShift;
  request->add(block->data(), kBlockSize);
  await(WaitCause::node, [&](const Awaited& awaited) {
    engine_.store().io().start(std::move(request), [&engine = engine_, &wait = wait_, want, block, awaited](int error) {
      try {
        take_node(engine, wait, want, *block, error);
      } catch (const std::bad_alloc&) {
        wait.lacks_memory = true;
      }
      awaited.came();
    });
  });
}

void Beginning::nodes() {
  std::vector<store::NodeWant> nodes;
  nodes.swap(wait_.nodes);
  std::unordered_set<std::uint64_t> seen;
  std::erase_if(nodes, [&](const store::NodeWant& want) { return !seen.insert(want.ref.address.v).second; });
  // Of a former view, if they are there: let go of them now, before another thread may bring the first of the new ones.
  for (const store::NodeWant& want : nodes) wait_.pins.erase(want.ref.address.v);
  for (const store::NodeWant& want : nodes) read_node(want);
}

void Beginning::read_data(DataRead& read) {
  auto request = std::make_unique<io::IoRequest>();
  request->kind = io::IoKind::read;
  request->offset = read.address.v << kBlockShift;
  request->add(read.target, std::size_t{read.blocks} * kBlockSize);
  read.started = true;
  await(WaitCause::data, [&](const Awaited& awaited) {
    engine_.store().io().start(std::move(request), [&read, awaited](int error) {
      read.error = error;
      read.done = true;
      awaited.came();
    });
  });
}

void Beginning::data() {
  for (DataRead& read : wait_.reads)
    if (!read.started) read_data(read);
}

void Beginning::trim() {
  if (wait_.trim.count && !wait_.trim.started)
    await({}, [&](const Awaited& awaited) { engine_.start_discard(wait_.trim, [awaited] { awaited.came(); }); });
  if (std::exchange(wait_.trim.for_turn, false))
    await({}, [&](const Awaited& awaited) { engine_.trim_turn().when_free([awaited] { awaited.came(); }); });
}

void Beginning::log() {
  if (const auto lsn = std::exchange(wait_.for_durable, std::nullopt)) {
    await(WaitCause::durable, [&](const Awaited& awaited) {
      engine_.store().log().durability().when_durable(*lsn, [awaited](Status) { awaited.came(); });
    });
  }
  if (std::exchange(wait_.for_room, false))
    await(WaitCause::in_flight, [&](const Awaited& awaited) { engine_.store().log().when_room([awaited] { awaited.came(); }); });
}

void Beginning::checkpoint() {
  if (!std::exchange(wait_.for_settled, false)) return;
  await(wait_.for_space ? WaitCause::space : WaitCause::memory,
        [&](const Awaited& awaited) { engine_.store().when_settled([awaited] { awaited.came(); }); });
  engine_.request_checkpoint(std::exchange(wait_.for_space, false));
}

// What has been started writes to the operation and its buffers: so nothing is thrown, but noted for when that has come.
void begin_wait(Engine& engine, Wait& wait, const ResumptionPtr& resumption) {
  try {
    Beginning(engine, wait, resumption).everything();
  } catch (const std::exception&) {
    wait.lacks_memory = true;
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
  Mutex mutex;
  Condition changed;
  bool ready = false;
  const bool space = wait_->for_space;
  auto resumption = std::make_shared<Resumption>([&](bool) {
    const Lock lock(mutex);
    ready = true;
    changed.notify_all();
  });
  begin_wait(engine_, *wait_, resumption);
  resumption->done(true);
  auto is_ready = [&] {
    const Lock lock(mutex);
    return ready;
  };
  if (engine_.store().io().background()) {
    Lock lock(mutex);
    changed.wait(lock, [&] { return ready; });
  }
  while (!is_ready()) {
    if (engine_.store().io().pump()) continue;
    engine_.work(space);
  }
  if (lacks_memory()) throw std::bad_alloc();
}

bool Operation::lacks_memory() const { return wait_->lacks_memory; }

}  // namespace varve::fs

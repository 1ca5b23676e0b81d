#include "operation/operation.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/invariant.h"
#include "base/wait_list.h"
#include "device/io_context.h"
#include "io/reactor.h"
#include "io/request.h"
#include "log/log.h"
#include "operation/background.h"
#include "operation/node_reads.h"
#include "operation/operations.h"
#include "operation/wait.h"
#include "store/store.h"

namespace varve::operation {

namespace {

// Asks for what one wait of an operation is about.
class Beginning {
 public:
  Beginning(Operations& operations, Wait& wait, io::Reactor* reactor) : operations_(operations), wait_(wait), reactor_(reactor) {}

  void everything() {
    operations_.node_reads().begin(wait_, reactor_);
    data();
    trim();
    log();
    checkpoint();
  }

 private:
  void data();
  void trim();
  void log();
  void checkpoint();
  void read_data(DataRead& read);

  Operations& operations_;
  Wait& wait_;
  io::Reactor* const reactor_;
};

void Beginning::read_data(DataRead& read) {
  INVARIANT(!read.started && !read.done);
  MEMORY_INVARIANT(read.target != nullptr && read.blocks > 0);
  read.request.offset = read.address.v << kBlockShift;
  read.request.length = std::uint64_t{read.blocks} * kBlockSize;
  read.request.iov.assign(1, iovec{read.target, read.request.length});
  read.waiter = &wait_.waiter;
  read.request.done = [&read](io::IoRequest& request) {
    INVARIANT(!read.done);
    read.error = request.error;
    read.done = true;
    read.waiter->came(WaitCause::data);
  };
  read.started = true;
  wait_.waiter.await([&] { operations_.store().io().start(read.request, reactor_); });
}

void Beginning::data() {
  for (DataRead& read : wait_.reads)
    if (!read.started) read_data(read);
}

void Beginning::trim() {
  if (!wait_.steps) return;
  Trim& trim = wait_.steps->trim;
  Waiter* const waiter = &wait_.waiter;
  const auto came = [waiter] { waiter->came({}); };
  if (trim.count && !trim.started) waiter->await([&] { operations_.trimmer().start_discard(trim, reactor_, came); });
  if (std::exchange(trim.for_turn, false)) waiter->await([&] { operations_.trimmer().when_free(came); });
}

void Beginning::log() {
  Waiter* const waiter = &wait_.waiter;
  log::Log& log = operations_.store().log();
  if (const auto lsn = std::exchange(wait_.for_durable, std::nullopt)) {
    const auto came = [waiter, &let_go = wait_.let_go](const Status& status) {
      if (status.fails_with(Errc::host_full)) let_go = status.error();
      waiter->came(WaitCause::durable);
    };
    waiter->await([&] { log.durability().when_durable(*lsn, came, reactor_, log::Durability::Patience::may_let_go); });
  }
  if (std::exchange(wait_.for_room, false))
    waiter->await([&] { log.flow().when_room([waiter] { waiter->came(WaitCause::in_flight); }); });
}

void Beginning::checkpoint() {
  if (!std::exchange(wait_.for_settled, false)) return;
  Waiter* const waiter = &wait_.waiter;
  const WaitCause cause = wait_.for_space ? WaitCause::space : WaitCause::memory;
  waiter->await([&] { operations_.store().waiters().add([waiter, cause] { waiter->came(cause); }); });
  operations_.background().request_checkpoint(std::exchange(wait_.for_space, false));
}

void ask_for_all(Operations& operations, Wait& wait, io::Reactor* reactor) {
  operations.file_notes().note_use();
  Beginning(operations, wait, reactor).everything();
  wait.waiter.all_asked_for();
}

}  // namespace

Operation::Operation(Operations& operations, Caller caller, io::Reactor* reactor)
    : operations_(operations), caller_(caller), reactor_(reactor), wait_(std::make_unique<Wait>(operations.wait_times())) {}

Operation::~Operation() = default;

void Operation::resume(std::function<void()> ready) {
  wait_->waiter.begin(reactor_, std::move(ready));
  ask_for_all(operations_, *wait_, reactor_);
}

void Operation::block() {
  const bool space = wait_->for_space;
  wait_->waiter.begin(nullptr, {});
  ask_for_all(operations_, *wait_, nullptr);
  if (operations_.store().io().background()) wait_->waiter.block();
  while (!wait_->waiter.is_over()) {
    if (operations_.store().io().pump()) continue;
    operations_.background().work(space);
  }
  wait_->take_answers();
}

}  // namespace varve::operation

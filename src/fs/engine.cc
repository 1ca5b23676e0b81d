#include "fs/engine.h"

#include "cleaner/cleaner.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "jobs/jobs.h"
#include "operation/node_reads.h"
#include "scrub/scrubber.h"
#include "store/store.h"

namespace varve::fs {

namespace {

// Files are put together by themselves only where seeks are dear, and with a cleaner.
bool tidies(store::Store& store, const Options& options) {
  return store.device().geometry().rotational && options.cleaner && !options.read_only;
}

}  // namespace

Engine::Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options)
    : node_reads_(std::make_unique<operation::NodeReads>(operation::NodeReads::Parts{store->io(), store->trees()})),
      store_(std::move(store)),
      options_(options),
      started_ns_(options.clock->monotonic_ns()),
      cleaner_(std::move(cleaner)),
      operations_(std::make_unique<operation::Operations>(operation::Operations::Parts{
          *store_, *cleaner_, *node_reads_, options.count_references, tidies(*store_, options)})),
      jobs_(std::make_unique<jobs::Jobs>(*store_, *cleaner_, *operations_,
                                         jobs::Jobs::Settings{options.cleaner, options.checkpoint_records,
                                                              options.seal_delay_ms * 1'000'000ULL, options_.memory_limit_bytes})),
      scrubber_(std::make_unique<scrub::Scrubber>(*store_, [this] { jobs_->requests().ask_for_checkpoint(); })) {}

Engine::~Engine() {
  store_->device().limit_holding(0);
  scrubber_->end();
  jobs_->stop();
}

void Engine::bound_memory(std::size_t bytes, std::size_t process_bytes) {
  options_.memory_bytes = bytes;
  options_.memory_limit_bytes = process_bytes;
  store_->bound_memory(bytes);
  jobs_->requests().kick();  // there may be more changes, and more payload that waits, than that allows
}

}  // namespace varve::fs

#include "fs/engine.h"

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "fs/clean_job.h"
#include "fs/maintenance.h"
#include "fs/node_reads.h"
#include "fs/reaper.h"
#include "fs/references.h"
#include "fs/resize_job.h"
#include "fs/service.h"
#include "fs/tidier.h"
#include "fs/trimmer.h"
#include "fs/wait_times.h"
#include "io/block_device.h"
#include "scrub/scrubber.h"
#include "store/store.h"

namespace varve::fs {

Engine::Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options)
    : node_reads_(std::make_unique<NodeReads>(*store)),
      store_(std::move(store)),
      options_(options),
      references_(std::make_unique<References>()),
      cleaner_(std::move(cleaner)),
      started_ns_(options.clock->monotonic_ns()),
      wait_times_(std::make_unique<WaitTimes>()),
      reaper_(std::make_unique<Reaper>(*this)),
      trimmer_(std::make_unique<Trimmer>(*store_)),
      tidier_(std::make_unique<Tidier>(*this)),
      service_(std::make_unique<Service>(*this)),
      maintenance_(std::make_unique<Maintenance>(*this)),
      scrubber_(std::make_unique<scrub::Scrubber>(*store_, [this] { maintenance_->request_checkpoint(); })),
      clean_job_(std::make_unique<CleanJob>(*this)),
      resize_job_(std::make_unique<ResizeJob>(*this)) {}

Engine::~Engine() {
  store_->device().limit_holding(0);
  scrubber_->end();
  stop_threads();
}

void Engine::bound_memory(std::size_t bytes, std::size_t process_bytes) {
  options_.memory_bytes = bytes;
  options_.memory_limit_bytes = process_bytes;
  store_->bound_memory(bytes);
  maintenance_->kick();  // there may be more changes, and more payload that waits, than that allows
}

void Engine::start_threads() {
  if (!options_.background) return;
  store_->checkpoints().on_epoch_due([this] { maintenance_->kick(); });
  service_->start();
  maintenance_->start();
}

void Engine::stop_threads() {
  maintenance_->stop();
  service_->stop();
}

}  // namespace varve::fs

#include "fs/engine.h"

#include "cleaner/cleaner.h"
#include "fs/clean_job.h"
#include "fs/resize_job.h"
#include "scrub/scrubber.h"

namespace varve::fs {

Engine::Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options)
    : node_reads_(*store),
      store_(std::move(store)),
      options_(options),
      cleaner_(std::move(cleaner)),
      started_ns_(options.clock->monotonic_ns()),
      reaper_(*this),
      trimmer_(*store_),
      tidier_(*this),
      service_(*this),
      maintenance_(*this),
      scrubber_(std::make_unique<scrub::Scrubber>(*store_, [this] { maintenance_.request_checkpoint(); })),
      clean_job_(std::make_unique<CleanJob>(*this)),
      resize_job_(std::make_unique<ResizeJob>(*this)) {}

Engine::~Engine() {
  scrubber_->end();
  stop_threads();
}

void Engine::start_threads() {
  if (!options_.background) return;
  store_->checkpoints().on_epoch_due([this] { maintenance_.kick(); });
  service_.start();
  maintenance_.start();
}

void Engine::stop_threads() {
  maintenance_.stop();
  service_.stop();
}

}  // namespace varve::fs

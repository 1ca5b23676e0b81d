#include "jobs/jobs.h"

#include "checkpoint/checkpoints.h"
#include "device/io_context.h"
#include "io/block_device.h"
#include "operation/operations.h"
#include "store/store.h"

namespace varve::jobs {

Jobs::Jobs(store::Store& store, cleaner::Cleaner& cleaner, operation::Operations& operations, const Settings& settings)
    : requests_({store.waiters(), store.checkpoints(), store.snapshots(), store.counters(), store.io()}),
      seal_timing_({*store.options().clock, store.log(), store.segments(), store.space(), store.staging(), store.seals(),
                    store.device().geometry().rotational}),
      seal_timer_({*store.options().clock, store.io(), store.faults(), store.log(), store.seals(), requests_, settings.seal_delay_ns}),
      reaper_({store.faults(), operations, requests_}),
      shortage_({store.segments(), store.log_clock(), store.space(), store.hole_feeder(), store.snapshots(), store.checkpoints(), cleaner,
                 settings.cleans}),
      checkpoint_timing_({store.changes(), store.checkpoints(), store.protection(), store.segments(), store.snapshots(),
                          store.hole_feeder(), store.space(), settings.checkpoint_records}),
      rounds_({requests_, shortage_, checkpoint_timing_, store.checkpoints(), cleaner, store.protection(), store.staging()}),
      hole_supply_({store.hole_feeder(), cleaner, requests_}),
      chores_({*store.options().clock, store.space(), operations.references(), seal_timing_, settings.memory_limit_bytes}),
      upkeep_({store.faults(), store.checkpoints(), requests_, chores_, reaper_, hole_supply_, rounds_}),
      maintenance_({store.seals(), operations.file_notes(), requests_, seal_timing_, hole_supply_, rounds_, upkeep_}),
      clean_job_({store.checkpoints(), store.counters(), store.segments(), operations, requests_},
                 {store.faults(), *store.options().clock, cleaner, asked_}),
      sizes_({store.gate(), store.device(), store.superblocks(), store.segments(), store.charge()}),
      resize_job_({store.checkpoints(), store.reshaping(), store.log(), store.segments(), requests_, sizes_, store.io().background()},
                  {store.faults(), *store.options().clock, cleaner, asked_}),
      tidier_({*store.options().clock, *store.options().random, store.device(), store.faults(), store.checkpoints(), cleaner,
               operations.file_notes()}),
      idle_checkpoint_(store.staging(), store.checkpoints()),
      idle_cleaning_({store.staging(), store.log_clock(), store.checkpoints(), cleaner, settings.cleans}),
      scheduler_({*store.options().clock, store.faults(), store.log(), store.changes(), store.log_clock(), store.snapshots(), requests_},
                 {&clean_job_, &resize_job_, &upkeep_, &tidier_, &idle_checkpoint_, &idle_cleaning_}) {
  operations.serve(maintenance_);
  if (requests_.has_threads()) store.checkpoints().on_epoch_due([this] { requests_.kick(); });
}

void Jobs::start() {
  if (!requests_.has_threads()) return;
  seal_timer_.start();
  scheduler_.start();
}

void Jobs::attend(Job& job) {
  if (requests_.has_threads()) requests_.kick();
  else scheduler_.finish(job);
}

void Jobs::stop() {
  scheduler_.stop();
  seal_timer_.stop();
}

}  // namespace varve::jobs

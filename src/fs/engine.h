// The running filesystem behind the facade: the store, what works on it in the background, and what the kernel holds.
#pragma once

#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "fs/options.h"

namespace varve::cleaner {
class Cleaner;
}

namespace varve::scrub {
class Scrubber;
}

namespace varve::store {
class Store;
}

namespace varve::fs {

class CleanJob;
class Maintenance;
class NodeReads;
class Operation;
class Reaper;
class References;
class ResizeJob;
class Service;
class Tidier;
class Trimmer;
class WaitTimes;

class Engine {
 public:
  Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options);
  ~Engine();

  // Its parts. A source that uses one includes the header of that part.
  store::Store& store() { return *store_; }
  const Options& options() const { return options_; }
  References& references() { return *references_; }
  cleaner::Cleaner& cleaner() { return *cleaner_; }
  scrub::Scrubber& scrubber() { return *scrubber_; }
  CleanJob& clean_job() { return *clean_job_; }
  ResizeJob& resize_job() { return *resize_job_; }
  WaitTimes& wait_times() { return *wait_times_; }
  Reaper& reaper() { return *reaper_; }
  Trimmer& trimmer() { return *trimmer_; }
  NodeReads& node_reads() { return *node_reads_; }
  Tidier& tidier() { return *tidier_; }
  Maintenance& maintenance() { return *maintenance_; }
  std::uint64_t started_ns() const { return started_ns_; }

  // Filesystem::bound_memory().
  void bound_memory(std::size_t bytes, std::size_t process_bytes);

  void start_threads();
  void stop_threads();

  // Tries an operation once: f(Attempt&) -> Result<T>. Seals when the next chunk is full and tries again. Include fs/attempt.h.
  template <class F>
  auto attempt(Operation& operation, F&& f);

  Mutex& rename_mutex() { return rename_mutex_; }  // for moves of directories between directories; inside the gate

 private:
  std::unique_ptr<NodeReads> node_reads_;  // outlives the store's I/O
  std::unique_ptr<store::Store> store_;
  Options options_;
  std::unique_ptr<References> references_;
  std::unique_ptr<cleaner::Cleaner> cleaner_;
  const std::uint64_t started_ns_;
  std::unique_ptr<WaitTimes> wait_times_;
  Mutex rename_mutex_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<Trimmer> trimmer_;
  std::unique_ptr<Tidier> tidier_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<scrub::Scrubber> scrubber_;
  std::unique_ptr<CleanJob> clean_job_;
  std::unique_ptr<ResizeJob> resize_job_;
};

}  // namespace varve::fs

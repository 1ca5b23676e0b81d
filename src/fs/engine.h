// The running filesystem behind the facade: the store, its operations, and what works on it in the background.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/options.h"
#include "operation/operations.h"

namespace varve::cleaner {
class Cleaner;
}

namespace varve::jobs {
class Jobs;
}

namespace varve::scrub {
class Scrubber;
}

namespace varve::store {
class Store;
}

namespace varve::fs {

class Engine {
 public:
  Engine(std::unique_ptr<store::Store> store, std::unique_ptr<cleaner::Cleaner> cleaner, const Options& options);
  ~Engine();

  // Its parts. A source that uses one includes the header of that part.
  store::Store& store() { return *store_; }
  const Options& options() const { return options_; }
  cleaner::Cleaner& cleaner() { return *cleaner_; }
  operation::Operations& operations() { return *operations_; }
  jobs::Jobs& jobs() { return *jobs_; }
  scrub::Scrubber& scrubber() { return *scrubber_; }
  std::uint64_t started_ns() const { return started_ns_; }

  // Filesystem::bound_memory().
  void bound_memory(std::size_t bytes, std::size_t process_bytes);

  // Tries an operation once. Include operation/attempt.h.
  template <class F>
  auto attempt(operation::Operation& operation, F&& f) {
    return operations_->attempt(operation, std::forward<F>(f));
  }

 private:
  std::unique_ptr<operation::NodeReads> node_reads_;  // outlives the store's I/O
  std::unique_ptr<store::Store> store_;
  Options options_;
  const std::uint64_t started_ns_;
  std::unique_ptr<cleaner::Cleaner> cleaner_;
  std::unique_ptr<operation::Operations> operations_;
  std::unique_ptr<jobs::Jobs> jobs_;
  std::unique_ptr<scrub::Scrubber> scrubber_;
};

}  // namespace varve::fs

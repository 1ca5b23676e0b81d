// The operations of one mount have these parts in common, and are attempted here.
#pragma once

#include "base/mutex.h"
#include "operation/file_notes.h"
#include "operation/references.h"
#include "operation/trimmer.h"
#include "operation/wait_times.h"

namespace varve::cleaner {
class Cleaner;
}

namespace varve::store {
class Store;
}

namespace varve::operation {

class Background;
class NodeReads;
class Operation;

class Operations {
 public:
  struct Parts {
    store::Store& store;
    const cleaner::Cleaner& cleaner;  // its placement says where blocks go
    NodeReads& node_reads;
    bool counts_references = false;  // a kernel keeps inodes
    bool notes_files = false;        // for work in idle time
  };
  explicit Operations(const Parts& parts);
  // Sets what works in the background, once, before there are operations.
  void serve(Background& background) { background_ = &background; }

  // Tries an operation once: f(Attempt&) -> Result<T>. Seals when the next chunk is full and tries again. Include operation/attempt.h.
  template <class F>
  auto attempt(Operation& operation, F&& f);

  // Its parts. A source that uses one includes the header of that part.
  store::Store& store() { return parts_.store; }
  const cleaner::Cleaner& cleaner() const { return parts_.cleaner; }
  NodeReads& node_reads() { return parts_.node_reads; }
  Background& background() { return *background_; }
  References& references() { return references_; }
  FileNotes& file_notes() { return file_notes_; }
  WaitTimes& wait_times() { return wait_times_; }
  Trimmer& trimmer() { return trimmer_; }
  Mutex& rename_mutex() { return rename_mutex_; }  // for moves of directories between directories; inside the gate

 private:
  const Parts parts_;
  Background* background_ = nullptr;
  References references_;
  FileNotes file_notes_;
  WaitTimes wait_times_;
  Trimmer trimmer_;
  Mutex rename_mutex_{LockRank::rename};
};

}  // namespace varve::operation

#include "operation/operations.h"

#include "device/io_context.h"
#include "store/store.h"

namespace varve::operation {

Operations::Operations(const Parts& parts)
    : parts_(parts),
      references_(parts.counts_references),
      file_notes_(parts.notes_files),
      wait_times_(*parts.store.options().clock),
      trimmer_({parts.store.gate(), parts.store.io(), parts.store.segments(), parts.store.space(), parts.store.discards()}) {}

}  // namespace varve::operation

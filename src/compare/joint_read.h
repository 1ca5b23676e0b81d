// Data of many small files at once: what stands side by side on the device comes in one request.
#pragma once

#include <vector>

#include "base/result.h"
#include "compare/kept_file.h"

namespace varve::operation {
class Attempt;
}

namespace varve::compare {

// Of an operation that shows a snapshot. Fills `data` of each, all blocks that `runs` says to be data; would_block: once more later.
Status read_jointly(operation::Attempt& attempt, const std::vector<KeptFile*>& files);

}  // namespace varve::compare

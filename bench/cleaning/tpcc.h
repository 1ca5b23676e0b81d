// Page writes of a database under TPC-C's transactions, as a stream for the cleaning benches: no trace of one is at hand.
//
// Rows and mix as in the TPC-C specification, revision 5.11 (45 % new-order, 43 % payment, 4 % delivery; the rest only
// reads), with its non-uniform choice of items and customers. Tables are scaled so that four warehouses fill the blocks.
// A buffer pool stands between. Pages are written in the order in which they became dirty (Oracle's incremental
// checkpoint), once they are more than a share of all. What is dirtied again meanwhile is written once. That share is
// chosen so that the skew is about that of SFS's trace (Min et al. 2012: 1.6 % of the blocks get 29 % of the writes).
#pragma once

#include <memory>

#include "workload.h"

namespace varve::bench {

std::unique_ptr<Workload> make_tpcc(std::uint64_t blocks, std::uint64_t seed);

}  // namespace varve::bench

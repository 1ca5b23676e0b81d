// Streams of overwrites over N blocks, for the cleaning benches. All are seeded: the same name, N and seed give the same
// stream on every machine. The blocks' ranks are spread over the file by a random permutation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace varve::bench {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::uint64_t next() = 0;  // the block to write

  // Per-block rates of a stationary workload (sum 1), in no particular order; empty where rates change with time.
  virtual std::vector<double> rates() const { return {}; }
};

// "uniform", "zipf-0.8", "hotcold-10-90" (10 % of the blocks get 90 % of the writes), "drift" (Zipf 1.0 whose ranks rotate
// by 1 % of N every N/4 writes). Also "phase" (Zipf 1.0; after half of `writes` another permutation), "sequential",
// "tpcc" (tpcc.h).
// Null: no such name.
std::unique_ptr<Workload> make_workload(std::string_view name, std::uint64_t blocks, std::uint64_t writes,
                                        std::uint64_t seed);

}  // namespace varve::bench

#include "policies_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>

#include "cleaner/registry.h"
#include "rig.h"
#include "space/admission.h"
#include "space/space.h"
#include "store/store.h"
#include "table.h"

namespace varve::bench {

namespace {

constexpr std::uint64_t kWriteBytes = 32 << 10;
constexpr std::size_t kBins = 20;
constexpr double kFullest = 0.9;  // NILFS2's min_reclaimable_blocks is a tenth of a segment

// The best n, as nilfs_cleanerd's nsegments_per_clean: a plugin of the bench's own.
class Top final : public cleaner::VictimSelection {
 public:
  explicit Top(std::size_t n) : n_(n) {}
  std::string_view name() const override { return "top"; }
  cleaner::Victims select(std::span<const cleaner::SegmentFacts> segments, const cleaner::Evaluation& evaluation,
                          const cleaner::SelectionLimits& limits, Random&) const override {
    auto field = cleaner::candidates(segments, evaluation, limits);
    std::erase_if(field, [](const cleaner::Candidate& c) { return c.segment->utilisation() > kFullest; });
    std::stable_sort(field.begin(), field.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    cleaner::Victims victims;
    for (std::size_t i = 0; i < std::min(n_, field.size()); ++i)
      if (!cleaner::take(victims, *field[i].segment, limits)) break;
    return victims;
  }

 private:
  const std::size_t n_;
};

void add_top() {
  (void)cleaner::registry().selections.add("top", "the best n", [](const cleaner::Parameters& p) {
    return std::make_unique<Top>(static_cast<std::size_t>(p.number("n", 2, 1, 1e6)));
  });
}

struct Scale {
  std::uint32_t segment_blocks = 2048;
  std::uint64_t segments = 64;
  std::uint64_t bytes() const { return segments * segment_blocks << kBlockShift; }
};
Scale scale_of(const PoliciesSetup& setup) { return setup.quick ? Scale{256, 64} : Scale{}; }

// Offsets of writes: uniform, or 90 % to the upper eighth.
class Traffic {
 public:
  Traffic(std::uint64_t bytes, bool skewed, std::uint64_t seed) : writes_(bytes / kWriteBytes), skewed_(skewed), random_(seed) {}
  std::uint64_t next() {
    const std::uint64_t hot = writes_ / 8;
    const bool to_hot = skewed_ && random_() % 10 != 0;
    return (to_hot ? writes_ - hot + random_() % hot : random_() % writes_) * kWriteBytes;
  }

 private:
  const std::uint64_t writes_;
  const bool skewed_;
  std::mt19937_64 random_;
};

using Histogram = std::array<double, kBins>;

void add_to(Histogram& sum, const std::vector<Utilisation>& segments) {
  for (const Utilisation& s : segments) sum[std::min(kBins - 1, static_cast<std::size_t>(s.live * kBins))] += 1;
}

void normalise(Histogram& h) {
  const double all = std::max(1.0, std::accumulate(h.begin(), h.end(), 0.0));
  for (double& bin : h) bin /= all;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string rule(const std::string& policy, const PoliciesSetup& setup, unsigned victims) {
  if (policy == "segregation") return "segregation:window=" + setup.window;
  return fmt::format("{}+top:n={}", policy, victims);
}

RigSetup rig_of(const Scale& scale, const std::string& victims, std::uint64_t seed) {
  RigSetup rig;
  rig.segment_blocks = scale.segment_blocks;
  rig.segments = scale.segments;
  rig.victims = victims;
  rig.placement = "none";  // NILFS2 has one head
  rig.seed = seed;
  rig.cleaner = false;
  return rig;
}

// --- figures 1 to 7 -------------------------------------------------------------------------------------------------------

struct Case {
  std::string workload;
  bool skewed, filled;
};

// Segment utilisation is logged before every clean; each distribution is that of the last fifth of the writes before it.
void run_case(const PoliciesSetup& setup, const Case& which, const std::string& policy, Table& table) {
  const Scale scale = scale_of(setup);
  const std::uint64_t file_bytes = scale.bytes() / 4;
  Rig rig(rig_of(scale, rule(policy, setup, setup.victims), setup.seed));
  const Ino file = rig.make(kRootIno, "file");
  if (which.filled) rig.write(file, 0, file_bytes);
  Traffic traffic(file_bytes, which.skewed, setup.seed);
  std::uint64_t done = 0;
  for (std::uint64_t count : setup.counts) {
    const std::uint64_t shown_from = count - count / 5;
    Histogram histogram{};
    std::vector<double> victims, cleaned;
    std::uint64_t cleans = 0;
    Counts start = rig.counts();
    for (; done < count; ++done) {
      if (done == shown_from) start = rig.counts();
      rig.write(file, traffic.next(), kWriteBytes);
      if (done % setup.every != 0 || rig.clean_segments() >= setup.room) continue;
      if (done >= shown_from) add_to(histogram, rig.utilisations());
      if (!rig.clean(~std::uint64_t{0}, victims) || done < shown_from) continue;
      ++cleans;
      cleaned.insert(cleaned.end(), victims.begin(), victims.end());
    }
    const Counts now = rig.counts() - start;
    normalise(histogram);
    table.add({which.workload, policy, count, cleans, mean(cleaned),
               1 + static_cast<double>(now.moved) / static_cast<double>(now.user), Json(histogram)});
  }
}

Json run_distributions(const PoliciesSetup& setup) {
  Table table("Segment utilisation before cleans", {"workload", "policy", "writes", "cleans", "victims' u", "WA", "shares"});
  const Case cases[] = {{"uniform", false, false}, {"hot/cold", true, false}, {"hot/cold, filled before", true, true}};
  for (const Case& which : cases)
    for (const std::string& policy : setup.policies) run_case(setup, which, policy, table);
  return table.json();
}

// --- figures 8 and 9 ------------------------------------------------------------------------------------------------------

constexpr const char *kBatches = "batches (figure 8)", *kRegular = "every 500 writes (figure 9)";

struct Cost {
  std::vector<double> per_clean;  // mean of 2/(1-u) over the victims of a clean
  double victims = 0;
  void add(const std::vector<double>& cleaned) {
    double sum = 0;
    for (double u : cleaned) sum += 2 / (1 - std::min(u, 0.999));
    if (!cleaned.empty()) per_clean.push_back(sum / static_cast<double>(cleaned.size()));
    victims += static_cast<double>(cleaned.size());
  }
};

// Figure 8: writes until all segments are filled, then cleans until as many are clean as the threshold says, again and again.
void clean_in_batches(Rig& rig, std::uint64_t low, std::uint64_t high, Cost& cost) {
  if (rig.clean_segments() > low) return;
  for (std::vector<double> victims; rig.clean_segments() < high && rig.clean(1, victims);) cost.add(victims);
}

void run_cost(const PoliciesSetup& setup, const std::string& policy, double occupancy, bool batches, Table& table) {
  const Scale scale = scale_of(setup);
  const auto asked = static_cast<std::uint64_t>(occupancy * static_cast<double>(scale.bytes()));
  const std::uint64_t file_bytes = asked / kWriteBytes * kWriteBytes;
  Rig rig(rig_of(scale, rule(policy, setup, batches ? 1 : 40), setup.seed));
  const Ino file = rig.make(kRootIno, "file");
  rig.write(file, 0, file_bytes);
  Traffic traffic(file_bytes, true, setup.seed);
  const std::uint64_t low = rig.engine().store().space().low_water() + 4;  // below, there is no room to move a segment
  const double empty = (1 - occupancy) * static_cast<double>(scale.segments - low);
  const auto high = low + std::max<std::uint64_t>(2, static_cast<std::uint64_t>(empty / 2));
  const auto writes = static_cast<std::uint64_t>(setup.volumes * static_cast<double>(scale.bytes())) / kWriteBytes;
  Cost cost;
  Counts start;
  for (std::uint64_t i = 0; i < writes; ++i) {
    if (i == writes / 2) cost = {}, start = rig.counts();
    rig.write(file, traffic.next(), kWriteBytes);
    std::vector<double> victims;
    if (batches) clean_in_batches(rig, low, high, cost);
    else if (i % 500 == 499 && rig.clean(~std::uint64_t{0}, victims)) cost.add(victims);
  }
  const Counts now = rig.counts() - start;
  const auto user = static_cast<double>(now.user);
  table.add({batches ? kBatches : kRegular, policy, occupancy, cost.per_clean.size(),
             cost.victims / std::max<double>(1, static_cast<double>(cost.per_clean.size())), mean(cost.per_clean),
             1 + static_cast<double>(now.moved + now.read) / user});
}

// Not every policy gets by with what is left at high occupancy: then the row says so.
void try_cost(const PoliciesSetup& setup, const std::string& policy, double occupancy, bool batches, Table& table) {
  try {
    run_cost(setup, policy, occupancy, batches, table);
  } catch (const std::runtime_error& error) {
    table.add({batches ? kBatches : kRegular, policy, occupancy, nullptr, nullptr, nullptr, error.what()});
  }
}

Json run_costs(const PoliciesSetup& setup) {
  Table table("Write cost on hot/cold traffic, filled before",
              {"cleaning", "policy", "occupancy", "cleans", "n", "2/(1-u)", "(new+read+moved)/new"});
  for (bool batches : {true, false})
    for (const char* policy : {"greedy", "cost-benefit"})
      for (double occupancy : setup.occupancies) try_cost(setup, policy, occupancy, batches, table);
  return table.json();
}

}  // namespace

Json run_policies_study(const PoliciesSetup& setup) {
  add_top();
  Json result = {{"study", "policies"}, {"seed", setup.seed}};
  if (setup.distributions) result["distributions"] = run_distributions(setup);
  if (setup.costs) result["costs"] = run_costs(setup);
  return result;
}

}  // namespace varve::bench

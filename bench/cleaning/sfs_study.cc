#include "sfs_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>

#include "rig.h"
#include "table.h"
#include "workload.h"

namespace varve::bench {

namespace {

constexpr const char *kZipf = "zipf-1.0", *kTpcc = "tpcc", *kUniform = "uniform";
constexpr std::size_t kAgeBins = 20;

struct Outcome {
  double moved = 0, read = 0, other = 0;  // per block written by the workload; other: metadata and headers
  std::array<double, kAgeBins> shares{};     // of segments without dummies, by utilisation
};

// W_c = (new + read + moved)/new, each as bytes over bandwidth.
double write_cost(const Outcome& o, const SfsDevice& device) {
  return 1 + o.moved + o.read * device.sequential_write / device.random_read;
}
// MB/s that the workload sees if the device does nothing else.
double throughput(const Outcome& o, const SfsDevice& device) {
  return device.sequential_write / (write_cost(o, device) + o.other);
}

Outcome measure(const SfsSetup& setup, const std::string& workload, double utilisation, const std::string& victims,
                const std::string& placement) {
  RigSetup choice;
  choice.segment_blocks = setup.segment_blocks;
  choice.segments = setup.segments;
  choice.victims = victims;
  choice.placement = placement;
  choice.seed = setup.seed;
  Rig rig(choice);
  const auto blocks = static_cast<std::uint64_t>(setup.updated * static_cast<double>(setup.segments * setup.segment_blocks));
  const std::uint64_t all = rig.blocks_for(utilisation);
  const Ino dummies = rig.make(kRootIno, "dummies"), file = rig.make(kRootIno, "file");
  if (all > blocks) rig.write(dummies, 0, (all - blocks) << kBlockShift);
  rig.checkpoint();
  std::set<std::uint64_t> of_dummies;
  for (const Utilisation& segment : rig.utilisations()) of_dummies.insert(segment.id.v);
  rig.write(file, 0, blocks << kBlockShift);
  const auto warm_up = static_cast<std::uint64_t>(setup.warm_up * static_cast<double>(blocks));
  const auto measured = static_cast<std::uint64_t>(setup.measured * static_cast<double>(blocks));
  const auto traffic = make_workload(workload, blocks, warm_up + measured, setup.seed);
  for (std::uint64_t i = 0; i < warm_up; ++i) rig.write(file, traffic->next() << kBlockShift, kBlockSize);
  const Counts start = rig.counts();
  for (std::uint64_t i = 0; i < measured; ++i) rig.write(file, traffic->next() << kBlockShift, kBlockSize);
  const Counts now = rig.counts() - start;
  const auto user = static_cast<double>(now.user);
  Outcome outcome{static_cast<double>(now.moved) / user, static_cast<double>(now.read) / user,
                  static_cast<double>(now.nodes + now.headers) / user, {}};
  double counted = 0;
  for (const Utilisation& segment : rig.utilisations()) {
    if (of_dummies.contains(segment.id.v)) continue;
    outcome.shares[std::min(kAgeBins - 1, static_cast<std::size_t>(segment.live * kAgeBins))] += 1;
    ++counted;
  }
  for (double& share : outcome.shares) share /= std::max(counted, 1.0);
  return outcome;
}

// --- skew -----------------------------------------------------------------------------------------------------------------

Json run_skew(const SfsSetup& setup) {
  Table table("Skew of the workloads: share of the writes that the most written blocks get",
              {"workload", "blocks", "1.6 %", "5 %", "20 %", "50 %"});
  const auto blocks = static_cast<std::uint64_t>(setup.updated * static_cast<double>(setup.segments * setup.segment_blocks));
  const auto writes = static_cast<std::uint64_t>((setup.warm_up + setup.measured) * static_cast<double>(blocks));
  for (const char* name : {kZipf, kTpcc, kUniform}) {
    std::vector<std::uint64_t> times(blocks);
    const auto traffic = make_workload(name, blocks, writes, setup.seed);
    for (std::uint64_t i = 0; i < writes; ++i) ++times[traffic->next()];
    std::sort(times.rbegin(), times.rend());
    auto share = [&](double of) {
      const auto end = times.begin() + static_cast<std::ptrdiff_t>(of * static_cast<double>(blocks));
      return static_cast<double>(std::accumulate(times.begin(), end, std::uint64_t{0})) / static_cast<double>(writes);
    };
    table.add({name, blocks, share(0.016), share(0.05), share(0.2), share(0.5)});
  }
  return table.json();
}

// --- figures 5 to 7 -------------------------------------------------------------------------------------------------------

std::vector<Json> row(const SfsSetup& setup, const std::string& name, const std::string& workload, const Outcome& o) {
  return {name, workload, o.moved, o.read, write_cost(o, setup.device), throughput(o, setup.device)};
}
const std::vector<std::string> kColumns = {"policy", "workload", "moved/new", "read/new", "write cost", "MB/s (modelled)"};

Json run_groups(const SfsSetup& setup) {
  Table table("Groups, at 85 % (figure 5)", kColumns);
  const unsigned most = setup.quick ? 2 : 6;
  for (const char* workload : {kZipf, kTpcc})
    for (unsigned groups = 1; groups <= most; ++groups) {
      const std::string placement = groups == 1 ? "none" : fmt::format("sfs:groups={}", groups);
      table.add(row(setup, fmt::format("groups={}", groups), workload,
                    measure(setup, workload, 0.85, "cost-hotness", placement)));
    }
  return table.json();
}

Json run_schemes(const SfsSetup& setup) {
  Table table("Quantisation and victim policy, four groups, at 85 % (figures 6 and 7)", kColumns);
  for (const char* workload : {kZipf, kTpcc}) {
    for (const char* quantiser : {"iterative", "equi-height", "equi-width"})
      table.add(row(setup, quantiser, workload,
                    measure(setup, workload, 0.85, "cost-hotness", fmt::format("sfs:groups=4:quantiser={}", quantiser))));
    table.add(row(setup, "iterative, cost-benefit", workload,
                  measure(setup, workload, 0.85, "cost-benefit", "sfs:groups=4")));
  }
  return table.json();
}

// --- figures 8 to 10 ------------------------------------------------------------------------------------------------------

struct Rival {
  const char *name, *victims, *placement;
};

Json run_utilisations(const SfsSetup& setup) {
  Table table("Utilisation (figures 8 and 9; shares of segments: figure 10)",
              {"policy", "workload", "utilisation", "moved/new", "read/new", "write cost", "MB/s (modelled)", "shares"});
  const Rival rivals[] = {{"LFS-CB", "cost-benefit", "none"},
                          {"SFS", "cost-hotness", "sfs:groups=4"},
                          {"decline/learned", "decline", "learned"}};
  for (const char* workload : {kZipf, kTpcc, kUniform})
    for (const Rival& rival : rivals)
      for (double utilisation : setup.utilisations) {
        const Outcome o = measure(setup, workload, utilisation, rival.victims, rival.placement);
        table.add({rival.name, workload, utilisation, o.moved, o.read, write_cost(o, setup.device),
                   throughput(o, setup.device), Json(o.shares)});
      }
  return table.json();
}

}  // namespace

Json run_sfs_study(const SfsSetup& setup) {
  Json result = {{"study", "sfs"}, {"seed", setup.seed}, {"skew", run_skew(setup)}};
  if (setup.groups) {
    result["groups"] = run_groups(setup);
    result["schemes"] = run_schemes(setup);
  }
  if (setup.by_utilisation) result["utilisations"] = run_utilisations(setup);
  return result;
}

}  // namespace varve::bench

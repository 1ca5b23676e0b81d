#include "daemon/memory_plan.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "base/types.h"
#include "daemon/cpu_placement.h"
#include "daemon/server.h"

namespace varve::daemon {

namespace {

constexpr std::size_t kProcess = 19 * kMiB;       // pages of the program and its libraries, stacks, rings, what the heap wastes
constexpr std::size_t kLeastForEngine = 8 * kMiB;
constexpr std::size_t kUsual = 256 * kMiB;
constexpr std::size_t kSmall = 128 * kMiB;

// Buffers under way, large memory that waits for its turn (half as much), and others kept for reuse (the same).
std::size_t taken_by_requests(std::size_t request_bytes) { return 2 * request_bytes; }

std::size_t least_bound(unsigned threads) {
  return kProcess + taken_by_requests(threads * Server::kLeastPerThread) + kLeastForEngine / 4 * 3;
}

std::size_t engine_bytes_of(const MemoryPlan& plan) {
  const std::size_t bound = plan.bound, least = least_bound(plan.threads);
  // What the heap wastes grows with the bound. A bound in between: requests take what the engine does not need at least.
  const std::size_t process = kProcess + std::min(bound / 24, bound - least);
  const std::size_t rest = bound - process - std::min(taken_by_requests(plan.request_bytes), bound - process - kLeastForEngine / 4 * 3);
  return std::min(bound, rest / 3 * 4);  // the shares that it makes of it come to three quarters
}

}  // namespace

Result<MemoryPlan> plan_memory(std::size_t bound, unsigned threads) {
  const bool told = threads != 0;
  if (!told) threads = std::min(cpu_count(), ServerOptions::kMaxThreads);
  if (!bound) bound = std::max(kUsual, least_bound(threads));
  while (!told && threads > 1 && bound < least_bound(threads)) --threads;
  if (bound < least_bound(threads))
    return Error(Errc::invalid, fmt::format("option memory: {} MiB cannot hold the daemon with {} serving thread{}: at least {}M",
                                            bound / kMiB, threads, threads == 1 ? "" : "s", least_bound(threads) / kMiB + 1));
  MemoryPlan plan{.bound = bound, .threads = threads};
  plan.request_bytes = std::max(std::clamp<std::size_t>(bound / 8, 4 * kMiB, 128 * kMiB), threads * Server::kLeastPerThread);
  plan.large_bytes = plan.request_bytes / 2;
  plan.engine_bytes = engine_bytes_of(plan);
  return plan;
}

std::size_t usual_bound(const MemoryGroup& group, unsigned threads) {
  const std::size_t usual = std::max(kUsual, threads ? least_bound(threads) : 0);
  return std::clamp<std::size_t>(group.limit / 2, least_bound(std::max(threads, 1U)), usual);
}

std::optional<MemoryPlan> followed(const MemoryPlan& plan, const MemoryGroup& group, std::size_t chosen) {
  if (chosen || !group.is_known) return {};
  const std::size_t bound = usual_bound(group, plan.threads);
  if (bound == plan.bound) return {};
  auto next = plan_memory(bound, plan.threads);
  return next.ok() ? std::optional(*next) : std::nullopt;
}

std::string text_of(const MemoryGroup& group) {
  if (group.limit == MemoryGroup::kNone) return "no control group sets a limit";
  return fmt::format("the control group may take {} MiB ({})", group.limit / kMiB, group.file);
}

void thrift_heap(std::size_t bound) {
  if (bound >= kSmall) return;
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(kMiB));
}

}  // namespace varve::daemon

#include "fuzz/campaign.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "fuzz/structure/draft.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif

namespace varve::fuzz {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kBatch = 64;
constexpr unsigned kMostJobs = 64;
constexpr rlim_t kMostMemory = 4ULL << 30;  // of a process: an image that makes it take more is a finding
constexpr auto kLookEvery = std::chrono::milliseconds(50);

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

// With those that have made failures small.
double cpu_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What a process tells of itself, where the one that started it can read it.
struct Worker {
  std::atomic<std::uint64_t> batch{0};  // first seed of those it has taken; all ones: it has none
  std::atomic<std::uint64_t> seed{0};
  TrialCounts counts;
};

struct Shared {
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> stop{false};
  Worker workers[kMostJobs];
};

void add(TrialCounts& sum, const TrialCounts& more) {
  sum.images += more.images;
  sum.whole += more.whole;
  sum.mounted += more.mounted;
  sum.repairs += more.repairs;
  sum.repaired += more.repaired;
  sum.checks += more.checks;
  sum.mounts += more.mounts;
}

void run_recipe(const Recipe& recipe, TrialCounts& counts, Stage stage = Stage::all) {
  suffer_stage(stage, *image_of(recipe), recipe.plan, counts);
}

void limit_process() {
  const rlimit memory{kMostMemory, kMostMemory}, none{0, 0};
  if (!kSanitized) ::setrlimit(RLIMIT_AS, &memory);  // they reserve terabytes
  ::setrlimit(RLIMIT_CORE, &none);
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), shared_(new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared),
        pids_(options.jobs), seen_(options.jobs), since_(options.jobs) {
    shared_->next = options.first_seed;
    for (Worker& worker : shared_->workers) worker.batch = ~0ULL;
    for (unsigned kind = 0; kind < kBaseImages; ++kind) base_image(kind);  // processes share them
  }
  ~Campaign() { ::munmap(shared_, sizeof(Shared)); }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  CampaignResult run() {
    for (unsigned job = 0; job < options_.jobs; ++job) start(job, 0);
    while (look()) std::this_thread::sleep_for(kLookEvery);  // nothing tells of a process that hangs
    CampaignResult result;
    result.seconds = seconds_since(began_);
    result.cpu_seconds = cpu_of_children();
    result.failures = failures_;
    result.next_seed = first_left_;
    if (result.next_seed == ~0ULL) result.next_seed = std::min(shared_->next.load(), end_);
    for (unsigned job = 0; job < options_.jobs; ++job) add(result.counts, shared_->workers[job].counts);
    return result;
  }

 private:
  bool take(Worker& worker) {
    const bool over = (options_.seconds > 0 && seconds_since(began_) >= options_.seconds) || shared_->stop;
    if (over) return false;
    worker.batch = shared_->next.fetch_add(kBatch);
    return worker.batch < end_;
  }

  void work(Worker& worker, std::uint64_t rest_from) {
    limit_process();
    // The rest of a batch of which one image has failed.
    bool has = rest_from > 0;
    for (; has || take(worker); has = false) {
      for (std::uint64_t seed = has ? rest_from : worker.batch.load(); seed < std::min(worker.batch + kBatch, end_); ++seed) {
        worker.seed = seed;
        run_recipe(recipe_of(seed, options_.corpus), worker.counts, options_.stage);
      }
    }
    worker.batch = ~0ULL;
  }

  void start(unsigned job, std::uint64_t rest_from) {
    since_[job] = Clock::now();
    pids_[job] = ::fork();
    if (pids_[job] != 0) return;
    work(shared_->workers[job], rest_from);
    std::_Exit(0);
  }

  // False: all have ended.
  bool look() {
    bool any = false;
    for (unsigned job = 0; job < options_.jobs; ++job) {
      if (pids_[job] <= 0) continue;
      int status = 0;
      if (::waitpid(pids_[job], &status, WNOHANG) == pids_[job]) has_ended(job, status);
      else end_if_slow(job);
      any |= pids_[job] > 0;
    }
    return any;
  }

  void end_if_slow(unsigned job) {
    const std::uint64_t seed = shared_->workers[job].seed;
    if (seed != seen_[job]) {
      seen_[job] = seed;
      since_[job] = Clock::now();
    }
    if (seconds_since(since_[job]) > options_.timeout) ::kill(pids_[job], SIGKILL);
  }

  void has_ended(unsigned job, int status) {
    pids_[job] = 0;
    if (status == 0) return;
    Worker& worker = shared_->workers[job];
    const std::uint64_t seed = worker.seed;
    report(seed);
    if (++failures_ >= options_.most_failures) {
      shared_->stop = true;
      first_left_ = std::min(first_left_, seed);
    } else {
      start(job, seed + 1);
    }
  }

  void report(std::uint64_t seed) const {
    const Recipe recipe = recipe_of(seed, options_.corpus);
    const Recipe small = shrink(recipe, options_.timeout);
    const std::string path = fmt::format("{}/failure-{}", options_.folder, seed);
    const auto bytes = bytes_of(small);
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    fmt::print(stderr, "seed {} fails; {} of {} mutations are enough:\n{}", seed, small.mutations.size(), recipe.mutations.size(),
               to_text(small));
    fails(small, options_.timeout, true);
    fmt::print(stderr, "to repeat it: fuzz_images --recipe {}\n", path);
  }

  const CampaignOptions& options_;
  const std::uint64_t end_ = options_.images ? options_.first_seed + options_.images : ~0ULL;
  Shared* const shared_;
  std::vector<pid_t> pids_;
  std::vector<std::uint64_t> seen_;
  std::vector<Clock::time_point> since_;
  const Clock::time_point began_ = Clock::now();
  unsigned failures_ = 0;
  std::uint64_t first_left_ = ~0ULL;
};

}  // namespace

Recipe recipe_of(std::uint64_t seed, const std::vector<Recipe>& corpus) {
  SeededRandom random(seed);
  if (corpus.empty() || random.next() % 2) return random_recipe(random);
  Recipe recipe = corpus[random.next() % corpus.size()];
  for (std::uint64_t times = 1 + random.next() % 4; times > 0; --times) vary(recipe, random);
  return recipe;
}

CampaignResult run_campaign(const CampaignOptions& options) { return Campaign(options).run(); }

bool fails(const Recipe& recipe, unsigned timeout, bool says) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    limit_process();
    if (!says) ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    ::alarm(timeout);
    TrialCounts counts;
    run_recipe(recipe, counts);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status && says) fmt::print(stderr, "{}\n", WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : "it has ended");
  return status != 0;
}

Recipe shrink(Recipe recipe, unsigned timeout) {
  if (!fails(recipe, timeout, false)) return recipe;  // not by itself
  for (std::size_t at = recipe.mutations.size(); at-- > 0;) {
    Recipe smaller = recipe;
    smaller.mutations.erase(smaller.mutations.begin() + static_cast<std::ptrdiff_t>(at));
    if (fails(smaller, timeout, false)) recipe = smaller;
  }
  return recipe;
}

}  // namespace varve::fuzz

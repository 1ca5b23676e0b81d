#include "workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

#include "tpcc.h"

namespace varve::bench {

namespace {

using Engine = std::mt19937_64;

double unit(Engine& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

std::vector<std::uint64_t> permutation(std::uint64_t blocks, Engine& random) {
  std::vector<std::uint64_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint64_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

class Uniform : public Workload {
 public:
  Uniform(std::uint64_t blocks, std::uint64_t seed) : blocks_(blocks), random_(seed) {}
  std::uint64_t next() override { return random_() % blocks_; }
  std::vector<double> rates() const override { return std::vector<double>(blocks_, 1.0 / static_cast<double>(blocks_)); }

 private:
  const std::uint64_t blocks_;
  Engine random_;
};

class Sequential : public Workload {
 public:
  explicit Sequential(std::uint64_t blocks) : blocks_(blocks) {}
  std::uint64_t next() override { return at_++ % blocks_; }

 private:
  const std::uint64_t blocks_;
  std::uint64_t at_ = 0;
};

class HotCold : public Workload {
 public:
  HotCold(std::uint64_t blocks, double hot_blocks, double hot_writes, std::uint64_t seed)
      : blocks_(blocks), hot_(static_cast<std::uint64_t>(hot_blocks * static_cast<double>(blocks))), share_(hot_writes),
        random_(seed), order_(permutation(blocks, random_)) {}
  std::uint64_t next() override {
    const std::uint64_t rank = unit(random_) < share_ ? random_() % hot_ : hot_ + random_() % (blocks_ - hot_);
    return order_[rank];
  }
  std::vector<double> rates() const override {
    std::vector<double> rates(blocks_, (1 - share_) / static_cast<double>(blocks_ - hot_));
    std::fill_n(rates.begin(), hot_, share_ / static_cast<double>(hot_));
    return rates;
  }

 private:
  const std::uint64_t blocks_, hot_;
  const double share_;
  Engine random_;
  std::vector<std::uint64_t> order_;
};

class Zipf : public Workload {
 public:
  Zipf(std::uint64_t blocks, double exponent, std::uint64_t seed)
      : random_(seed), order_(permutation(blocks, random_)), sums_(blocks) {
    double sum = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) sums_[i] = sum += std::pow(static_cast<double>(i + 1), -exponent);
    for (double& s : sums_) s /= sum;
  }
  std::uint64_t next() override { return order_[rank()]; }
  std::vector<double> rates() const override {
    std::vector<double> rates(sums_);
    std::adjacent_difference(rates.begin(), rates.end(), rates.begin());
    return rates;
  }

 protected:
  std::uint64_t rank() {
    const auto at = std::lower_bound(sums_.begin(), sums_.end(), unit(random_)) - sums_.begin();
    return std::min<std::uint64_t>(static_cast<std::uint64_t>(at), sums_.size() - 1);
  }
  Engine random_;
  std::vector<std::uint64_t> order_;

 private:
  std::vector<double> sums_;
};

class Drift : public Zipf {
 public:
  Drift(std::uint64_t blocks, std::uint64_t seed) : Zipf(blocks, 1.0, seed) {}
  std::uint64_t next() override {
    const std::uint64_t blocks = order_.size();
    const std::uint64_t turned = written_++ / (blocks / 4) * (blocks / 100);
    return order_[(rank() + turned) % blocks];
  }
  std::vector<double> rates() const override { return {}; }

 private:
  std::uint64_t written_ = 0;
};

class Phase : public Zipf {
 public:
  Phase(std::uint64_t blocks, std::uint64_t writes, std::uint64_t seed) : Zipf(blocks, 1.0, seed), change_(writes / 2) {}
  std::uint64_t next() override {
    if (written_++ == change_) order_ = permutation(order_.size(), random_);
    return order_[rank()];
  }

 private:
  const std::uint64_t change_;
  std::uint64_t written_ = 0;
};

std::optional<double> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  double value = 0;
  const auto rest = text.substr(prefix.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return value;
}

}  // namespace

std::unique_ptr<Workload> make_workload(std::string_view name, std::uint64_t blocks, std::uint64_t writes,
                                        std::uint64_t seed) {
  if (name == "uniform") return std::make_unique<Uniform>(blocks, seed);
  if (name == "sequential") return std::make_unique<Sequential>(blocks);
  if (name == "hotcold-10-90") return std::make_unique<HotCold>(blocks, 0.1, 0.9, seed);
  if (name == "hotcold-20-80") return std::make_unique<HotCold>(blocks, 0.2, 0.8, seed);
  if (name == "tpcc") return make_tpcc(blocks, seed);
  if (name == "drift") return std::make_unique<Drift>(blocks, seed);
  if (name == "phase") return std::make_unique<Phase>(blocks, writes, seed);
  if (const auto exponent = number_after(name, "zipf-")) return std::make_unique<Zipf>(blocks, *exponent, seed);
  return nullptr;
}

}  // namespace varve::bench

#include "tpcc.h"

#include <algorithm>
#include <deque>
#include <random>

namespace varve::bench {

namespace {

constexpr std::uint64_t kWarehouses = 4, kDistricts = 10;
constexpr std::uint64_t kItems = 100'000, kCustomers = 3'000;  // of a warehouse, of a district
constexpr double kPage = 4096;
// Bytes of a row.
constexpr double kStock = 306, kCustomer = 655, kOrder = 24, kNewOrder = 8, kOrderLine = 54, kHistory = 46;
constexpr double kDirtyShare = 0.005;  // of all pages

class Tpcc final : public Workload {
 public:
  Tpcc(std::uint64_t blocks, std::uint64_t seed)
      : blocks_(blocks),
        per_warehouse_(blocks / kWarehouses),
        random_(seed),
        dirty_(blocks, false),
        most_dirty_(std::max<std::size_t>(8, static_cast<std::size_t>(kDirtyShare * static_cast<double>(blocks)))) {
    const double stock = kItems * kStock, customers = kDistricts * kCustomers * kCustomer;
    const double appended = kDistricts * kCustomers * (kOrder + kNewOrder + 10 * kOrderLine + kHistory);
    const double whole = stock + customers + appended;
    const auto pages = static_cast<double>(per_warehouse_ - kFirst);
    stock_pages_ = static_cast<std::uint64_t>(pages * stock / whole);
    customer_pages_ = static_cast<std::uint64_t>(pages * customers / whole);
    append_pages_ = per_warehouse_ - kFirst - stock_pages_ - customer_pages_;
    scale_ = pages * kPage / whole;
    for (Appended& a : appended_) a = {random_() % append_pages_, 0};
  }

  std::uint64_t next() override {
    while (queue_.size() <= most_dirty_) transaction();
    const std::uint64_t page = queue_.front();
    queue_.pop_front();
    dirty_[page] = false;
    return page;
  }

 private:
  static constexpr std::uint64_t kFirst = 2;  // pages of a warehouse: its own row, its districts
  struct Appended {
    std::uint64_t page = 0;
    double bytes = 0;
  };

  std::uint64_t uniform(std::uint64_t most) { return random_() % (most + 1); }
  // NURand of the specification, of 0..most.
  std::uint64_t skewed(std::uint64_t a, std::uint64_t most) { return (uniform(a) | uniform(most)) % (most + 1); }

  void touch(std::uint64_t warehouse, std::uint64_t page) {
    const std::uint64_t at = std::min(blocks_ - 1, warehouse * per_warehouse_ + page);
    if (dirty_[at]) return;
    dirty_[at] = true;
    queue_.push_back(at);
  }
  void touch_stock(std::uint64_t w) { touch(w, kFirst + skewed(8191, kItems - 1) * stock_pages_ / kItems); }
  void touch_customer(std::uint64_t w) {
    const std::uint64_t row = uniform(kDistricts - 1) * kCustomers + skewed(1023, kCustomers - 1);
    touch(w, kFirst + stock_pages_ + row * customer_pages_ / (kDistricts * kCustomers));
  }
  void touch_order(std::uint64_t w, std::uint64_t behind) {
    const std::uint64_t at = (appended_[w].page + append_pages_ - behind % append_pages_) % append_pages_;
    touch(w, kFirst + stock_pages_ + customer_pages_ + at);
  }
  void append(std::uint64_t w, double bytes) {
    Appended& a = appended_[w];
    a.bytes += bytes;
    touch_order(w, 0);
    if (a.bytes < kPage) return;
    a.bytes -= kPage;
    a.page = (a.page + 1) % append_pages_;  // the oldest orders make room
  }

  void transaction() {
    const std::uint64_t w = uniform(kWarehouses - 1), kind = uniform(99);
    if (kind < 45) new_order(w);
    else if (kind < 88) payment(w);
    else if (kind < 92) delivery(w);
  }
  void new_order(std::uint64_t w) {
    touch(w, 1);
    const std::uint64_t lines = 5 + uniform(10);
    for (std::uint64_t i = 0; i < lines; ++i) touch_stock(w);
    append(w, kOrder + kNewOrder + static_cast<double>(lines) * kOrderLine);
  }
  void payment(std::uint64_t w) {
    touch(w, 0);
    touch(w, 1);
    touch_customer(w);
    append(w, kHistory);
  }
  // A district's oldest order that is not delivered is 900 orders back.
  void delivery(std::uint64_t w) {
    for (std::uint64_t district = 0; district < kDistricts; ++district) {
      const double back = scale_ * 900 * kDistricts * (kOrder + kNewOrder + 10 * kOrderLine) / kPage;
      touch_order(w, static_cast<std::uint64_t>(back) + district);
      touch_customer(w);
    }
  }

  const std::uint64_t blocks_, per_warehouse_;
  std::mt19937_64 random_;
  std::uint64_t stock_pages_ = 1, customer_pages_ = 1, append_pages_ = 1;
  double scale_ = 1;
  Appended appended_[kWarehouses];
  std::vector<bool> dirty_;
  std::deque<std::uint64_t> queue_;  // dirty pages, oldest first
  const std::size_t most_dirty_;
};

}  // namespace

std::unique_ptr<Workload> make_tpcc(std::uint64_t blocks, std::uint64_t seed) { return std::make_unique<Tpcc>(blocks, seed); }

}  // namespace varve::bench

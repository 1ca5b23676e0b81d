#include "mkfs/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "mkfs/unit_search.h"

namespace varve::mkfs {

namespace {

constexpr std::uint64_t kFirstBytes = 8 << 20;     // superblocks, lease, partition tables
constexpr std::uint64_t kMostUnit = 64 << 20;      // what segments can be as long as
constexpr std::uint64_t kUnits = 64;               // with fewer of them the layout does not go by them
constexpr std::uint64_t kSeeksNs = 3'000'000;      // to read a block; cards need 0.5 to 2 ms
constexpr std::uint64_t kCopyBytes = 256 << 10;    // what takes as long as writing so much in a row as well has copied something
constexpr std::uint64_t kLeastBlockNs = 100;       // 40 GB/s
constexpr std::size_t kReads = 15, kUsual = 9;
constexpr std::size_t kScattered = 8, kMostScattered = 128;  // writes at once, and in all
constexpr std::uint64_t kScatteredNs = 2'000'000'000;        // in which they are enough
constexpr unsigned kMostTries = 4;       // on a busy machine
constexpr double kBusy = 0.2;            // share of the time in which something waited for a CPU

std::string unit_text(std::uint64_t bytes) { return fmt::format("{:g} MiB", static_cast<double>(bytes) / (1 << 20)); }

std::uint32_t ns_of(std::uint64_t ns) { return static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, ~std::uint32_t{0})); }

double ms(std::uint64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void adopt(const Findings& found, format::MakeParameters& parameters) {
  using format::Source;
  if (found.erase_unit && parameters.erase_source != Source::given) {
    parameters.erase_unit.blocks = found.erase_unit >> kBlockShift;
    parameters.erase_source = Source::measured;
  }
  if (found.streams && parameters.streams_source != Source::given) {
    parameters.streams = found.streams;
    parameters.streams_source = Source::measured;
  }
  if (found.erase_unit) parameters.costs = found.costs;
}

Trial::Trial(io::BlockDevice& device, std::uint64_t bytes, Clock& clock, Random& random, Say say, HostWaits waits)
    : bytes_(bytes), device_(device, clock, random, std::move(waits)), random_(random), say_(std::move(say)) {
  const std::uint64_t told = device.geometry().before, before = told % kBlockSize ? 0 : told;  // else no block is where a unit begins
  most_ = std::min(kMostUnit, std::bit_floor(bytes / kUnits));
  const std::uint64_t step = std::max<std::uint64_t>(3 * most_, 1);  // of units that are three times a power of two, too
  base_ = (before + kFirstBytes + step - 1) / step * step - before;
}

Result<Findings> Trial::run() {
  if (bytes_ < kLeastBytes) {
    found_.outcome = fmt::format("not tried: smaller than {} MiB", kLeastBytes >> 20);
    return found_;
  }
  for (unsigned tries = 1; tries <= kMostTries; ++tries) {
    const TimedDevice::Moment began = device_.now();
    found_ = {};
    places_.clear();
    TRY(try_once());
    const double share = device_.busy_share(began);
    busy_ = share > kBusy && !found_.erase_unit && !(seeks() && device_.rotational());
    if (!busy_) break;
    found_.outcome = fmt::format("unclear: the machine is busy, something waited for a CPU in {:.0f} % of the time; try again when it is "
                                 "idle, or give --erase-unit and --streams", 100 * share);
    if (device_.elapsed_ns() > kMostNs / 2) break;
    if (tries < kMostTries) say_(fmt::format("nothing clear, but the machine is busy ({:.0f} %): once more", 100 * share));
  }
  found_.took_ns = device_.elapsed_ns();
  return found_;
}

Status Trial::try_once() {
  TRY(measure_reads());
  TRY(measure_rows());
  if (seeks()) found_.outcome = fmt::format("nothing: reading a block takes {:.0f} ms, as on a disk or far away", ms(found_.read_ns));
  else TRY(find_units());
  if (!found_.costs.scattered) TRY(measure_scattered());
  say_(fmt::format("a block written here and there: {:.2f} ms", ms(found_.costs.scattered)));
  // No device is that quick, and none takes less for what is here and there than for what is in a row.
  if (found_.costs.in_row < kLeastBlockNs || found_.costs.scattered < found_.costs.in_row / 2) found_.costs = {};
  return {};
}

bool Trial::seeks() const { return found_.read_ns >= kSeeksNs; }

double Trial::row_ns(std::uint64_t bytes) const {
  return static_cast<double>(found_.costs.in_row) * static_cast<double>(bytes) / kBlockSize;
}

Status Trial::measure_reads() {
  std::vector<std::uint64_t> times;
  for (std::size_t i = 0; i < kReads; ++i) {
    const std::uint64_t block = random_.next() % (bytes_ / kBlockSize);
    times.push_back(TRY(device_.read(block * kBlockSize, kBlockSize)));
  }
  found_.read_ns = median_of(times);
  say_(fmt::format("a block is read in {:.2f} ms", ms(found_.read_ns)));
  return {};
}

Status Trial::measure_rows() {
  std::vector<std::uint64_t> rows;
  for (unsigned i = 0; i < 2; ++i) {
    places_.push_back({base_ + i * most_});
    const auto times = TRY(fill(device_, places_.back().at, std::min(most_, kFilledBytes)));
    rows.insert(rows.end(), times.begin(), times.end());
  }
  constexpr std::uint64_t kBlocks = TimedDevice::kRowBytes / kBlockSize;
  found_.costs.in_row = ns_of(median_of(rows) / kBlocks);
  say_(fmt::format("writes in a row: {:.1f} MB/s", 1e3 * kBlockSize / std::max(found_.costs.in_row, 1U)));
  return {};
}

// The usual write, three times, and something that must be a copy.
Result<std::uint64_t> Trial::slow_from() {
  std::vector<std::uint64_t> usual;
  for (std::size_t i = 0; i <= kUsual; ++i, places_[0].at += TimedDevice::kPieceBytes) {
    const std::uint64_t ns = TRY(device_.write(places_[0].at, TimedDevice::kPieceBytes));
    if (i > 0) usual.push_back(ns);  // the first one begins anew
  }
  return 3 * median_of(usual) + static_cast<std::uint64_t>(row_ns(kCopyBytes));
}

Status Trial::find_units() {
  Turns turns(device_, TRY(slow_from()), kMostNs, busy_);
  const auto streams = TRY(find_streams(turns));
  if (!streams) return find_nothing(turns, "the same writes were quick at one time and slow at another");
  if (*streams == 0) return find_nothing(turns, fmt::format("{} places are written in turn as quickly as one", kMostStreams));
  const std::uint64_t slow_ns = turns.usual_slow_ns();
  const std::uint64_t unit = TRY(UnitSearch(device_, turns, base_, most_, *streams, say_).find());
  if (!unit || !explains(unit, slow_ns))
    return find_nothing(turns, fmt::format("{} places in turn are quick and more are slow, but no unit explains that", *streams));
  found_.erase_unit = unit;
  found_.streams = static_cast<std::uint16_t>(*streams);
  found_.costs.scattered = ns_of(slow_ns);  // nearly all places are in no open unit
  found_.outcome = fmt::format("units of {}, {} of them open at a time", unit_text(unit), *streams);
  return {};
}

Status Trial::find_nothing(const Turns& turns, const std::string& why) {
  found_.outcome = "nothing: " + (turns.is_late() ? "it took too long" : why);
  return {};
}

// A copy takes about as long as writing what is copied. Nobody knows how much of it had content.
bool Trial::explains(std::uint64_t unit, std::uint64_t slow_ns) const {
  const auto slow = static_cast<double>(slow_ns);
  return slow >= row_ns(std::min(unit, kFilledBytes)) / 4 && slow <= 16 * row_ns(unit);
}

// Places are added one by one until they are slow. 0: they never were; none: it is unclear.
Result<std::optional<unsigned>> Trial::find_streams(Turns& turns) {
  for (unsigned number = 2; number <= kMostStreams + 1; ++number) {
    if (places_.size() < number) {
      places_.push_back({base_ + (number - 1) * most_});
      TRY(fill(device_, places_.back().at, std::min(most_, kFilledBytes)));
    }
    const Pace pace = TRY(turns.take(std::span(places_).first(number)));
    if (pace != Pace::quick || std::has_single_bit(number)) say_(fmt::format("{} places written in turn: {}", number, name_of(pace)));
    if (pace == Pace::unclear) return std::optional<unsigned>();
    if (pace == Pace::quick) continue;
    if (!TRY(is_repeated(turns, number - 1))) return std::optional<unsigned>();
    return std::optional(number - 1);
  }
  return std::optional(0U);
}

// With one place fewer it must be quick again, and with all of them slow. One place alone is quick: slow_from() has gone by it.
Result<bool> Trial::is_repeated(Turns& turns, unsigned streams) {
  if (streams == 1) return true;
  if (TRY(turns.take(std::span(places_).first(streams))) != Pace::quick) return false;
  return TRY(turns.take(std::span(places_).first(streams + 1))) == Pace::slow;
}

// Where there is content. A disk seeks as far as it would in use.
Status Trial::measure_scattered() {
  const std::uint64_t filled = std::min(most_, kFilledBytes);
  std::vector<std::uint64_t> times;
  std::uint64_t ns = 0, written = 0;
  while (written < kMostScattered && ns < kScatteredNs) {
    std::vector<std::uint64_t> to;
    for (std::size_t i = 0; i < kScattered; ++i) {
      const std::uint64_t place = base_ + random_.next() % places_.size() * most_ + random_.next() % (filled / kBlockSize) * kBlockSize;
      const std::uint64_t anywhere = kFirstBytes + random_.next() % ((bytes_ - kFirstBytes) / kBlockSize) * kBlockSize;
      to.push_back(seeks() ? anywhere : place);
    }
    times.push_back(TRY(device_.write_blocks(to)));
    ns += times.back();
    written += to.size();
  }
  ns = median_of(times) * times.size() + TRY(device_.flush());
  found_.costs.scattered = ns_of(ns / written);
  return {};
}

}  // namespace varve::mkfs

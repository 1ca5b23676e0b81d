#include "measure.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>

#include "base/clock.h"
#include "base/crc32c.h"
#include "blocks/back_off.h"
#include "blocks/promise.h"
#include "blocks/unit_decoder.h"
#include "blocks/unit_encoder.h"

namespace varve::bench {

namespace {

constexpr std::size_t kUnitBytes = format::kUnitBlocks * kBlockSize;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Work>
double seconds_of(Work work) {
  const double before = cpu_seconds();
  work();
  return cpu_seconds() - before;
}

void add_file(const std::filesystem::path& path, std::vector<Unit>& units, std::uint64_t& left) {
  std::ifstream file(path, std::ios::binary);
  while (file && left > 0) {
    Unit unit(kUnitBytes);
    file.read(reinterpret_cast<char*>(unit.data()), static_cast<std::streamsize>(unit.size()));
    unit.resize(round_up(static_cast<std::size_t>(file.gcount()), kBlockSize));
    if (unit.size() < 2 * kBlockSize) return;
    left -= std::min<std::uint64_t>(left, unit.size());
    units.push_back(std::move(unit));
  }
}

// A bench must not lie: what is decoded has to be what was encoded.
void compare(std::span<const std::byte> content, const Unit& unit) {
  if (std::ranges::equal(content, unit)) return;
  std::cerr << "a unit came back differently\n";
  std::exit(1);
}

}  // namespace

std::vector<Unit> units_below(const std::vector<std::filesystem::path>& places, std::uint64_t mib) {
  std::vector<std::filesystem::path> files;
  for (const auto& place : places) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(place, failed)) files.push_back(place);
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(place, std::filesystem::directory_options::skip_permission_denied, failed))
      if (entry.is_regular_file(failed) && !entry.is_symlink(failed)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Unit> units;
  std::uint64_t left = mib * kMiB;
  for (const auto& file : files) add_file(file, units, left);
  return units;
}

std::vector<Unit> units_of_noise(std::uint64_t mib) {
  SeededRandom random(1);
  std::vector<Unit> units(mib * kMiB / kUnitBytes, Unit(kUnitBytes));
  for (Unit& unit : units) {
    for (std::size_t at = 0; at < unit.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t value = random.next();
      std::memcpy(unit.data() + at, &value, sizeof value);
    }
  }
  return units;
}

CodingResult measure_coding(const std::vector<Unit>& units, const blocks::Compression& how) {
  blocks::UnitEncoder encoder;
  blocks::UnitDecoder decoder;
  CodingResult result;
  Unit stored(kUnitBytes);
  for (const Unit& unit : units) {
    const auto blocks = static_cast<std::uint32_t>(unit.size() / kBlockSize);
    std::uint32_t taken = 0;
    result.encode_seconds += seconds_of([&] { taken = encoder.encode(unit, how, stored); });
    const bool is_promising = blocks::is_promising(unit);
    ++result.units;
    result.blocks += blocks;
    result.stored += taken ? taken : blocks;
    if (taken == 0) {
      result.vain_units += is_promising;
      continue;
    }
    ++result.kept;
    if (!is_promising) result.missed_blocks += blocks - taken;
    Result<AlignedBuffer> content = Errc::io;
    result.decode_seconds += seconds_of([&] { content = decoder.decode(std::span(stored).first(taken * kBlockSize)); });
    if (!content.ok()) {
      std::cerr << content.error().message() << '\n';
      std::exit(1);
    }
    compare(content.value().span(), unit);
    result.decoded_bytes += unit.size();
  }
  return result;
}

PromiseResult measure_promise(const std::vector<Unit>& units) {
  PromiseResult result;
  Unit copy(kUnitBytes);
  std::uint32_t sum = 0;
  (void)blocks::is_promising(units.front());  // its table is made once
  result.base_seconds = seconds_of([&] {
    for (const Unit& unit : units) {
      std::ranges::copy(unit, copy.begin());
      for (std::size_t at = 0; at < unit.size(); at += kBlockSize) sum += crc32c(std::span(copy).subspan(at, kBlockSize));
    }
  });
  result.look_seconds = seconds_of([&] {
    for (const Unit& unit : units) result.promising += blocks::is_promising(unit);
  });
  blocks::UnitEncoder encoder;
  blocks::BackOff back_off;
  result.stream_seconds = seconds_of([&] {
    for (const Unit& unit : units) {
      if (!back_off.may_try()) continue;
      const bool is_kept = blocks::is_promising(unit) && encoder.encode(unit, {}, copy) > 0;
      is_kept ? back_off.succeeded() : back_off.failed();
    }
  });
  if (sum == 1) std::cerr << '\n';  // so that no compiler leaves the sums out
  return result;
}

}  // namespace varve::bench

// Ratio and speed of coded units on real files, and what the look before an attempt costs and misses.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "measure.h"

namespace {

using namespace varve;

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

void print_coding(const std::vector<bench::Unit>& units, const char* name) {
  const auto r = bench::measure_coding(units, *blocks::parse_compression(name).value());
  const double mib = static_cast<double>(r.blocks) * static_cast<double>(kBlockSize) / static_cast<double>(kMiB);
  const double decoded_mib = static_cast<double>(r.decoded_bytes) / static_cast<double>(kMiB);
  std::printf("| %s | %.1f %% | %.1f %% | %.0f | %.0f | %.2f %% | %.1f %% |\n", name,
              percent(static_cast<double>(r.stored), static_cast<double>(r.blocks)),
              percent(static_cast<double>(r.kept), static_cast<double>(r.units)), mib / r.encode_seconds,
              r.decode_seconds > 0 ? decoded_mib / r.decode_seconds : 0.0,
              percent(static_cast<double>(r.missed_blocks), static_cast<double>(r.blocks)),
              percent(static_cast<double>(r.vain_units), static_cast<double>(r.units)));
}

int measure(const std::vector<bench::Unit>& units, bool is_noise) {
  if (units.empty()) {
    std::cerr << "no file there has two blocks: name a tree with larger ones\n";
    return 1;
  }
  std::printf("%zu units\n\n", units.size());
  std::printf("| | stored | units kept | encode MiB/s | decode MiB/s | missed | in vain |\n|---|---:|---:|---:|---:|---:|---:|\n");
  for (const char* name : {"lz4", "zstd:1", "zstd", "zstd:9"}) print_coding(units, name);
  const auto look = bench::measure_promise(units);
  std::printf("\npromise: %.2f us a unit, %.1f %% of a copy with checksums; %.1f %% of the units have it\n",
              look.look_seconds * 1e6 / static_cast<double>(units.size()), percent(look.look_seconds, look.base_seconds),
              percent(static_cast<double>(look.promising), static_cast<double>(units.size())));
  if (is_noise) std::printf("with the back-off: %.2f %% of a copy with checksums\n", percent(look.stream_seconds, look.base_seconds));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Ratio and speed of coded units on real files, on one thread");
  std::vector<std::string> places;
  std::uint64_t mib = 256;
  bool noise = false;
  app.add_option("place", places, "files or directories that are read");
  app.add_option("--mib", mib, "how much is read, at most")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_flag("--noise", noise, "random bytes instead of files");
  CLI11_PARSE(app, argc, argv);
  if (!noise && places.empty()) {
    std::cerr << "give a file or a directory, or --noise\n";
    return 2;
  }
  return measure(noise ? bench::units_of_noise(mib) : bench::units_below({places.begin(), places.end()}, mib), noise);
}

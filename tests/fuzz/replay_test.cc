// Every corpus file, every seed, and seeded mutations of both, through every target. Without clang this is all the
// fuzzing there is; with sanitizers it sees what they see.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "fuzz/target.h"
#include "support/places.h"
#include "support/settings.h"

namespace varve::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

Bytes load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::vector<Bytes> corpus(const Target& target) {
  std::vector<Bytes> all = target.seeds();
  const std::filesystem::path folder = std::filesystem::path(test::source_folder()) / "tests/fuzz/corpus" / target.name;
  if (!std::filesystem::is_directory(folder)) return all;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) all.push_back(load(file));
  return all;
}

void mutate(Bytes& bytes, Random& random) {
  for (std::uint64_t n = 1 + random.next() % 4; n > 0; --n) {
    const std::size_t at = bytes.empty() ? 0 : random.next() % bytes.size();
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random.next() % 6) {
      case 0:
        if (!bytes.empty()) *place ^= static_cast<std::byte>(1U << random.next() % 8);
        break;
      case 1:
        if (!bytes.empty()) *place = static_cast<std::byte>(random.next());
        break;
      case 2:
        if (!bytes.empty()) *place = random.next() % 2 ? std::byte{0xFF} : std::byte{0};
        break;
      case 3:
        bytes.insert(place, static_cast<std::byte>(random.next()));
        break;
      case 4:
        if (!bytes.empty()) bytes.erase(place);
        break;
      default:
        bytes.resize(random.next() % (bytes.size() + 2));
    }
  }
}

class Replay : public ::testing::TestWithParam<Target> {};

TEST_P(Replay, Corpus) {
  const Target& target = GetParam();
  for (const Bytes& input : corpus(target)) target.run(input);
}

// VARVE_FUZZ_RUNS=n tries so many instead; VARVE_SEED begins elsewhere.
TEST_P(Replay, Mutations) {
  const Target& target = GetParam();
  const std::vector<Bytes> inputs = corpus(target);
  ASSERT_FALSE(inputs.empty());
  const std::uint64_t runs = test::number_setting("VARVE_FUZZ_RUNS", target.mutations);
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::uint64_t seed = test::first_seed() * 1'000'003 + i;
    SeededRandom random(seed);
    Bytes input = inputs[random.next() % inputs.size()];
    (target.mutate ? target.mutate : mutate)(input, random);
    SCOPED_TRACE(seed);
    target.run(input);
  }
}

// The corpus of a libFuzzer run begins with these files.
TEST_P(Replay, WritesSeedsOnRequest) {
  const std::string folder = test::setting("VARVE_WRITE_SEEDS");
  if (folder.empty()) GTEST_SKIP() << "no VARVE_WRITE_SEEDS";
  const auto place = std::filesystem::path(folder) / GetParam().name;
  std::filesystem::create_directories(place);
  std::size_t number = 0;
  for (const Bytes& seed : GetParam().seeds()) {
    std::ofstream file(place / ("seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Replay, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace varve::fuzz

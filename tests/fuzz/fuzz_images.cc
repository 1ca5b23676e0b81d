// fuzz_images: whole images at full speed, without sanitizers and without coverage. See docs/reliability.md, "Hostile images".
#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/structure/draft.h"

namespace varve::fuzz {
namespace {

constexpr const char* kHelp =
    "fuzz_images [options]: tries mutated images until a number or a time is reached, 10000 images if neither is given\n"
    "  --images N     so many\n"
    "  --seconds S    until then\n"
    "  --seed N       the first one; each seed is one image\n"
    "  --state FILE   goes on with the seed that stands there, if it exists, and writes the next one there at its end\n"
    "  --jobs N       processes (1)\n"
    "  --failures N   ends after so many (1)\n"
    "  --folder DIR   where failing inputs go (.)\n"
    "  --corpus DIR   inputs to begin with (that of the sources); an empty name: none\n"
    "  --timeout S    an image that takes longer has failed (60)\n"
    "  --stage NAME   nothing but check, use (mount, read, write, unmount) or repair, to measure that\n"
    "  --recipe FILE  nothing but this input, in this process\n"
    "  --save IMAGE   with --recipe: writes the image for fsck.varve instead\n"
    "Exit code: 0: nothing was found; 1: something; 2: it was called wrongly.\n";

Recipe load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return parse_recipe(std::as_bytes(std::span(text.data(), text.size())));
}

std::vector<Recipe> load_corpus(const std::string& folder) {
  std::vector<Recipe> all;
  if (folder.empty() || !std::filesystem::is_directory(folder)) return all;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) all.push_back(load(file));
  return all;
}

int try_one(const std::string& path, const std::string& save) {
  const Recipe recipe = load(path);
  fmt::print(stderr, "{}", to_text(recipe));
  if (!save.empty()) return image_of(recipe)->save(save).ok() ? 0 : 2;
  TrialCounts counts;
  suffer(*image_of(recipe), recipe.plan, counts);
  fmt::print("{}\n", counts.whole ? "fsck calls it whole, and so it is" : counts.mounted ? "damaged, but it mounts" : "damaged");
  return 0;
}

struct Arguments {
  CampaignOptions options;
  std::string state, recipe, save, corpus = VARVE_CORPUS "/image";
  bool has_seed = false;
};

bool parse_stage(const std::string& name, Stage& stage) {
  constexpr const char* kNames[] = {"all", "check", "use", "repair"};
  for (std::uint8_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) {
      stage = static_cast<Stage>(i);
      return true;
    }
  return false;
}

bool parse(int argc, char** argv, Arguments& to) {
  static const option kOptions[] = {{"images", required_argument, nullptr, 'i'},  {"seconds", required_argument, nullptr, 's'},
                                    {"seed", required_argument, nullptr, 'e'},    {"state", required_argument, nullptr, 't'},
                                    {"jobs", required_argument, nullptr, 'j'},    {"failures", required_argument, nullptr, 'f'},
                                    {"folder", required_argument, nullptr, 'd'},  {"corpus", required_argument, nullptr, 'c'},
                                    {"timeout", required_argument, nullptr, 'o'}, {"recipe", required_argument, nullptr, 'r'},
                                    {"stage", required_argument, nullptr, 'g'},   {"save", required_argument, nullptr, 'v'},
                                    {"help", no_argument, nullptr, 'h'},          {}};
  CampaignOptions& options = to.options;
  for (int c; (c = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (c) {
      case 'i': options.images = std::stoull(optarg); break;
      case 's': options.seconds = std::stod(optarg); break;
      case 'e':
        options.first_seed = std::stoull(optarg);
        to.has_seed = true;
        break;
      case 't': to.state = optarg; break;
      case 'j': options.jobs = std::clamp(static_cast<unsigned>(std::stoul(optarg)), 1U, 64U); break;
      case 'f': options.most_failures = static_cast<unsigned>(std::stoul(optarg)); break;
      case 'd': options.folder = optarg; break;
      case 'c': to.corpus = optarg; break;
      case 'o': options.timeout = static_cast<unsigned>(std::stoul(optarg)); break;
      case 'g':
        if (!parse_stage(optarg, options.stage)) return false;
        break;
      case 'r': to.recipe = optarg; break;
      case 'v': to.save = optarg; break;
      default: return false;
    }
  }
  if (options.images == 0 && options.seconds == 0) options.images = 10000;
  return optind == argc;
}

int run(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, arguments)) {
    fmt::print(stderr, "{}", kHelp);
    return 2;
  }
  if (!arguments.recipe.empty()) return try_one(arguments.recipe, arguments.save);
  CampaignOptions& options = arguments.options;
  options.corpus = load_corpus(arguments.corpus);
  if (!arguments.state.empty() && !arguments.has_seed) std::ifstream(arguments.state) >> options.first_seed;
  const CampaignResult result = run_campaign(options);
  const TrialCounts& counts = result.counts;
  const auto rate = [&](double seconds) { return static_cast<double>(counts.images) / std::max(seconds, 1e-3); };
  fmt::print("{} images in {:.1f} s, {:.0f} a second, {:.0f} a CPU second\n", counts.images, result.seconds, rate(result.seconds),
             rate(result.cpu_seconds));
  fmt::print("{} whole for fsck, {} damaged that mounted, {} of {} repairs made whole; {} checks, {} mounts\n", counts.whole,
             counts.mounted, counts.repaired, counts.repairs, counts.checks, counts.mounts);
  fmt::print("next seed {}; {} failures\n", result.next_seed, result.failures);
  if (!arguments.state.empty()) std::ofstream(arguments.state) << result.next_seed << '\n';
  return result.failures ? 1 : 0;
}

}  // namespace
}  // namespace varve::fuzz

int main(int argc, char** argv) { return varve::fuzz::run(argc, argv); }

// What a durable small write costs inside: heap objects and context switches of one 4 KiB write + fsync.
//
// One serving thread with a reactor, as in the daemon, without the kernel's part. Prints JSON.
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fs/filesystem.h"
#include "heap_objects.h"
#include "io/block_device.h"
#include "io/reactor.h"
#include "remote/open_device.h"

namespace {

using namespace varve;

struct Used {
  std::uint64_t objects = heap_objects();
  std::uint64_t switches = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_nvcsw);
  }();
};

// Calls attempt() until it has an answer, as a serving thread does.
template <class Attempt>
auto served(fs::Filesystem& mounted, io::Reactor& reactor, Attempt attempt) {
  fs::Operation operation(mounted.operations(), {}, &reactor);
  std::optional<decltype(attempt(operation))> answer;
  operation::run(operation, [&] { return attempt(operation); }, [&](decltype(attempt(operation)) result) { answer = std::move(result); });
  while (!answer) reactor.wait(-1);
  if (!answer->ok()) {
    std::cerr << answer->error().message() << '\n';
    std::exit(1);
  }
  return std::move(*answer);
}

int measure(const std::string& image, unsigned operations) {
  const auto device = remote::open_device(image, {});
  if (!device.ok()) {
    std::cerr << device.error().message() << '\n';
    return 1;
  }
  auto mounted = fs::Filesystem::mount(**device, {});
  if (!mounted.ok()) {
    std::cerr << mounted.error().message() << '\n';
    return 1;
  }
  fs::Filesystem& fs = **mounted;
  {
    const auto reactor = io::Reactor::make();
    const Ino file = served(fs, *reactor, [&](fs::Operation& op) {
                       return fs.make(op, kRootIno, "file", fs::NewNode{S_IFREG | 0644, 0, 0, {}});
                     })->ino;
    const std::vector<std::byte> data(kBlockSize, std::byte{7});
    const auto once = [&](std::uint64_t i) {
      (void)served(fs, *reactor, [&](fs::Operation& op) { return fs.write(op, file, i % 1024 * kBlockSize, data, {}); });
      (void)served(fs, *reactor, [&](fs::Operation& op) { return fs.fsync(op, file); });
    };
    for (unsigned i = 0; i < 1024; ++i) once(i);
    const Used before;
    for (unsigned i = 0; i < operations; ++i) once(i);
    const Used after;
    const auto each = [&](std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) / operations; };
    std::cout << nlohmann::json{{"operations", operations},
                                {"heap_objects_each", each(before.objects, after.objects)},
                                {"context_switches_each", each(before.switches, after.switches)}}
                     .dump(2)
              << '\n';
  }
  return fs.unmount().ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Heap objects and context switches of one 4 KiB write + fsync on an image made by mkfs.varve");
  std::string image;
  unsigned operations = 4096;
  app.add_option("image", image, "image file or device; a file is made on it")->required();
  app.add_option("--operations", operations, "how many to count")->check(CLI::Range(1U, 10'000'000U));
  CLI11_PARSE(app, argc, argv);
  return measure(image, operations);
}

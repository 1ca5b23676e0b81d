#include "base/cpu_waits.h"

#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/descriptor.h"
#include "base/leading_numbers.h"

namespace varve {

namespace {

std::uint64_t wait_in(const Descriptor& schedstat) {
  std::uint64_t numbers[2];  // ns run, ns waited
  read_leading_numbers(schedstat.get(), numbers);
  return numbers[1];
}

Descriptor open_schedstat(const std::filesystem::path& task) {
  return Descriptor(::open((task / "schedstat").c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::uint64_t cpu_wait_of_thread_ns() {
  static thread_local const Descriptor schedstat = open_schedstat("/proc/thread-self");
  return wait_in(schedstat);
}

std::uint64_t cpu_wait_of_process_ns() {
  std::uint64_t ns = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator task("/proc/self/task", failed), end; !failed && task != end; task.increment(failed))
    ns += wait_in(open_schedstat(task->path()));
  return ns;
}

// "some avg10=0.12 avg60=0.34 avg300=0.56 total=789", the total in µs.
std::uint64_t cpu_wait_of_machine_ns() {
  std::ifstream pressure("/proc/pressure/cpu");
  constexpr std::string_view kTotal = "total=";
  for (std::string word; pressure >> word;)
    if (word.starts_with(kTotal)) return std::strtoull(word.c_str() + kTotal.size(), nullptr, 10) * 1000;
  return 0;
}

}  // namespace varve

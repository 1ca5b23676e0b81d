// Keeps the list of tests that the thread sanitizer has to see (tests/threaded): each case that starts a thread must be on it. Every
// program of tests has this; with sanitizers, which watch threads themselves, it does nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#ifdef VARVE_WATCH_THREADS

#include <dlfcn.h>
#include <fnmatch.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "support/places.h"

namespace {

std::atomic<unsigned> threads_started{0};

}  // namespace

// Called instead of the library's, also by std::thread.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto library = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
  ++threads_started;
  return library(thread, attributes, run, argument);
}

namespace varve::test {
namespace {

// Of this program, as tests/threaded has them: patterns of gtest's filters, joined by colons.
std::string patterns() {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  std::ifstream list(source_folder() + "/tests/threaded");
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string name, cases;
    if (words >> name >> cases && name == program) return cases;
  }
  return "";
}

bool is_listed(const std::string& name) {
  static const std::string all = patterns();
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t to = std::min(all.find(':', from), all.size());
    if (::fnmatch(all.substr(from, to - from).c_str(), name.c_str(), 0) == 0) return true;
    from = to + 1;
  }
  return false;
}

class ThreadWatch : public ::testing::EmptyTestEventListener {
 public:
  void OnTestStart(const ::testing::TestInfo&) override { before_ = threads_started; }

  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (threads_started == before_) return;
    const std::string name = std::string(info.test_suite_name()) + "." + info.name();
    if (const char* file = std::getenv("VARVE_NOTE_THREADED"))  // NOLINT(concurrency-mt-unsafe): nobody sets variables
      std::ofstream(file, std::ios::app) << std::filesystem::read_symlink("/proc/self/exe").filename().string() << ' ' << name << '\n';
    else if (!is_listed(name))
      ADD_FAILURE() << name << " starts threads and is not in tests/threaded: the thread sanitizer would never see it.";
  }

 private:
  unsigned before_ = 0;
};

[[maybe_unused]] const bool watching = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ThreadWatch);
  return true;
}();

}  // namespace
}  // namespace varve::test

#endif

#include "base/memory_reserve.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/invariant.h"

namespace varve {

namespace {

std::atomic<MemoryReserve*> the_reserve{nullptr};

constexpr unsigned kMostTries = 5000;  // by all threads
constexpr useconds_t kBetweenTries = 1000;

void say(std::string_view text) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size()); }

// Never touched: it takes room in the process's limits, but no memory.
void* map(std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::system_error(ENOMEM, std::generic_category(), "a reserve of memory");
  return mapped;
}

}  // namespace

MemoryReserve::MemoryReserve(std::size_t bytes, std::function<void()> lacking)
    : bytes_(bytes), lacking_(std::move(lacking)), memory_(map(bytes)) {
  MEMORY_INVARIANT(the_reserve.exchange(this) == nullptr);
  std::set_new_handler(on_lack);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  the_reserve = nullptr;
  if (void* const memory = memory_.exchange(nullptr)) ::munmap(memory, bytes_);
}

void MemoryReserve::on_lack() {
  MemoryReserve* const reserve = the_reserve;
  if (!reserve) throw std::bad_alloc();
  reserve->give_back();
}

void MemoryReserve::give_back() {
  if (void* const memory = memory_.exchange(nullptr)) {
    ::munmap(memory, bytes_);
    lacking_();
    return;
  }
  if (tries_.fetch_add(1) < kMostTries) {  // another thread may give some back meanwhile
    ::usleep(kBetweenTries);
    return;
  }
  say("varve: out of memory, and no way to end in good order: what has been synced is in the log\n");
  std::abort();
}

void meet_lack_of_memory() {
  if (const std::new_handler handler = std::get_new_handler()) return handler();
  throw std::bad_alloc();
}

}  // namespace varve

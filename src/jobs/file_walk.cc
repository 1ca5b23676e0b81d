#include "jobs/file_walk.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/logging.h"
#include "operation/attempt.h"

namespace varve::jobs {

using operation::Attempt;
using operation::Operation;
using operation::Operations;
using operation::Retry;

namespace {
constexpr std::size_t kBatch = 256;
constexpr std::uint8_t kUnknownType = DT_UNKNOWN;

// One look at names. Not Operations::attempt(): that may begin to clean, where no thread does it, and this is part of a round.
template <class F>
auto look(Operations& operations, F&& f) {
  Operation operation(operations, {});
  return block_on(operation, [&] {
    for (;;) {
      auto result = [&] {
        Attempt attempt(operations, operation);
        return f(attempt);
      }();
      if (std::exchange(operation.wait().retry, Retry::no) == Retry::no) return result;
    }
  });
}
}  // namespace

FileWalk::FileWalk(Operations& operations, const std::vector<Ino>& roots) : operations_(operations) {
  for (Ino root : roots) roots_.push_back({root, kUnknownType});
}

Result<std::optional<Ino>> FileWalk::next() {
  for (;;) {
    if (levels_.empty()) {
      if (roots_.empty()) return std::optional<Ino>();
      const Ino root = roots_.front().ino;
      roots_.pop_front();
      auto type = type_of(root);
      if (type.fails_with(Errc::stale)) continue;  // gone meanwhile
      if (!type.ok()) {
        if (!leave_out(root, type.error())) return type.error();
        continue;
      }
      if (auto file = enter({root, *type})) return file;
      continue;
    }
    Level& level = levels_.back();
    if (level.ahead.empty() && !level.ended)
      if (const Status read = read_entries(level); !read.ok()) {
        if (!leave_out(level.directory, read.error())) return read.error();
        level.ahead.clear();
      }
    if (level.ahead.empty()) {
      levels_.pop_back();
      continue;
    }
    const Entry entry = level.ahead.front();
    level.ahead.pop_front();
    if (auto file = enter(entry)) return file;
  }
}

// False: that is no fault of this directory.
bool FileWalk::leave_out(Ino directory, const Error& why) {
  if (!why.is(Errc::io) && !why.is(Errc::corrupt)) return false;
  if (unreadable_++ == 0) {  // a leaf can hold the names of many
    log_error("{}: the names in inode {} cannot be read, its files are left out: {}", operations_.store().device().name(), directory,
                  why.message());
    operations_.store().faults().note(why.code(), {}, directory);
  }
  return true;
}

std::optional<Ino> FileWalk::enter(const Entry& entry) {
  if (entry.type == DT_REG) return entry.ino;
  if (entry.type == DT_DIR && entered_.insert(entry.ino).second) {
    Level level;
    level.directory = entry.ino;
    levels_.push_back(std::move(level));
  }
  return std::nullopt;
}

Result<std::uint8_t> FileWalk::type_of(Ino ino) {
  return look(operations_, [&](Attempt& a) -> Result<std::uint8_t> {
    const changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    return static_cast<std::uint8_t>((inode->attributes.mode & S_IFMT) >> 12);
  });
}

Status FileWalk::read_entries(Level& level) {
  std::deque<Entry> found;
  std::uint64_t cookie = level.cookie;
  Status status = look(operations_, [&](Attempt& a) -> Status {
    found.clear();
    cookie = level.cookie;
    const changes::InodePtr directory = TRY(a.directory(level.directory));
    ReadLock lock(directory->mutex);
    return changes::scan_entries(*directory, a.view(), a.source(), level.cookie,
                              [&](std::uint64_t at, Ino ino, std::uint8_t type, std::string_view) -> Result<bool> {
                                found.push_back({ino, type});
                                cookie = at;
                                return found.size() < kBatch;
                              });
  });
  if (status.fails_with(Errc::stale) || status.fails_with(Errc::not_directory)) status = {};  // removed meanwhile
  level.ended = found.empty();
  level.ahead = std::move(found);
  level.cookie = cookie;
  return status;
}

}  // namespace varve::jobs

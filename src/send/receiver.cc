#include "send/receiver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/errc.h"
#include "send/host_file.h"
#include "send/token.h"

namespace varve::send {

namespace {

std::string staged_name(Ino ino) { return fmt::format("{}", ino); }

Error out_of_order() { return {Errc::corrupt, "the stream is damaged: its records are in another order"}; }

}  // namespace

Error Receiver::failed(const std::string& action, const std::string& path) const {
  const Errc code = errc_from_errno(errno);
  return {code, fmt::format("{}{}: {}: {}", directory_, path == "/" ? "" : path, action, errno_text())};
}

Result<Receiver> Receiver::open(const std::string& directory, std::uint64_t step) {
  Descriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
  return Receiver(std::move(root), directory, step);
}

Result<std::optional<Interrupted>> Receiver::interrupted() const {
  const auto mark = read_mark(root_.get());
  if (!mark.ok()) return failed("reading what it has received", "/");
  return interrupted_from(*mark);
}

Status Receiver::keep_mark() const { return ::fsync(root_.get()) == 0 ? Status() : Status(failed("writing", "/")); }

// --- how far it has come --------------------------------------------------------------------------------------------------

Status Receiver::begin(const Begin& begin, const std::optional<Interrupted>& from) {
  begin_ = begin;
  if (from && !lead_the_same_way(from->begin, begin))
    return Error(Errc::invalid, fmt::format("{}: receiving '{}' was interrupted here: go on with that, or begin anew in an empty directory",
                                            directory_, from->begin.snapshot.name));
  const std::uint64_t done = from ? from->begin.position.records : 0;
  if (begin.position.records > done)
    return Error(Errc::invalid, fmt::format("{}: the stream goes on at record {}, and {} were received", directory_,
                                            begin.position.records, done));
  phase_ = begin.base ? Phase::detaching : Phase::filling;
  return from ? go_on(*from) : begin_anew();
}

Status Receiver::begin_anew() {
  noted_ = {};
  unlock(root_.get(), ".");
  if (is_there(root_.get(), std::string(kStagingName)))
    return Error(Errc::exists, fmt::format("{}/{}: left by a receive that was interrupted: begin anew", directory_, kStagingName));
  Begin here = begin_;
  here.position = {};
  keeps_marks_ = write_mark(root_.get(), mark_of({here, {}})).ok();  // not every filesystem can, and not every user
  return {};
}

Status Receiver::go_on(const Interrupted& from) {
  noted_ = from.begin.position;
  redo_until_ = noted_.records + step_;
  unlock(root_.get(), ".");
  if (from.path.empty()) return {};
  const Place place = TRY(place_of(from.path));
  open_path_ = from.path;
  open_ = Descriptor(unlocking(place.directory, place.name, [&] { return open_content(place.directory, place.name, O_RDWR); }));
  parent_ = Descriptor();
  return open_ ? Status() : Status(failed("opening", open_path_));
}

// What was written before is handed over first, so that the mark never tells of more than there is.
Status Receiver::note(const Position& position) {
  TRY(settle_size());
  TRY(hand_over_file());
  noted_ = position;
  noted_bytes_ = 0;
  if (!keeps_marks_) return {};
  Begin here = begin_;
  here.position = position;
  const Status written = write_mark(root_.get(), mark_of({here, open_ ? open_path_ : ""}));
  if (written.ok()) return {};
  return Error(written.error().code(), fmt::format("{}: noting what was received: {}", directory_, written.error().message()));
}

Result<Received> Receiver::receive(StreamReader& stream, const Begin& begin, const std::optional<Interrupted>& from) {
  TRY(this->begin(begin, from));
  const Position done = noted_;
  bool is_finished = begin.position.records > 0;  // what was before has the end, if nothing comes
  for (Position before = stream.position();; before = stream.position()) {
    if (before.records == done.records && before != done)
      return Error(Errc::invalid, fmt::format("{}: what was received before is not what this stream has", directory_));
    const auto record = TRY(stream.next());
    if (!record) break;
    const auto* const finish = std::get_if<Finish>(&*record);
    is_finished = finish && finish->path == "/";
    if (before.records >= done.records) TRY(carry_out(*record, before));
  }
  if (stream.position().records < done.records) return Error(Errc::invalid, "the stream is shorter than what was received of it before");
  TRY(close_file());
  TRY(remove_staging());
  if (!is_finished) return Error(Errc::corrupt, "the stream is damaged: it has no attributes of the directory");
  return received_;
}

Status Receiver::carry_out(const Record& record, const Position& before) {
  TRY(enter(phase_of(record), before));
  is_redo_ = redo_until_ && before.records < *redo_until_;
  ++received_.records;
  TRY(std::visit([this](const auto& one) { return apply(one); }, record));
  Position behind = before;
  behind.pass(record);
  return behind.records - noted_.records >= step_ || noted_bytes_ >= kStepBytes ? note(behind) : Status();
}

Receiver::Phase Receiver::phase_of(const Record& record) const {
  if (std::holds_alternative<Detach>(record)) return Phase::detaching;
  if (std::holds_alternative<Make>(record)) return Phase::making;
  return begin_.base && std::holds_alternative<Attach>(record) ? Phase::attaching : Phase::filling;
}

// Doing something once more is right only as long as paths mean what they meant. So what comes after a phase is noted before.
Status Receiver::enter(Phase phase, const Position& before) {
  if (phase < phase_) return out_of_order();
  if (phase != Phase::filling && !staging_) TRY(prepare_staging());
  if (phase == phase_) return {};
  if (before != noted_) TRY(note(before));
  phase_ = phase;
  parent_ = Descriptor();
  return phase == Phase::filling ? remove_staging() : Status();
}

// --- the staging directory ------------------------------------------------------------------------------------------------

Status Receiver::prepare_staging() {
  const std::string name(kStagingName);
  if (::mkdirat(root_.get(), name.c_str(), 0700) != 0 && !(errno == EEXIST && redo_until_)) return failed("making a directory", "/" + name);
  staging_ = Descriptor(open_below(root_.get(), name, O_RDONLY | O_DIRECTORY));
  return staging_ ? Status() : Status(failed("opening", "/" + name));
}

// When the last name has been given nothing is in it any more.
Status Receiver::remove_staging() {
  const std::string name(kStagingName);
  if (!staging_ && !redo_until_) return {};
  staging_ = Descriptor();
  if (::unlinkat(root_.get(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  if (errno == ENOTEMPTY || errno == EEXIST)
    return Error(Errc::corrupt, "the stream is damaged: it makes files without giving them a name");
  return failed("removing", "/" + name);
}

bool Receiver::is_there(int directory, const std::string& name) const {
  struct stat status {};
  return ::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Receiver::Place> Receiver::place_of(const std::string& path) {
  if (path == "/") return Place{root_.get(), "."};
  if (is_in_staging(path)) return Error(Errc::corrupt, fmt::format("the stream is damaged: it wants to change {}", path));
  const std::size_t slash = path.rfind('/');
  const std::string parent = path.substr(0, slash), name = path.substr(slash + 1);
  if (parent.empty()) return Place{root_.get(), name};
  if (parent != parent_path_ || !parent_) {
    parent_ = Descriptor(open_below(root_.get(), parent.substr(1), O_RDONLY | O_DIRECTORY));
    if (!parent_) return failed("opening", parent);
    parent_path_ = parent;
  }
  return Place{parent_.get(), name};
}

// --- names ----------------------------------------------------------------------------------------------------------------

Status Receiver::apply(const Detach& detach) {
  const std::string staged = staged_name(detach.ino);
  const bool was_done = is_redo_ && (!detach.stays || is_there(staging_.get(), staged));
  const auto place = place_of(detach.path);
  if (place.fails_with(Errc::not_found) && was_done) return {};  // what it was in has gone after it
  if (!place.ok()) return place.error();
  const int done = unlocking(place->directory, place->name, [&] {
    if (!detach.stays) return ::unlinkat(place->directory, place->name.c_str(), detach.directory ? AT_REMOVEDIR : 0);
    return ::renameat2(place->directory, place->name.c_str(), staging_.get(), staged.c_str(), RENAME_NOREPLACE);
  });
  if (done == 0 || (errno == ENOENT && was_done)) return {};
  return failed(detach.stays ? "moving away" : "removing", detach.path);
}

Status Receiver::apply(const Make& make) {
  const std::string name = staged_name(make.ino);
  const mode_t type = make.mode & S_IFMT;
  if (is_redo_) (void)::unlinkat(staging_.get(), name.c_str(), type == S_IFDIR ? AT_REMOVEDIR : 0);
  int failure = 0;
  if (type == S_IFDIR) failure = ::mkdirat(staging_.get(), name.c_str(), 0700);
  else if (type == S_IFLNK) failure = ::symlinkat(make.target.c_str(), staging_.get(), name.c_str());
  else failure = ::mknodat(staging_.get(), name.c_str(), type | 0600, make.rdev);
  return failure == 0 ? Status() : Status(failed("making", fmt::format("/{}/{}", kStagingName, name)));
}

int Receiver::make_file(const Create& create, const Place& place) {
  const mode_t type = create.mode & S_IFMT;
  const char* const name = place.name.c_str();
  if (type == S_IFDIR) return ::mkdirat(place.directory, name, 0700);
  if (type == S_IFLNK) return ::symlinkat(create.target.c_str(), place.directory, name);
  if (type != S_IFREG) return ::mknodat(place.directory, name, type | 0600, create.rdev);
  open_ = Descriptor(open_below(place.directory, place.name, O_RDWR | O_CREAT | O_EXCL, 0600));
  return open_ ? 0 : -1;
}

// All names were free before: the directory was empty.
Status Receiver::apply(const Create& create) {
  if (begin_.base) return out_of_order();
  TRY(close_file());
  const Place place = TRY(place_of(create.path));
  if (make_file(create, place) == 0) {
    if (open_) open_path_ = create.path;
    return {};
  }
  struct stat status {};
  const bool was_done = is_redo_ && errno == EEXIST && ::fstatat(place.directory, place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        (status.st_mode & S_IFMT) == (create.mode & S_IFMT);
  errno = EEXIST;
  return was_done ? Status() : Status(failed("making", create.path));
}

Status Receiver::apply(const Attach& attach) {
  TRY(close_file());
  if (!attach.source.empty()) return link(attach);
  if (!staging_) return out_of_order();
  const std::string staged = staged_name(attach.ino);
  const Place place = TRY(place_of(attach.path));
  const int done = unlocking_directory(place.directory, [&] {
    if (!attach.last) return ::linkat(staging_.get(), staged.c_str(), place.directory, place.name.c_str(), 0);
    return ::renameat2(staging_.get(), staged.c_str(), place.directory, place.name.c_str(), RENAME_NOREPLACE);
  });
  if (done == 0) return {};
  const int why = errno;
  const bool is_named = is_redo_ && is_there(place.directory, place.name);
  const bool is_staged = is_there(staging_.get(), staged);
  errno = why;
  if (is_named && (attach.last ? why == ENOENT && !is_staged : why == ENOENT || why == EEXIST)) return {};
  return failed("naming", attach.path);
}

Status Receiver::link(const Attach& attach) {
  const Place source = TRY(place_of(attach.source));
  const Descriptor from(::fcntl(source.directory, F_DUPFD_CLOEXEC, 0));  // place_of() keeps one directory open
  const Place place = TRY(place_of(attach.path));
  const auto link = [&] { return ::linkat(from.get(), source.name.c_str(), place.directory, place.name.c_str(), 0); };
  const int done = unlocking_name(from.get(), source.name, [&] { return unlocking_directory(place.directory, link); });
  if (done == 0) return {};
  const int why = errno;
  struct stat one {}, other {};
  const bool was_done = is_redo_ && why == EEXIST && ::fstatat(from.get(), source.name.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
                        ::fstatat(place.directory, place.name.c_str(), &other, AT_SYMLINK_NOFOLLOW) == 0 && one.st_ino == other.st_ino;
  errno = why;
  return was_done ? Status() : Status(failed("linking", attach.path));
}

// --- contents -------------------------------------------------------------------------------------------------------------

Status Receiver::apply(const Open& open) {
  constexpr std::uint64_t kSmall = 256u << 10;
  if (open_ && open_path_ == open.path && !begin_.base && open.size <= kSmall) {  // it was made just now
    size_to_set_ = open.size;
    return {};
  }
  TRY(close_file());
  const Place place = TRY(place_of(open.path));
  open_path_ = open.path;
  open_ = Descriptor(unlocking(place.directory, place.name, [&] { return open_content(place.directory, place.name, O_RDWR); }));
  struct stat status {};
  if (!open_ && errno != ENXIO) return failed("opening", open.path);
  if (!open_ || ::fstat(open_.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error(Errc::corrupt, fmt::format("{}{}: the stream takes it for a file", directory_, open.path));
  if (static_cast<std::uint64_t>(status.st_size) == open.size) {  // what is set aside behind its end stays
    unlock(place.directory, place.name);
    return {};
  }
  const auto set_size = [&] { return ::ftruncate(open_.get(), static_cast<off_t>(open.size)); };
  return unlocking(place.directory, place.name, set_size) == 0 ? Status() : Status(failed("setting its size", open.path));
}

Status Receiver::settle_size() {
  const auto wanted = std::exchange(size_to_set_, std::nullopt);
  struct stat status {};
  if (!open_ || !wanted) return {};
  if (::fstat(open_.get(), &status) == 0 && static_cast<std::uint64_t>(status.st_size) == *wanted) return {};
  return ::ftruncate(open_.get(), static_cast<off_t>(*wanted)) == 0 ? Status() : Status(failed("setting its size", open_path_));
}

// The kernel tells only once of a write that was refused: this may be the time.
Status Receiver::hand_over_file() { return !open_ || hand_over(open_.get()) ? Status() : Status(failed("writing", open_path_)); }

Status Receiver::close_file() {
  TRY(settle_size());
  return open_.close() ? Status() : Status(failed("writing", open_path_));
}

Status Receiver::apply(const Data& data) {
  if (!open_) return Error(Errc::corrupt, "the stream is damaged: data of no file");
  received_.data_bytes += data.bytes.size();
  noted_bytes_ += data.bytes.size();
  for (std::size_t at = 0; at < data.bytes.size();) {
    const ssize_t wrote = ::pwrite(open_.get(), data.bytes.data() + at, data.bytes.size() - at, static_cast<off_t>(data.offset + at));
    if (wrote <= 0) return failed("writing", open_path_);
    at += static_cast<std::size_t>(wrote);
  }
  return {};
}

Status Receiver::apply(const Range& range) {
  if (!open_) return Error(Errc::corrupt, "the stream is damaged: a hole in no file");
  const int mode = FALLOC_FL_KEEP_SIZE | (range.reserved ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
  if (::fallocate(open_.get(), mode, static_cast<off_t>(range.offset), static_cast<off_t>(range.length)) == 0) return {};
  return failed("clearing a part", open_path_);
}

// --- attributes -----------------------------------------------------------------------------------------------------------

// All of it by one descriptor: nobody can put another file there meanwhile. It is the one that was written by, if there is one.
Status Receiver::apply(const Finish& finish) {
  TRY(settle_size());
  if (open_ && open_path_ != finish.path) TRY(close_file());
  TRY(hand_over_file());
  if (!open_) {
    const Place place = TRY(place_of(finish.path));
    const bool has_flags = S_ISREG(finish.mode) || S_ISDIR(finish.mode);
    open_path_ = finish.path;
    if (has_flags) open_ = Descriptor(open_content(place.directory, place.name, O_RDONLY));
    if (!open_) open_ = Descriptor(open_below(place.directory, place.name, O_PATH));
    if (!open_) return failed("opening", finish.path);
  }
  struct stat status {};
  if (::fstat(open_.get(), &status) != 0) return failed("looking", finish.path);
  if ((status.st_mode & S_IFMT) != (finish.mode & S_IFMT))
    return Error(Errc::corrupt, fmt::format("{}{}: the stream takes it for something else", directory_, finish.path));
  const std::string wrong = set_attributes(open_.get(), finish, finish.path == "/" ? std::string(kReceivedAttribute) : "");
  if (!wrong.empty()) return failed(wrong, finish.path);
  open_ = Descriptor();
  return {};
}

}  // namespace varve::send

#include "varve/receive_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/descriptor.h"
#include "base/errc.h"
#include "format/snapshot.h"
#include "varve/copy_changes.h"
#include "varve/snapshot_source.h"

namespace varve::tool {

namespace {

constexpr std::string_view kKeeping = "keeping ";

Result<std::string> mark(const std::string& directory) {
  const Descriptor here(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!here) return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
  return send::read_mark(here.get());
}

Status put_mark(const std::string& directory, const std::string& text) {
  const Descriptor here(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Status done = here ? send::write_mark(here.get(), text) : Status(Error(errc_from_errno(errno), errno_text()));
  return done.ok() ? done : Status(Error(done.error().code(), fmt::format("{}: {}", directory, done.error().message())));
}

// "UUID serial name/serial/name": the sender's snapshot, how it was called here when it was made, its serial here (0: it has not been made
// yet), and how the sender calls it. No name has a slash. Marks from before end with the first name.
std::string mark_of(const send::State& state, const std::string& name, Serial here) {
  return fmt::format("{} {} {}/{}/{}", state.uuid, state.serial, name, here.v, state.name);
}

// What was received as a whole.
struct Whole {
  send::State sent;
  std::string name;
  Serial here;
};

std::uint64_t number_in(const std::string& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// None: nothing was, or the mark tells of something else.
std::optional<Whole> whole_in(const std::string& received) {
  const std::size_t first = received.find(' '), second = first == std::string::npos ? first : received.find(' ', first + 1);
  if (second == std::string::npos) return std::nullopt;
  const std::string names = received.substr(second + 1);
  const std::size_t slash = std::min(names.find('/'), names.size()), other = std::min(names.find('/', slash + 1), names.size());
  Whole whole{{received.substr(0, first), number_in(received.substr(first + 1, second - first - 1)), {}}, names.substr(0, slash), {}};
  whole.sent.name = other < names.size() ? names.substr(other + 1) : whole.name;
  if (slash < names.size()) whole.here = Serial{number_in(names.substr(slash + 1, other - slash - 1))};
  return whole.name.empty() ? std::nullopt : std::optional(std::move(whole));
}

bool is_the_same(const send::State& one, const send::State& other) { return one.uuid == other.uuid && one.serial == other.serial; }

// How it is called by now. Errc::not_found: it has gone.
Result<std::string> name_of_kept(MountClient& client, const std::string& directory, const Whole& whole) {
  const auto state = TRY(client.snapshots());
  for (const auto& one : state.value("snapshots", nlohmann::ordered_json::array())) {
    const std::string name = one.value("name", "");
    const bool is_it = whole.here == Serial{} ? name == whole.name : Serial{one.value("serial", std::uint64_t{0})} == whole.here;
    if (is_it) return name;
  }
  return Error(Errc::not_found, fmt::format("{}: the snapshot '{}' that was received here last has been deleted, and no step can follow "
                                            "it: send a whole snapshot into a new directory", directory, whole.name));
}

Result<Ino> number_of(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) == 0) return Ino{status.st_ino};
  return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
}

Status check_is_kept(const std::string& directory, const Whole& whole) {
  MountClient client = TRY(MountClient::open(directory));
  const auto name = name_of_kept(client, directory, whole);
  return name.ok() ? Status() : Status(name.error());
}

}  // namespace

Result<std::string> ReceiveTarget::last_of(const std::string& directory) {
  std::string received = TRY(mark(directory));
  const bool is_made = !received.starts_with(kKeeping);  // else the next receive makes it
  if (!is_made) received.erase(0, kKeeping.size());
  const auto whole = TRY(send::interrupted_from(received)) ? std::nullopt : whole_in(received);
  if (!whole) return Error(Errc::not_found, fmt::format("{}: no snapshot was received here as a whole", directory));
  if (is_made) TRY(check_is_kept(directory, *whole));
  return whole->sent.name;
}

// --- snapshots ------------------------------------------------------------------------------------------------------------

Status ReceiveTarget::make_snapshot(const std::string& name) {
  return client_.change_snapshot({store::SnapshotChange::Kind::create, name, {}});
}

// From now on it is known by its serial, whatever name somebody gives it.
Status ReceiveTarget::note_made(const send::State& sent, const std::string& name) {
  const auto here = TRY(client_.find_snapshot(name));
  return put_mark(directory_, mark_of(sent, name, here.value_or(Serial{})));
}

Status ReceiveTarget::keep(const send::Begin& begin) {
  const std::string before = TRY(mark(directory_));  // with it the snapshot can be tried again
  TRY(put_mark(directory_, std::string(kKeeping) + mark_of(begin.snapshot, name_, {})));
  const Status made = make_snapshot(name_);
  if (made.ok()) return note_made(begin.snapshot, name_);
  (void)put_mark(directory_, before);
  return made;
}

Result<bool> ReceiveTarget::keep_what_was_left(const send::Begin& begin) {
  std::string received = TRY(mark(directory_));
  if (!received.starts_with(kKeeping)) return false;
  const auto whole = whole_in(received.substr(kKeeping.size()));
  if (!whole) return Error(Errc::corrupt, fmt::format("{}: the attribute {} makes no sense", directory_, send::kReceivedAttribute));
  if (!TRY(client_.find_snapshot(whole->name))) TRY(make_snapshot(whole->name));
  TRY(note_made(whole->sent, whole->name));
  return is_the_same(whole->sent, begin.snapshot);
}

// --- is it what the stream begins with? -----------------------------------------------------------------------------------

Status ReceiveTarget::check_name() {
  if (const Status possible = format::check_snapshot_name(name_); !possible.ok())
    return Error(possible.error().code(), fmt::format("{}: {}, with --name", directory_, possible.error().message()));
  if (!TRY(client_.find_snapshot(name_))) return {};
  return Error(Errc::exists, fmt::format("{}: there is a snapshot '{}' already: see --name", directory_, name_));
}

Result<std::optional<send::Interrupted>> ReceiveTarget::check(const send::Begin& begin, const send::Receiver& receiver) {
  TRY(check_name());
  auto left = TRY(receiver.interrupted());
  if (!begin.base && begin.position.records == 0 && check_empty().ok()) return std::optional<send::Interrupted>();
  if (left) return left;
  if (begin.position.records > 0)
    return Error(Errc::invalid, fmt::format("{}: no receive was interrupted here: send the snapshot from its beginning", directory_));
  TRY(begin.base ? check_base(*begin.base) : check_empty());
  return left;
}

Status ReceiveTarget::check_base(const send::State& base) {
  const auto found = whole_in(TRY(mark(directory_)));
  if (!found || !is_the_same(found->sent, base))
    return Error(Errc::invalid,
                 fmt::format("{}: it has not received the snapshot '{}', from which the stream goes on", directory_, base.name));
  return check_unchanged(TRY(name_of_kept(client_, directory_, *found)));
}

Status ReceiveTarget::check_empty() {
  std::error_code failure;
  if (std::filesystem::is_empty(directory_, failure)) return {};
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", directory_, failure.message()));
  if (const auto whole = whole_in(TRY(mark(directory_)))) TRY(name_of_kept(client_, directory_, *whole));
  return Error(Errc::not_empty, fmt::format("{}: a whole snapshot is received in an empty directory only", directory_));
}

// Nothing in the directory has changed since its snapshot was made, but the mark.
Status ReceiveTarget::check_unchanged(const std::string& name) const {
  const auto source = TRY(SnapshotSource::open(mount_, true));
  const std::string below = directory_.substr(mount_ == "/" ? 0 : mount_.size());
  const auto change = first_change_of_copy(*source, name, below.empty() ? "/" : below, TRY(number_of(directory_)));
  TRY(source->close());
  if (!TRY(change)) return {};
  return Error(Errc::invalid,
               fmt::format("{0}: it is not what was received any more: {1} {2}\n  varve restore --delete {0} --from \"{3}\" brings it "
                           "back. If that does not help, send the whole snapshot into a new directory.",
                           directory_, name_of((*change)->kind), (*change)->path, name));
}

}  // namespace varve::tool

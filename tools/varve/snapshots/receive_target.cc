#include "varve/snapshots/receive_target.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/descriptor.h"
#include "base/errc.h"
#include "control/inner_path.h"
#include "format/snapshot.h"
#include "varve/snapshots/copy_changes.h"
#include "varve/snapshots/snapshot_source.h"

namespace varve::tool {

namespace {

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

bool is_the_same(const send::State& one, const send::State& other) { return one.uuid == other.uuid && one.serial == other.serial; }

// How it is called by now. Errc::not_found: it has gone.
Result<std::string> name_of_kept(Volume& client, const std::string& directory, const send::Whole& whole) {
  const auto state = TRY(client.snapshots());
  for (const auto& one : state.value("snapshots", Json::array())) {
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

Status check_is_kept(const std::string& directory, const send::Whole& whole) {
  Volume client = TRY(Volume::of_mount(directory));
  const auto name = name_of_kept(client, directory, whole);
  return name.ok() ? Status() : Status(name.error());
}

}  // namespace

Result<std::string> ReceiveTarget::last_of(const std::string& directory) {
  std::string received = TRY(mark(directory));
  const bool is_made = !received.starts_with(send::kKeeping);  // else the next receive makes it
  if (!is_made) received.erase(0, send::kKeeping.size());
  const auto whole = TRY(send::interrupted_from(received)) ? std::nullopt : send::whole_in(received);
  if (!whole) return Error(Errc::not_found, fmt::format("{}: no snapshot was received here as a whole", directory));
  if (is_made) TRY(check_is_kept(directory, *whole));
  return whole->sent.name;
}

// --- snapshots ------------------------------------------------------------------------------------------------------------

Status ReceiveTarget::make_snapshot(const std::string& name) {
  return client_.change_snapshot({snapshots::SnapshotChange::Kind::create, name, {}});
}

// From now on it is known by its serial, whatever name somebody gives it.
Status ReceiveTarget::note_made(const send::State& sent, const std::string& name) {
  const auto here = TRY(client_.find_snapshot(name));
  return put_mark(directory_, send::mark_of(sent, name, here.value_or(Serial{})));
}

Status ReceiveTarget::keep(const send::Begin& begin) {
  const std::string before = TRY(mark(directory_));  // with it the snapshot can be tried again
  TRY(put_mark(directory_, std::string(send::kKeeping) + send::mark_of(begin.snapshot, name_, {})));
  const Status made = make_snapshot(name_);
  if (made.ok()) return note_made(begin.snapshot, name_);
  (void)put_mark(directory_, before);
  return made;
}

Result<bool> ReceiveTarget::keep_what_was_left(const send::Begin& begin) {
  std::string received = TRY(mark(directory_));
  if (!received.starts_with(send::kKeeping)) return false;
  const auto whole = send::whole_in(received.substr(send::kKeeping.size()));
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
  const auto found = send::whole_in(TRY(mark(directory_)));
  if (!found || !is_the_same(found->sent, base))
    return Error(Errc::invalid,
                 fmt::format("{}: it has not received the snapshot '{}', from which the stream goes on", directory_, base.name));
  return check_unchanged(TRY(name_of_kept(client_, directory_, *found)));
}

Status ReceiveTarget::check_empty() {
  std::error_code failure;
  if (std::filesystem::is_empty(directory_, failure)) return {};
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", directory_, failure.message()));
  if (const auto whole = send::whole_in(TRY(mark(directory_)))) TRY(name_of_kept(client_, directory_, *whole));
  return Error(Errc::not_empty, fmt::format("{}: a whole snapshot is received in an empty directory only", directory_));
}

// Nothing in the directory has changed since its snapshot was made, but the mark.
Status ReceiveTarget::check_unchanged(const std::string& name) const {
  const auto source = TRY(SnapshotSource::open(mount_, true));
  const control::InnerPlace here = TRY(control::find_inner(directory_));
  const auto change = first_change_of_copy(*source, name, here.path, TRY(number_of(directory_)));
  TRY(source->close());
  if (!TRY(change)) return {};
  return Error(Errc::invalid,
               fmt::format("{0}: it is not what was received any more: {1} {2}\n  varve restore --delete {0} --from \"{3}\" brings it "
                           "back. If that does not help, send the whole snapshot into a new directory.",
                           directory_, name_of((*change)->kind), (*change)->path, name));
}

}  // namespace varve::tool

// `varve receive`: from a stream to files, and to a snapshot of them.
#include <fmt/format.h>
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/descriptor.h"
#include "base/errc.h"
#include "compare/change_list.h"
#include "control/place.h"
#include "format/snapshot.h"
#include "send/receiver.h"
#include "send/token.h"
#include "shared/counted.h"
#include "varve/command.h"
#include "varve/mount_client.h"
#include "varve/snapshot_source.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

struct ReceiveArguments {
  std::string path, name;
  bool wants_token = false;
};

class Target {
 public:
  Target(MountClient client, std::string directory, std::string name)
      : client_(std::move(client)), directory_(std::move(directory)), name_(std::move(name)) {}

  Status check_name() {
    TRY(format::check_snapshot_name(name_));
    for (const std::string& taken : TRY(snapshot_names()))
      if (taken == name_) return Error(Errc::exists, fmt::format("{}: there is a snapshot '{}' already: see --name", directory_, name_));
    return {};
  }

  // What an earlier receive of this stream has left; none: the directory is what the stream begins with.
  Result<std::optional<send::Interrupted>> check(const send::Begin& begin, const send::Receiver& receiver, const std::string& mount) {
    TRY(check_name());
    auto left = TRY(receiver.interrupted());
    if (!begin.base && begin.position.records == 0 && check_empty().ok()) return std::optional<send::Interrupted>();
    if (left) return left;
    if (begin.position.records > 0)
      return Error(Errc::invalid, fmt::format("{}: no receive was interrupted here: send the snapshot from its beginning", directory_));
    TRY(begin.base ? check_base(*begin.base, mount) : check_empty());
    return left;
  }

  Status keep(const send::Begin& begin) {
    const std::string before = TRY(mark());  // with it the snapshot can be tried again
    TRY(put_mark(mark_of(begin.snapshot, name_)));
    fuse::SnapshotCommand command;
    command.command = fuse::SnapshotCommand::kCreate;
    name_.copy(command.name, sizeof command.name - 1);
    const Status made = client_.change_snapshot(command);
    if (!made.ok()) (void)put_mark(before);
    return made;
  }

 private:
  static std::string mark_of(const send::State& state, const std::string& name) {
    return fmt::format("{} {} {}", state.uuid, state.serial, name);
  }

  Result<std::vector<std::string>> snapshot_names() {
    std::vector<std::string> names;
    const auto state = TRY(client_.snapshots());
    for (const auto& one : state.value("snapshots", nlohmann::ordered_json::array())) names.push_back(one.value("name", ""));
    return names;
  }

  Status put_mark(const std::string& text) const {
    const Descriptor here(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Status done = here ? send::write_mark(here.get(), text) : Status(Error(errc_from_errno(errno), errno_text()));
    return done.ok() ? done : Status(Error(done.error().code(), fmt::format("{}: {}", directory_, done.error().message())));
  }

  Result<std::string> mark() const {
    const Descriptor here(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!here) return Error(errc_from_errno(errno), fmt::format("{}: {}", directory_, errno_text()));
    return send::read_mark(here.get());
  }

  Status check_base(const send::State& base, const std::string& mount) {
    const std::string wanted = mark_of(base, ""), found = TRY(mark());
    if (!found.starts_with(wanted))
      return Error(Errc::invalid,
                   fmt::format("{}: it has not received the snapshot '{}', from which the stream goes on", directory_, base.name));
    return check_unchanged(found.substr(wanted.size()), mount);
  }

  Status check_empty() const {
    std::error_code failure;
    if (std::filesystem::is_empty(directory_, failure)) return {};
    if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", directory_, failure.message()));
    return Error(Errc::not_empty, fmt::format("{}: a whole snapshot is received in an empty directory only", directory_));
  }

  // Nothing in the directory has changed since.
  Status check_unchanged(const std::string& name, const std::string& mount) const {
    const auto source = TRY(SnapshotSource::open(mount, true));
    const Serial before = TRY(source->serial_of(name));
    const Serial now = TRY(source->now());
    const auto difference = compare::Difference::find(source->ask(), before, now);
    auto changes = difference.ok() ? compare::list_changes(source->ask(), *difference, before, now)
                                   : Result<std::vector<compare::Change>>(difference.error());
    TRY(source->close());
    const std::string here = directory_.substr(mount == "/" ? 0 : mount.size());
    const auto is_below = [&here](const std::string& path) { return path == here || path.starts_with(here + "/"); };
    for (const compare::Change& change : TRY(std::move(changes)))
      if (is_below(change.path) || is_below(change.former))
        return Error(Errc::invalid,
                     fmt::format("{}: it is not what was received any more: {} {}", directory_, name_of(change.kind), change.path));
    return {};
  }

  MountClient client_;
  const std::string directory_;  // absolute
  const std::string name_;       // of the snapshot that comes
};

send::Source reading(std::istream& in) {
  return [&in](std::span<std::byte> out) -> Status {
    in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (static_cast<std::size_t>(in.gcount()) == out.size()) return {};
    return in.bad() ? Errc::io : Errc::out_of_range;
  };
}

// What it takes to go on; a crash after this was said takes nothing of it away.
Error explained(const Error& why, const std::string& path, const send::Receiver& receiver) {
  const auto left = receiver.interrupted();
  if (!left.ok() || !*left || !receiver.keep_mark().ok() || (*left)->begin.position.records == 0) return why;
  return {why.code(), fmt::format("{}\n  To go on, receive the same stream again, or send with --resume \"{} {})\"", why.message(),
                                  "$(varve receive --resume-token", path)};
}

Status print_token(const ReceiveArguments& arguments, IoLayer& io) {
  const auto left = TRY(TRY(send::Receiver::open(arguments.path)).interrupted());
  if (!left) return Error(Errc::not_found, fmt::format("{}: no receive was interrupted here", arguments.path));
  io.out << send::token_of(left->begin) << std::endl;
  return {};
}

Status receive(const ReceiveArguments& arguments, IoLayer& io) {
  if (arguments.wants_token) return print_token(arguments, io);
  std::error_code failure;
  const std::string directory = std::filesystem::canonical(arguments.path, failure);
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", arguments.path, failure.message()));
  const std::string mount = TRY(fuse::find_mounted(directory));
  send::StreamReader stream(reading(io.in));
  const send::Begin begin = TRY(stream.begin());
  Target target(TRY(MountClient::open(mount)), directory, arguments.name.empty() ? begin.snapshot.name : arguments.name);
  send::Receiver receiver = TRY(send::Receiver::open(directory));
  const auto left = TRY(target.check(begin, receiver, mount));
  const auto received = receiver.receive(stream, begin, left);
  if (!received.ok()) return explained(received.error(), arguments.path, receiver);
  TRY(target.keep(begin));
  io.out << fmt::format("{}: {}, {}\n", begin.snapshot.name, counted(received->records, "change"), size_text(received->data_bytes))
         << std::flush;
  return {};
}

}  // namespace

void declare_receive(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ReceiveArguments>();
  CLI::App* command = app.add_subcommand("receive", "Make what a stream says of a directory, and keep it as a snapshot");
  command->add_option("directory", arguments->path, "In a mounted filesystem: empty, or with what was received before")->required();
  command->add_option("--name", arguments->name, "Of the snapshot that is made; without: as the sender calls it");
  command->add_flag("--resume-token", arguments->wants_token, "Only say where a receive was interrupted, for varve send --resume");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return receive(*arguments, io); }; });
}

}  // namespace varve::tool

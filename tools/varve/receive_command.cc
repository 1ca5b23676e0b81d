// `varve receive`: from a stream to files, and to a snapshot of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "base/descriptor.h"
#include "base/errc.h"
#include "control/place.h"
#include "send/receiver.h"
#include "send/token.h"
#include "shared/counted.h"
#include "varve/command.h"
#include "varve/mount_client.h"
#include "varve/receive_target.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace {

struct ReceiveArguments {
  std::string path, name;
  bool wants_token = false, wants_last = false;
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

Status print_last(const ReceiveArguments& arguments, IoLayer& io) {
  io.out << TRY(ReceiveTarget::last_of(arguments.path)) << std::endl;
  return {};
}

// A sender that writes into a pipe shall not find it closed.
Status read_to_end(send::StreamReader& stream) {
  while (TRY(stream.next())) {
  }
  return {};
}

// Two at once would mix what they make, and take each other's mark for their own.
Result<Descriptor> lock_alone(const std::string& directory) {
  Descriptor here(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (here && ::flock(here.get(), LOCK_EX | LOCK_NB) == 0) return here;
  if (here && errno == EWOULDBLOCK)
    return Error(Errc::in_use, fmt::format("{}: another varve receive is at work there: wait until it has ended", directory));
  return Error(errc_from_errno(errno), fmt::format("{}: {}", directory, errno_text()));
}

Status receive(const ReceiveArguments& arguments, IoLayer& io) {
  if (arguments.wants_token) return print_token(arguments, io);
  if (arguments.wants_last) return print_last(arguments, io);
  if (io.in.rdbuf() == std::cin.rdbuf() && ::isatty(STDIN_FILENO))
    return Error(Errc::invalid, "a stream comes from a file (< FILE) or from a program (varve send DIR NAME |)");
  std::error_code failure;
  const std::string directory = std::filesystem::canonical(arguments.path, failure);
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", arguments.path, failure.message()));
  const std::string mount = TRY(control::find_mounted(directory));
  const Descriptor lock = TRY(lock_alone(directory));
  send::StreamReader stream(reading(io.in));
  const send::Begin begin = TRY(stream.begin());
  ReceiveTarget target(TRY(MountClient::open(mount)), directory, mount, arguments.name.empty() ? begin.snapshot.name : arguments.name);
  if (TRY(target.keep_what_was_left(begin))) {
    io.out << fmt::format("{}: was received before, and is kept now\n", begin.snapshot.name) << std::flush;
    return read_to_end(stream);
  }
  send::Receiver receiver = TRY(send::Receiver::open(directory));
  const auto left = TRY(target.check(begin, receiver));
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
  command->add_flag("--last", arguments->wants_last, "Only say what varve send --from needs: the sender's name of what was received last")
      ->excludes("--resume-token");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return receive(*arguments, io); }; });
}

}  // namespace varve::tool

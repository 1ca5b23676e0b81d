// `varve receive`: from a stream to files, and to a snapshot of them.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>

#include "base/counted.h"
#include "base/descriptor.h"
#include "base/errc.h"
#include "base/json_text.h"
#include "control/place.h"
#include "send/receiver.h"
#include "send/token.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/receive_target.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

struct ReceiveArguments {
  std::string path, name;
  bool wants_token = false, wants_last = false, json = false;
};

// The bytes of a stream that comes from a file; 0: not known.
std::uint64_t bytes_to_receive(const std::istream& in) {
  struct stat status {};
  if (in.rdbuf() != std::cin.rdbuf() || ::fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  const off_t at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  return at >= 0 && status.st_size > at ? static_cast<std::uint64_t>(status.st_size - at) : 0;
}

// The standard input without a stream's buffer: what waits there for bytes can be interrupted.
class Input : public std::streambuf {
 protected:
  int_type underflow() override {
    pollfd ready{STDIN_FILENO, POLLIN, 0};
    constexpr int kLookMs = 200;
    for (ssize_t got = -1; !Interruptible::asked();) {
      const int found = ::poll(&ready, 1, kLookMs);
      if (found > 0) got = ::read(STDIN_FILENO, bytes_.data(), bytes_.size());
      if (found == 0 || (got < 0 && errno == EINTR)) continue;
      if (found < 0 || got < 0) throw std::runtime_error("the standard input: " + errno_text());
      if (got == 0) break;
      setg(bytes_.data(), bytes_.data(), bytes_.data() + got);
      return traits_type::to_int_type(*gptr());
    }
    return traits_type::eof();
  }

 private:
  std::array<char, 64 << 10> bytes_;
};

send::Source reading(std::istream& in, std::uint64_t all, ProgressMeter& meter) {
  return [&in, &meter, all, received = std::uint64_t{0}](std::span<std::byte> out) mutable -> Status {
    in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: no snapshot was made of what was received");
    received += static_cast<std::uint64_t>(in.gcount());
    meter.show([&] { return fmt::format("{}{} received", size_text(received), all ? " of " + size_text(all) : ""); },
               ProgressMeter::share_of(received, all));
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
  const std::string token = send::token_of(left->begin);
  io.out << (arguments.json ? json_text(Json{{"resume_token", token}}, 2) : token) << std::endl;
  return {};
}

Status print_last(const ReceiveArguments& arguments, IoLayer& io) {
  const std::string last = TRY(ReceiveTarget::last_of(arguments.path));
  io.out << (arguments.json ? json_text(Json{{"last", last}}, 2) : last) << std::endl;
  return {};
}

// A sender that writes into a pipe does not find it closed, and the stream behind it is found.
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

// The streams of one file are received in it.
struct Directory {
  std::string path, mount;
};

// Several streams of one file are received again after an interruption: those that led to where it was are there already.
bool is_before(const send::Begin& begin, const std::optional<send::Interrupted>& left) {
  return left && left->begin.base && left->begin.base->uuid == begin.snapshot.uuid &&
         begin.snapshot.serial <= left->begin.base->serial;
}

Status pass_over(send::StreamReader& stream, const send::Begin& begin, const char* what, const ReceiveArguments& arguments, IoLayer& io) {
  const std::string& name = begin.snapshot.name;
  io.answered = true;
  io.out << (arguments.json ? json_text(Json{{"sent_as", name}, {"passed_over", what}}) : fmt::format("{}: {}", name, what)) << std::endl;
  return read_to_end(stream);
}

Status receive_stream(send::StreamReader& stream, const send::Begin& begin, const Directory& directory,
                      const ReceiveArguments& arguments, ProgressMeter& meter, IoLayer& io) {
  const std::string name = arguments.name.empty() ? begin.snapshot.name : arguments.name;
  ReceiveTarget target(TRY(Volume::of_mount(directory.mount)), directory.path, directory.mount, name);
  if (TRY(target.keep_what_was_left(begin)))
    return pass_over(stream, begin, "was received before, and is kept now", arguments, io);
  send::Receiver receiver = TRY(send::Receiver::open(directory.path));
  if (is_before(begin, TRY(receiver.interrupted())))
    return pass_over(stream, begin, "was received before", arguments, io);
  const auto left = TRY(target.check(begin, receiver));
  const auto received = receiver.receive(stream, begin, left);
  if (!received.ok()) return explained(received.error(), arguments.path, receiver);
  TRY(target.keep(begin));
  meter.wipe();
  if (arguments.json) {  // a line for each stream
    io.answered = true;
    io.out << json_text(Json{{"name", name}, {"sent_as", begin.snapshot.name}, {"changes", received->records},
                             {"data_bytes", received->data_bytes}}) << std::endl;
    return {};
  }
  io.out << fmt::format("{}: {}, {}\n", name, counted(received->records, "change"), size_text(received->data_bytes)) << std::flush;
  return {};
}

// All streams that follow one another in the input.
Status receive_all(const Directory& directory, const ReceiveArguments& arguments, IoLayer& io) {
  ProgressMeter meter(io.err, !arguments.json);
  const Interruptible interruptible;
  Input standard;
  std::istream input(io.in.rdbuf() == std::cin.rdbuf() ? &standard : io.in.rdbuf());
  send::StreamReader stream(reading(input, bytes_to_receive(io.in), meter));
  for (std::optional<send::Begin> begin = TRY(stream.begin()); begin;) {
    TRY(receive_stream(stream, *begin, directory, arguments, meter, io));
    begin = TRY(stream.another());
    if (begin && !arguments.name.empty())
      return Error(Errc::invalid, fmt::format("--name is for one stream, and another one follows, of '{}': receive it by itself",
                                              begin->snapshot.name));
  }
  return {};
}

Status receive(const ReceiveArguments& arguments, IoLayer& io) {
  if (arguments.wants_token) return print_token(arguments, io);
  if (arguments.wants_last) return print_last(arguments, io);
  if (io.in.rdbuf() == std::cin.rdbuf() && ::isatty(STDIN_FILENO))
    return Error(Errc::invalid, "a stream comes from a file (< FILE) or from a program (varve send DIR NAME |)");
  std::error_code failure;
  Directory directory{std::filesystem::canonical(arguments.path, failure), {}};
  if (failure) return Error(errc_from_errno(failure.value()), fmt::format("{}: {}", arguments.path, failure.message()));
  if (!std::filesystem::is_directory(directory.path, failure))
    return Error(Errc::not_directory, fmt::format("{}: is no directory: a stream becomes files in one", arguments.path));
  directory.mount = TRY(control::find_mounted(directory.path));
  const Descriptor lock = TRY(lock_alone(directory.path));
  return receive_all(directory, arguments, io);
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
  command->add_flag("--json", arguments->json, "For programs: a line for each stream");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return receive(*arguments, io); }; });
}

}  // namespace varve::tool

// `varve send`: a snapshot, or what has changed since another one, as a stream.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <ostream>
#include <string>

#include "base/errc.h"
#include "send/sender.h"
#include "send/token.h"
#include "send/whole_sender.h"
#include "shared/interruptible.h"
#include "shared/progress_meter.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/snapshots/kept_damage.h"
#include "varve/snapshots/snapshot_source.h"

namespace varve::tool {

namespace {

struct SendArguments {
  std::string path, name, base, token;
};

Result<send::State> state_of(SnapshotSource& source, const std::string& name) {
  std::string uuid = TRY(source.uuid());
  const Serial serial = TRY(source.serial_of(name));
  return send::State{std::move(uuid), serial.v, name};
}

// They may have other names by now.
Status check_token(SnapshotSource& source, const std::string& path, const send::Begin& begin) {
  const std::string uuid = TRY(source.uuid());
  if (begin.snapshot.uuid != uuid)
    return Error(Errc::invalid, fmt::format("{}: the token is one of another filesystem, {}", path, begin.snapshot.uuid));
  for (const send::State* state : {&begin.snapshot, begin.base ? &*begin.base : nullptr})
    if (state && !TRY(source.has(Serial{state->serial})))
      return Error(Errc::not_found,
                   fmt::format("{}: the snapshot '{}' has been deleted: what was interrupted cannot go on", path, state->name));
  return {};
}

Result<send::Begin> begin_of(SnapshotSource& source, const SendArguments& arguments, std::ostream& err) {
  if (!arguments.token.empty()) {
    send::Begin begin = TRY(send::begin_from(arguments.token));
    TRY(check_token(source, arguments.path, begin));
    return begin;
  }
  const auto state = [&](const std::string& which) -> Result<send::State> {
    return state_of(source, TRY(name_of_snapshot(source, arguments.path, which, err)));
  };
  send::Begin begin{TRY(state(arguments.name)), {}, {}};
  if (!arguments.base.empty()) begin.base = TRY(state(arguments.base));
  return begin;
}

Result<send::Sent> send_all(const compare::Ask& ask, const send::Begin& begin, const send::Sink& sink) {
  const Serial after{begin.snapshot.serial};
  if (!begin.base) return send::WholeSender(ask, after, sink).send(begin);
  return send::Sender(ask, Serial{begin.base->serial}, after, sink).send(begin);
}

// Estimates how much a whole snapshot takes; 0: that is not known.
Result<std::uint64_t> bytes_to_send(SnapshotSource& source, const send::Begin& begin) {
  if (begin.base) return std::uint64_t{0};
  return source.data_bytes(Serial{begin.snapshot.serial});
}

Error cannot_write() { return {Errc::io, fmt::format("the stream cannot be written{}", errno ? ": " + errno_text() : "")}; }

Status send_stream(const SendArguments& arguments, IoLayer& io) {
  if (io.out.rdbuf() == std::cout.rdbuf() && ::isatty(STDOUT_FILENO))
    return Error(Errc::invalid, "a stream is no text: send it to a file (> FILE), or to a program (| varve receive DIR)");
  if (arguments.name.empty() == arguments.token.empty() || (!arguments.token.empty() && !arguments.base.empty()))
    return Error(Errc::invalid,
                 "either name a snapshot, with --from if need be, or give --resume what varve receive --resume-token has said");
  const Interruptible interruptible;
  const auto source = TRY(SnapshotSource::open(arguments.path, false));
  const send::Begin begin = TRY(begin_of(*source, arguments, io.err));
  TRY(hold_if_it_fits(*source, Serial{begin.snapshot.serial}, io.err));
  if (begin.base) TRY(hold_if_it_fits(*source, Serial{begin.base->serial}, io.err));
  const compare::Ask asking = [&source](const compare::Question& question) -> Result<compare::Answer> {
    if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: what has been sent is no whole stream. Where it was "
                                                         "received, varve receive --resume-token tells how to go on");
    return source->ask()(question);
  };
  const compare::Ask ask = telling_of_damage(asking, arguments.path, begin.snapshot.name);
  ProgressMeter meter(io.err, true);
  const std::uint64_t all = begin.position.records ? 0 : TRY(bytes_to_send(*source, begin));
  std::uint64_t bytes_sent = 0;
  const auto sent = send_all(ask, begin, [&](std::span<const std::byte> bytes) -> Status {
    errno = 0;
    bytes_sent += bytes.size();
    meter.show([&] { return fmt::format("{}{} sent", size_text(bytes_sent), all ? " of about " + size_text(all) : ""); },
               ProgressMeter::share_of(bytes_sent, all));
    io.out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return io.out ? Status() : Status(cannot_write());
  });
  const Status closed = source->close();
  if (!sent.ok()) return sent.error();
  errno = 0;
  if (!io.out.flush()) return cannot_write();
  return closed;
}

}  // namespace

void declare_send(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<SendArguments>();
  CLI::App* command = app.add_subcommand("send", "Write a snapshot, or what has changed since another, to the standard output");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option("name", arguments->name, "Of the snapshot, or how long ago (10m), or a time (14:30)");
  command->add_option("--from", arguments->base, "Only what has changed since this snapshot (or time), which the receiver has");
  command->add_option("--resume", arguments->token, "Go on where a receiver was interrupted: what varve receive --resume-token says");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return send_stream(*arguments, io); }; });
}

}  // namespace varve::tool

// `varve send`: a snapshot, or what has changed since another one, as a stream.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>

#include "send/sender.h"
#include "varve/command.h"
#include "varve/interruptible.h"
#include "varve/snapshot_source.h"

namespace varve::tool {

namespace {

struct SendArguments {
  std::string path, name, base;
};

Result<send::State> state_of(SnapshotSource& source, const std::string& name) {
  return send::State{TRY(source.uuid()), TRY(source.serial_of(name)).v, name};
}

Status send_stream(const SendArguments& arguments, IoLayer& io) {
  if (io.out.rdbuf() == std::cout.rdbuf() && ::isatty(STDOUT_FILENO))
    return Error(Errc::invalid, "a stream is no text: send it to a file (> FILE), or to a program (| varve receive DIR)");
  const Interruptible interruptible;
  const auto source = TRY(SnapshotSource::open(arguments.path, false));
  send::Begin begin{TRY(state_of(*source, arguments.name)), {}};
  if (!arguments.base.empty()) begin.base = TRY(state_of(*source, arguments.base));
  const compare::Ask ask = [&source](const compare::Question& question) -> Result<compare::Answer> {
    if (Interruptible::asked()) return Error(Errc::interrupted, "interrupted: what has been sent is no whole stream");
    return source->ask()(question);
  };
  send::Sender sender(ask, Serial{begin.base ? begin.base->serial : 0}, Serial{begin.snapshot.serial},
                      [&io](std::span<const std::byte> bytes) -> Status {
                        io.out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
                        return io.out ? Status() : Status(Error(Errc::io, "the stream cannot be written"));
                      });
  const auto sent = sender.send(begin);
  const Status closed = source->close();
  if (!sent.ok()) return sent.error();
  if (!io.out.flush()) return Error(Errc::io, "the stream cannot be written");
  return closed;
}

}  // namespace

void declare_send(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<SendArguments>();
  CLI::App* command = app.add_subcommand("send", "Write a snapshot, or what has changed since another, to the standard output");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option("name", arguments->name, "Of the snapshot")->required();
  command->add_option("--from", arguments->base, "Only what has changed since this snapshot, which the receiver has");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return send_stream(*arguments, io); }; });
}

}  // namespace varve::tool

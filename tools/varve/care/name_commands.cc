// `varve label` and `varve uuid`: show or change what a filesystem is called, mounted or not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ostream>
#include <thread>

#include "base/clock.h"
#include "base/utf8.h"
#include "checkpoint/superblocks.h"
#include "control/place.h"
#include "control/status_fields.h"
#include "remote/open_device.h"
#include "varve/command.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

using Setter = Status (*)(format::Superblock&, const std::string&);

struct Name {
  const char* key;  // in the status, and of the setting
  std::string (*text)(const format::Superblock&);
  Setter set;
};

const Name kLabel{"label", [](const format::Superblock& s) { return s.label; },
                  [](format::Superblock& s, const std::string& label) -> Status {
                    TRY(format::check_label(label));
                    s.label = label;
                    return {};
                  }};
const Name kUuid{"uuid", [](const format::Superblock& s) { return format::uuid_text(s.uuid); },
                 [](format::Superblock& s, const std::string& text) -> Status {
                   const auto uuid = format::parse_uuid(text);
                   if (!uuid)
                     return Error(Errc::invalid,
                                  fmt::format("{}: not a UUID (32 hexadecimal digits, or `random`)", text));
                   s.uuid = *uuid;
                   return {};
                 }};

std::string random_uuid() {
  format::Uuid uuid;
  for (std::size_t i = 0; i < uuid.size(); ++i) uuid[i] = static_cast<std::uint8_t>(Random::system().next());
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0F) | 0x40);  // RFC 4122, version 4
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3F) | 0x80);
  return format::uuid_text(uuid);
}

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kLooks = 3000;  // a minute: a checkpoint of a full memory on a slow card takes some seconds

// An image is changed as by a mount: after a recovery, where one is due, with a checkpoint. A crash leaves the old name or the new one.
// The next checkpoint has it in its trees and superblocks; log.serial tells the newest one that is settled.
Status change(const control::Place& place, const std::string& path, const Name& name, const std::string& value) {
  format::Superblock trial;
  TRY(name.set(trial, value));  // before anything is opened for writing
  Volume volume = TRY(Volume::open(place, fmt::format("varve {}", name.key), Volume::Use::changes));
  const std::uint64_t before = control::number_of(TRY(volume.status()), "log.serial");
  TRY(volume.tune(fmt::format("{}={}", name.key, value)));
  for (int looks = 0; looks < kLooks; ++looks) {
    const Json status = TRY(volume.status());
    if (control::number_of(status, "log.serial") > before) return volume.close();
    if (control::flag_of(status, "host.full"))
      return Error(Errc::host_full, path + ": the change has been taken, and is written when there is room where the image lies");
    std::this_thread::sleep_for(kLook);
  }
  return Error(Errc::busy, "the change has been taken, but no checkpoint has written it within a minute: look at varve status");
}

void tell_name(const Name& name, const std::string& value, bool json, IoLayer& io) {
  io.out << (json ? json_text(Json{{name.key, value}}, 2) : printable(value)) << "\n";
}

Status run_name(const Name& name, const std::string& path, const std::optional<std::string>& value, bool json, IoLayer& io) {
  const control::Place place = TRY(control::find_place(path));
  if (value) {
    TRY(change(place, path, name, *value));
    if (json) tell_name(name, *value, json, io);
    return {};
  }
  if (place.is_mounted() && !place.is_dead) {
    tell_name(name, TRY(mount_status(place.directory)).value(name.key, ""), json, io);
    return {};
  }
  const auto device = TRY(remote::open_device(place.source, {.access = io::Access::read_only}));
  tell_name(name, name.text(TRY(checkpoint::read_superblocks(*device)).best), json, io);
  return {};
}

void declare(CLI::App& app, Action& chosen, const Name& name, const char* help, const char* value_help) {
  struct Arguments {
    std::string path;
    std::optional<std::string> value;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(name.key, help);
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option(std::string("new-") + name.key, arguments->value, value_help);
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen, &name] {
    chosen = [arguments, &name](IoLayer& io) {
      if (&name == &kUuid && arguments->value == "random") arguments->value = random_uuid();
      return run_name(name, arguments->path, arguments->value, arguments->json, io);
    };
  });
}

}  // namespace

void declare_label(CLI::App& app, Action& chosen) {
  declare(app, chosen, kLabel, "Show the label, or give another one", "At most 63 bytes; \"\" for none");
}

void declare_uuid(CLI::App& app, Action& chosen) {
  declare(app, chosen, kUuid, "Show the UUID, or give another one, as to a copy of an image", "A UUID, or `random`");
}

}  // namespace varve::tool

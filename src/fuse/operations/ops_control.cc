// Serves the requests of tools.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "control/control.h"
#include "fs/snapshot_looks.h"
#include "fuse/operations/control_requests.h"
#include "fuse/operations/ioctl_reply.h"
#include "fuse/operations/kept_node.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

namespace {

using control::Answer;

bool has_right(Request& r, control::Right right) {
  return right == control::Right::anyone || (Session::may_control(r.header()) && (right != control::Right::root || r.caller().uid == 0));
}

// Errc::in_use: its readers would lose it. Looks at mounts before each change of a name (snapshot_mounts.h).
Status check_unused(Request& r, const control::Request& asked) {
  const auto mounts = r.session().snapshot_mounts().look();
  if (asked.ask != "snapshot_remove" || mounts.empty()) return {};
  const auto named = fs::find_snapshot(r.fs(), asked.arguments.value("name", ""));
  for (const auto& mounted : mounts)
    if (named && mounted.snapshot.v == named->serial)
      return Error(Errc::in_use, fmt::format("snapshot '{}' is mounted at {}: unmount it first", asked.arguments.value("name", ""),
                                             mounted.directory));
  return {};
}

// The directories where a snapshot is mounted by itself.
void add_places(Request& r, Json& state) {
  const auto mounts = r.session().snapshot_mounts().look();
  for (auto& one : state["snapshots"])
    for (const auto& mounted : mounts)
      if (one["serial"] == mounted.snapshot.v) one["mounted_at"].push_back(mounted.directory);
}

// A tool finds the names of damaged files in snapshots by the folder, and by the numbers that inodes have there.
void add_shown(Request& r, Json& report) {
  const std::string& folder = r.session().settings().snapshots_dir;
  for (auto& finding : report["findings"]) {
    if (folder.empty() || !finding.contains("snapshot") || !finding.contains("inode")) continue;
    const KeptNode node{Serial{finding["snapshot_serial"].get<std::uint64_t>()}, Ino{finding["inode"].get<std::uint64_t>()}};
    const auto number = node.encode();
    if (!number) continue;
    finding["shown_in"] = folder;
    finding["shown_inode"] = number->v;
  }
}

// The daemon knows more than the filesystem does.
void add_facts(Request& r, const std::string& ask, Json& answer) {
  if (ask == "status") r.session().add_facts(answer);
  if (ask == "snapshot_list") add_places(r, answer);
  if (ask == "scrub_report") add_shown(r, answer);
}

Status begin(Request& r, const control::Request& asked, const Respond& respond) {
  TRY(may_ask(r, asked.ask));
  const control::Attempt attempt = TRY(control::prepare(r.fs(), asked));
  const bool makes = asked.ask == "snapshot_create";
  if (makes || asked.ask == "snapshot_rename" || asked.ask == "snapshot_remove") TRY(check_unused(r, asked));
  const auto serve = [&r, attempt, ask = asked.ask, respond] {
    r.serve_result([&r, attempt] { return attempt(r.operation()); },
                   [&r, ask, respond](Result<Answer> answer) {
                     if (answer.ok()) add_facts(r, ask, answer->json);
                     respond(std::move(answer));
                   });
  };
  if (!makes) return serve(), Status();
  // All that was written belongs to it, also data that only the kernel has so far.
  const SessionSettings& settings = r.session().settings();
  r.session().flusher().flush_all(settings.mount_point, settings.wishes.max_background, [&r, serve] { r.post(serve); });
  return {};
}

void reply_piece(Request& r, const StatusPages::Piece& piece, std::size_t json) {
  control::Message message{piece.document, piece.offset, piece.total, static_cast<std::uint32_t>(json)};
  std::memcpy(message.room, piece.text.data(), piece.text.size());
  reply_ioctl_struct(r, message);
}

void reply_answer(Request& r, const std::string& ask, const Result<Answer>& answer) {
  std::string text = control::to_text(answer, ask);
  const std::size_t json = text.size();
  if (answer.ok() && !answer->bytes.empty()) text.append(reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size());
  const auto command = control::find_command(ask);
  const control::Right right = command.ok() ? (*command)->right : control::Right::anyone;
  reply_piece(r, r.session().status_pages().add(std::move(text), sizeof(control::Message::room), right), json);
}

}  // namespace

Status may_ask(Request& r, std::string_view ask) {
  if (has_right(r, TRY(control::find_command(ask))->right)) return {};
  return Error(Errc::not_permitted, "this is only for root (with CAP_SYS_ADMIN) and the user who mounted it");
}

void serve_control(Request& r, const control::Request& asked, const Respond& respond) {
  if (const Status begun = begin(r, asked, respond); !begun.ok()) respond(begun.error());
}

Status control_message(Request& r) {
  control::Message message;
  const auto bytes = TRY(r.body().take_bytes(sizeof message));
  std::memcpy(&message, bytes.data(), bytes.size());
  if (message.document) {
    const auto piece = TRY(r.session().status_pages().piece(message.document, message.offset, sizeof message.room));
    if (!has_right(r, piece.right)) return Errc::not_permitted;
    return reply_piece(r, piece, 0), Status();
  }
  if (message.total > sizeof message.room) return Errc::invalid;
  const auto asked = control::request_from({message.room, message.total});
  if (!asked.ok()) return reply_answer(r, "request", asked.error()), Status();
  serve_control(r, *asked, [&r, ask = asked->ask](const Result<Answer>& answer) { reply_answer(r, ask, answer); });
  return {};
}

}  // namespace varve::fuse

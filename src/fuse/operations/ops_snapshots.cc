// What tools ask of snapshots.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/json_text.h"
#include "compare/answer.h"
#include "compare/change_scan.h"
#include "control/kept_page.h"
#include "control/request_json.h"
#include "fs/snapshot_looks.h"
#include "fuse/operations/ioctl_reply.h"
#include "fuse/operations/operations.h"
#include "snapshots/snapshot_change.h"

namespace varve::fuse {

namespace {

Result<snapshots::SnapshotChange> change_from(const control::SnapshotCommand& asked) {
  using Kind = snapshots::SnapshotChange::Kind;
  const auto text = [](const char (&chars)[256]) { return std::string(chars, ::strnlen(chars, sizeof chars)); };
  snapshots::SnapshotChange change{Kind::create, text(asked.name), text(asked.new_name)};
  switch (asked.command) {
    case control::SnapshotCommand::kCreate: return change;
    case control::SnapshotCommand::kRename: return change.kind = Kind::rename, change;
    case control::SnapshotCommand::kRemove: return change.kind = Kind::remove, change;
    default: return Errc::invalid;
  }
}

// Errc::in_use: its readers would lose it. Looks at mounts before each change of a name (snapshot_mounts.h).
Status check_unused(Request& r, const snapshots::SnapshotChange& change) {
  const auto mounts = r.session().snapshot_mounts().look();
  if (change.kind != snapshots::SnapshotChange::Kind::remove || mounts.empty()) return {};
  const auto named = fs::find_snapshot(r.fs(), change.name);
  for (const auto& mounted : mounts)
    if (named && mounted.snapshot.v == named->serial)
      return Error(Errc::in_use, fmt::format("snapshot '{}' is mounted at {}: unmount it first", change.name, mounted.directory));
  return {};
}

void reply_change(Request& r, control::SnapshotCommand answer, const Status& done) {
  const std::string message = done.ok() ? "" : done.error().message();
  answer.error = done.ok() ? 0 : static_cast<std::uint32_t>(errno_of(done.error().code()));
  std::memset(answer.answer, 0, sizeof answer.answer);
  std::memcpy(answer.answer, message.data(), std::min(message.size(), sizeof answer.answer - 1));
  reply_ioctl_struct(r, answer);
}

// With the directories where one is mounted by itself.
std::string snapshots_json(Request& r) {
  const auto mounts = r.session().snapshot_mounts().look();
  Json json = control::to_json(r.fs().snapshots());
  for (auto& one : json["snapshots"])
    for (const auto& mounted : mounts)
      if (one["serial"] == mounted.snapshot.v) one["mounted_at"].push_back(mounted.directory);
  return json_text(json);
}

}  // namespace

Status change_snapshot(Request& r) {
  if (!Session::may_control(r.header())) return Errc::not_permitted;
  const auto asked = TRY(r.body().take<control::SnapshotCommand>());
  const auto change = TRY(change_from(asked));
  if (const Status unused = check_unused(r, change); !unused.ok()) return reply_change(r, asked, unused), Status();
  const auto make = [&r, asked, change] {
    r.serve_result([&r, change] { return r.fs().change_snapshot(r.operation(), change); },
                   [&r, asked](const Status& done) { reply_change(r, asked, done); });
  };
  if (change.kind != snapshots::SnapshotChange::Kind::create) return make(), Status();
  // What was written belongs to it, also what only the kernel has so far.
  const SessionSettings& settings = r.session().settings();
  r.session().flusher().flush_all(settings.mount_point, settings.wishes.max_background, [&r, make] { r.post(make); });
  return {};
}

Status snapshots(Request& r) {
  return document(r, [&r] { return snapshots_json(r); });
}

Status hold_snapshot(Request& r) {
  if (!Session::may_control(r.header())) return Errc::not_permitted;
  const auto asked = TRY(r.body().take<control::SnapshotHold>());
  TRY(r.fs().hold_for_reader(Serial{asked.snapshot}, asked.reader, asked.seconds));
  reply_ioctl(r, {});
  return {};
}

// Nothing is remembered of it: the tool asks on from where the answer has ended.
Status kept_page(Request& r) {
  if (!Session::may_control(r.header())) return Errc::not_permitted;
  control::KeptPage asked;
  const auto bytes = TRY(r.body().take_bytes(sizeof asked));
  std::memcpy(&asked, bytes.data(), bytes.size());
  const auto question = TRY(control::question_from(asked));
  const auto progress = std::make_shared<compare::Progress>();
  r.serve([&r, question, progress] { return compare::answer(r.fs(), r.operation(), question, *progress); },
          [&r](const compare::Answer& answer) { reply_ioctl_struct(r, control::to_page(answer)); });
  return {};
}

}  // namespace varve::fuse

// Tools of 0.1.0 ask by an ioctl for each matter (control/older.h). Here these become requests of today, and their answers what such a tool
// expects. It goes when 0.1.0 needs no upgrade any more.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/json_text.h"
#include "control/older.h"
#include "fuse/operations/control_requests.h"
#include "fuse/operations/ioctl_reply.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

namespace {

using control::Answer;

template <std::size_t kBytes>
std::string text_in(const char (&text)[kBytes]) {
  return {text, ::strnlen(text, kBytes)};
}

template <std::size_t kBytes>
void put(char (&room)[kBytes], const std::string& text) {
  std::memset(room, 0, kBytes);
  std::memcpy(room, text.data(), std::min(text.size(), kBytes - 1));
}

void reply_page(Request& r, const StatusPages::Piece& piece) {
  control::StatusPage page;
  page.snapshot = piece.document;
  page.offset = piece.offset;
  page.total = piece.total;
  std::memcpy(page.text, piece.text.data(), piece.text.size());
  reply_ioctl_struct(r, page);
}

Status document(Request& r, const char* ask) {
  struct Asked {
    std::uint64_t snapshot;
    std::uint32_t offset;
  };
  const auto asked = TRY(r.body().take<Asked>());
  constexpr std::size_t kRoom = sizeof(control::StatusPage::text);
  if (asked.snapshot) {
    const auto piece = TRY(r.session().status_pages().piece(asked.snapshot, asked.offset, kRoom));
    if (piece.right != control::Right::anyone) return Errc::not_permitted;
    return reply_page(r, piece), Status();
  }
  serve_control(r, {ask}, [&r](const Result<Answer>& answer) {
    if (!answer.ok()) return r.reply_error(answer.error());
    reply_page(r, r.session().status_pages().add(json_text(answer->json), kRoom, control::Right::anyone));
  });
  return {};
}

// Answers with success or a number of errno.
Status plain(Request& r, const control::Request& asked) {
  serve_control(r, asked, [&r](const Result<Answer>& answer) { answer.ok() ? reply_ioctl(r, {}) : r.reply_error(answer.error()); });
  return {};
}

// A text is answered with none, or with what is wrong with it.
template <class Text>
Status worded(Request& r, control::Request (*request_of)(const std::string& text)) {
  const auto asked = TRY(r.body().take<Text>());
  serve_control(r, request_of(text_in(asked.text)), [&r](const Result<Answer>& answer) {
    if (answer.fails_with(Errc::not_permitted)) return r.reply_error(answer.error());
    Text told;
    put(told.text, answer.ok() ? "" : answer.error().message());
    reply_ioctl_struct(r, told);
  });
  return {};
}

control::Request tuning(const std::string& setting) {
  const auto equals = std::min(setting.find('='), setting.size());
  return {"tune", {{"setting", setting.substr(0, equals)}, {"value", setting.substr(std::min(equals + 1, setting.size()))}}};
}
control::Request cleaning(const std::string& json) { return {"clean_start", Json::parse(json, nullptr, false)}; }
control::Request resizing(const std::string& json) { return {"resize_start", Json::parse(json, nullptr, false)}; }

Status scrub(Request& r) {
  using Command = control::ScrubCommand;
  const auto asked = TRY(r.body().take<Command>());
  if (asked.command == Command::kStop) return plain(r, {"scrub_stop"});
  if (asked.command != Command::kStart || (asked.flags & ~Command::kFromTheBeginning)) return Errc::invalid;
  return plain(r, {"scrub_start", {{"bytes_per_second", asked.bytes_per_second}, {"from_the_beginning", asked.flags != 0}}});
}

Status change_snapshot(Request& r) {
  const auto asked = TRY(r.body().take<control::SnapshotCommand>());
  static constexpr const char* kAsks[] = {nullptr, "snapshot_create", "snapshot_rename", "snapshot_remove"};  // by SnapshotCommand::command
  if (asked.command == 0 || asked.command >= std::size(kAsks)) return Errc::invalid;
  const control::Request request{kAsks[asked.command], {{"name", text_in(asked.name)}, {"new_name", text_in(asked.new_name)}}};
  serve_control(r, request, [&r, asked](const Result<Answer>& answer) {
    if (answer.fails_with(Errc::not_permitted)) return r.reply_error(answer.error());
    control::SnapshotCommand told = asked;
    told.error = answer.ok() ? 0 : static_cast<std::uint32_t>(errno_of(answer.error().code()));
    put(told.answer, answer.ok() ? "" : answer.error().message());
    reply_ioctl_struct(r, told);
  });
  return {};
}

Status hold_snapshot(Request& r) {
  const auto asked = TRY(r.body().take<control::SnapshotHold>());
  return plain(r, {"snapshot_hold", {{"snapshot", asked.snapshot}, {"reader", asked.reader}, {"seconds", asked.seconds}}});
}

Status kept_page(Request& r) {
  control::KeptPage page;
  const auto bytes = TRY(r.body().take_bytes(sizeof page));
  std::memcpy(&page, bytes.data(), bytes.size());
  if (page.bytes % sizeof(Ino) || page.bytes > compare::kMostAsked * sizeof(Ino) || page.item > 0xFF) return Errc::invalid;
  compare::Question question{static_cast<compare::Question::Kind>(page.question), Serial{page.before}, Serial{page.after},
                             {Ino{page.ino}, static_cast<format::ItemKind>(page.item), page.offset},
                             std::vector<Ino>(page.bytes / sizeof(Ino))};
  if (page.bytes > 0) std::memcpy(question.inodes.data(), page.text, page.bytes);
  serve_control(r, control::to_request(question), [&r](const Result<Answer>& answer) {
    if (!answer.ok()) return r.reply_error(answer.error());
    const auto found = control::compared(*answer);
    if (!found.ok()) return r.reply_error(found.error());
    control::KeptPage told;
    told.ino = found->next.ino.v;
    told.item = static_cast<std::uint32_t>(found->next.kind);
    told.offset = found->next.offset;
    told.ended = found->ended;
    told.bytes = static_cast<std::uint32_t>(std::min(found->bytes.size(), sizeof told.text));
    if (told.bytes > 0) std::memcpy(told.text, found->bytes.data(), told.bytes);
    reply_ioctl_struct(r, told);
  });
  return {};
}

}  // namespace

Status older_message(Request& r, std::uint32_t command) {
  switch (command) {
    case control::kStatusIoctl: return document(r, "status");
    case control::kScrubReportIoctl: return document(r, "scrub_report");
    case control::kCleanReportIoctl: return document(r, "clean_report");
    case control::kHistoryIoctl: return document(r, "history");
    case control::kResizeReportIoctl: return document(r, "resize_report");
    case control::kSnapshotsIoctl: return document(r, "snapshot_list");
    case control::kCheckpointIoctl: return plain(r, {"checkpoint"});
    case control::kCleanStopIoctl: return plain(r, {"clean_stop"});
    case control::kResizeStopIoctl: return plain(r, {"resize_stop"});
    case control::kTuneIoctl: return worded<control::TuneText>(r, tuning);
    case control::kCleanIoctl: return worded<control::CleanText>(r, cleaning);
    case control::kResizeIoctl: return worded<control::TuneText>(r, resizing);
    case control::kScrubIoctl: return scrub(r);
    case control::kSnapshotIoctl: return change_snapshot(r);
    case control::kSnapshotHoldIoctl: return hold_snapshot(r);
    case control::kKeptIoctl: return kept_page(r);
    default: return r.reply_errno(ENOTTY), Status();
  }
}

}  // namespace varve::fuse

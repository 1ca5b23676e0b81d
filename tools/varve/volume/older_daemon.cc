#include "varve/volume/older_daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/errc.h"
#include "control/older.h"

namespace varve::tool {

namespace {

using control::Answer;

Result<Answer> document(int file, unsigned long number, const std::string& what) {
  control::StatusPage page;
  std::string text;
  do {
    page.offset = static_cast<std::uint32_t>(text.size());
    if (::ioctl(file, number, &page) != 0) return refused(errno, what);
    if (page.offset != text.size() || page.total < page.offset) return Error(Errc::corrupt, "the daemon's answer makes no sense");
    text.append(page.text, std::min<std::size_t>(sizeof page.text, page.total - page.offset));
  } while (text.size() < page.total);
  auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Error(Errc::corrupt, "the daemon's answer makes no sense");
  return Answer{std::move(json)};
}

template <class Struct>
Result<Answer> plain(int file, unsigned long number, Struct asked, const std::string& what) {
  return ::ioctl(file, number, &asked) == 0 ? Result<Answer>(Answer()) : refused(errno, what);
}

template <class Text>
Result<Answer> worded(int file, unsigned long number, const std::string& words, const std::string& what) {
  Text text;
  if (words.size() >= sizeof text.text) return Error(Errc::invalid, "too much at once");
  words.copy(text.text, words.size());
  if (::ioctl(file, number, &text) != 0) return refused(errno, what);
  text.text[sizeof text.text - 1] = 0;
  return text.text[0] ? Result<Answer>(Error(Errc::invalid, text.text)) : Answer();
}

Result<Answer> change_snapshot(int file, std::uint32_t kind, const Json& with) {
  control::SnapshotCommand command;
  command.command = kind;
  with.value("name", "").copy(command.name, sizeof command.name - 1);
  with.value("new_name", "").copy(command.new_name, sizeof command.new_name - 1);
  if (::ioctl(file, control::kSnapshotIoctl, &command) != 0) return refused(errno, "snapshot");
  command.answer[sizeof command.answer - 1] = 0;
  if (!command.answer[0]) return Answer();
  return Error(command.error ? errc_from_errno(static_cast<int>(command.error)) : Errc::invalid, command.answer);
}

Result<Answer> compare(int file, const Json& with) {
  control::KeptPage page;
  page.question = with["kind"];
  page.before = with["before"];
  page.after = with["after"];
  page.ino = with["from"][0];
  page.item = with["from"][1];
  page.offset = with["from"][2];
  for (const std::uint64_t inode : with["inodes"]) {
    std::memcpy(page.text + page.bytes, &inode, sizeof inode);
    page.bytes += sizeof inode;
  }
  if (::ioctl(file, control::kKeptIoctl, &page) != 0) return refused(errno, "snapshot");
  const auto bytes = std::as_bytes(std::span(page.text)).first(std::min<std::size_t>(page.bytes, sizeof page.text));
  return Answer{{{"next", Json::array({page.ino, page.item, page.offset})}, {"ended", page.ended != 0}}, {bytes.begin(), bytes.end()}};
}

}  // namespace

Error refused(int error, const std::string& what) {
  if (error == ENOTTY || error == EINVAL || error == ENOSYS || error == EOPNOTSUPP)
    return {Errc::unsupported, "not a mounted Varve filesystem"};
  if (error == EPERM) return {Errc::not_permitted, "this is only for root (with CAP_SYS_ADMIN) and the user who mounted it"};
  return {errc_from_errno(error), fmt::format("{}: {}", what, std::strerror(error))};  // NOLINT(concurrency-mt-unsafe)
}

Result<Answer> ask_older(int file, const control::Request& request, int error) {
  const std::string& ask = request.ask;
  const Json& with = request.arguments;
  const std::string what = ask.substr(0, ask.find('_'));
  if (error != ENOTTY) return refused(error, what);
  for (const auto& [name, number] : {std::pair{"status", control::kStatusIoctl}, {"scrub_report", control::kScrubReportIoctl},
                                     {"clean_report", control::kCleanReportIoctl}, {"history", control::kHistoryIoctl},
                                     {"resize_report", control::kResizeReportIoctl}, {"snapshot_list", control::kSnapshotsIoctl}})
    if (ask == name) return document(file, number, what);
  TRY(document(file, control::kStatusIoctl, what));  // other filesystems may know the numbers of the others
  for (const auto& [name, number] : {std::pair{"checkpoint", control::kCheckpointIoctl}, {"clean_stop", control::kCleanStopIoctl},
                                     {"resize_stop", control::kResizeStopIoctl}})
    if (ask == name) return plain(file, number, 0, what);
  for (const auto& [name, kind] : {std::pair{"snapshot_create", control::SnapshotCommand::kCreate},
                                   {"snapshot_rename", control::SnapshotCommand::kRename},
                                   {"snapshot_remove", control::SnapshotCommand::kRemove}})
    if (ask == name) return change_snapshot(file, kind, with);
  using Scrub = control::ScrubCommand;
  if (ask == "scrub_stop") return plain(file, control::kScrubIoctl, Scrub{Scrub::kStop, 0, 0}, what);
  if (ask == "scrub_start")
    return plain(file, control::kScrubIoctl,
                 Scrub{Scrub::kStart, with.value("from_the_beginning", false) ? std::uint32_t{Scrub::kFromTheBeginning} : 0U,
                       with.value("bytes_per_second", std::uint64_t{0})}, what);
  const std::string setting = with.value("setting", "") + "=" + with.value("value", "");
  if (ask == "tune") return worded<control::TuneText>(file, control::kTuneIoctl, setting, what);
  if (ask == "clean_start") return worded<control::CleanText>(file, control::kCleanIoctl, json_text(with), what);
  if (ask == "resize_start") return worded<control::TuneText>(file, control::kResizeIoctl, json_text(with), what);
  if (ask == "snapshot_hold")
    return plain(file, control::kSnapshotHoldIoctl, control::SnapshotHold{with["snapshot"], with["reader"], with["seconds"]}, what);
  if (ask == "snapshot_compare") return compare(file, with);
  return Error(Errc::unsupported, "the program that has mounted it is older than this one: unmount it, and mount it again");
}

}  // namespace varve::tool

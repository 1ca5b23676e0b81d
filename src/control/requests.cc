#include "control/requests.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>

#include "compare/answer.h"
#include "compare/change_scan.h"
#include "control/request_json.h"
#include "control/status_json.h"
#include "fs/filesystem.h"
#include "snapshots/snapshot_change.h"

namespace varve::control {

namespace {

Error lacks(const char* key) { return {Errc::invalid, fmt::format("the request has no '{}', or not of its kind", key)}; }

Result<std::uint64_t> number_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? Result<std::uint64_t>(found->get<std::uint64_t>()) : lacks(key);
}

Result<std::string> words_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? Result<std::string>(found->get<std::string>()) : lacks(key);
}

using fs::Filesystem;
using Change = snapshots::SnapshotChange;

// Makes an attempt of an act that answers nothing. It may take several attempts.
template <class Act>
Attempt doing(Act act) {
  return [act](fs::Operation& operation) -> Result<Answer> {
    TRY(act(operation));
    return Answer();
  };
}

// Answers by something that the filesystem tells at once.
template <auto kTell>
Result<Attempt> told(Filesystem& fs, const Json&) {
  return Attempt([&fs](fs::Operation&) -> Result<Answer> { return Answer{to_json((fs.*kTell)())}; });
}

Result<Attempt> checkpoint(Filesystem& fs, const Json&) {
  return doing([&fs](fs::Operation& operation) { return fs.checkpoint(operation); });
}

Result<Attempt> tune(Filesystem& fs, const Json& json) {
  const auto setting = TRY(words_in(json, "setting"));
  const auto value = TRY(words_in(json, "value"));
  return doing([&fs, setting, value](fs::Operation&) { return fs.tune(setting, value); });
}

Result<Attempt> scrub_start(Filesystem& fs, const Json& json) {
  const scrub::Request request{TRY(number_in(json, "bytes_per_second")), json.value("from_the_beginning", Json()) == true};
  return doing([&fs, request](fs::Operation& operation) { return fs.start_scrub(operation, request); });
}

template <void (Filesystem::*kStop)()>
Result<Attempt> stop(Filesystem& fs, const Json&) {
  return doing([&fs](fs::Operation&) { return (fs.*kStop)(), Status(); });
}

Result<Attempt> clean_start(Filesystem& fs, const Json& json) {
  const auto request = TRY(clean_request_from(json));
  return doing([&fs, request](fs::Operation&) { return fs.start_clean(request); });
}

Result<Attempt> resize_start(Filesystem& fs, const Json& json) {
  const jobs::ResizeRequest request{TRY(number_in(json, "bytes"))};
  return doing([&fs, request](fs::Operation&) { return fs.start_resize(request); });
}

template <Change::Kind kKind>
Result<Attempt> change(Filesystem& fs, const Json& json) {
  Change change{kKind, TRY(words_in(json, "name")), {}};
  if (kKind == Change::Kind::rename) change.new_name = TRY(words_in(json, "new_name"));
  return doing([&fs, change](fs::Operation& operation) { return fs.change_snapshot(operation, change); });
}

// Puts an error in the words that a tool needs which reads a snapshot.
Error of_a_reader(const Error& why) {
  if (why.is(Errc::stale)) return {why.code(), "a snapshot was deleted meanwhile"};
  if (!why.is(Errc::no_space)) return why;
  return {why.code(), "no space to hold the automatic snapshot while it is read: remove something first"};
}

// A tool reads an automatic snapshot, which is not given up meanwhile (checkpoint/readers.h). `reader` is any number of the tool's own;
// after `seconds` it asks again, and 0 ends it.
Result<Attempt> snapshot_hold(Filesystem& fs, const Json& json) {
  const auto snapshot = TRY(number_in(json, "snapshot"));
  const auto reader = TRY(number_in(json, "reader"));
  const auto seconds = TRY(number_in(json, "seconds"));
  return doing([&fs, snapshot, reader, seconds](fs::Operation&) -> Status {
    const Status held = fs.hold_for_reader(Serial{snapshot}, reader, seconds);
    return held.ok() ? held : Status(of_a_reader(held.error()));
  });
}

Json key_json(const format::Key& key) { return Json{key.ino.v, static_cast<std::uint8_t>(key.kind), key.offset}; }

Result<format::Key> key_from(const Json& json) {
  const bool is_one = json.is_array() && json.size() == 3 && json[0].is_number_unsigned() && json[1].is_number_unsigned() &&
                      json[1].get<std::uint64_t>() <= 0xFF && json[2].is_number_unsigned();
  if (!is_one) return Error(Errc::invalid, "no key of an item");
  return format::Key{Ino{json[0].get<std::uint64_t>()}, static_cast<format::ItemKind>(json[1].get<std::uint8_t>()),
                     json[2].get<std::uint64_t>()};
}

Result<compare::Question> question_from(const Json& json) {
  const auto kind = TRY(number_in(json, "kind"));
  if (kind > ~0U) return lacks("kind");
  const auto before = TRY(number_in(json, "before"));
  const auto after = TRY(number_in(json, "after"));
  compare::Question question{static_cast<compare::Question::Kind>(kind), Serial{before}, Serial{after},
                             TRY(key_from(json.value("from", Json())))};
  const Json inodes = json.value("inodes", Json::array());
  if (!inodes.is_array() || inodes.size() > compare::kMostAsked) return lacks("inodes");
  for (const Json& inode : inodes) {
    if (!inode.is_number_unsigned()) return lacks("inodes");
    question.inodes.push_back(Ino{inode.get<std::uint64_t>()});
  }
  return question;
}

// Nothing is remembered of it: the tool asks on from where the answer has ended.
Result<Attempt> snapshot_compare(Filesystem& fs, const Json& json) {
  const auto question = TRY(question_from(json));
  const auto progress = std::make_shared<compare::Progress>();
  return Attempt([&fs, question, progress](fs::Operation& operation) -> Result<Answer> {
    auto found = compare::answer(fs, operation, question, *progress);
    if (!found.ok()) return of_a_reader(found.error());
    return Answer{{{"next", key_json(found->next)}, {"ended", found->ended}}, std::move(found->bytes)};
  });
}

constexpr Command kCommands[] = {
    {"status", Right::anyone, told<&Filesystem::status>},
    {"history", Right::anyone, told<&Filesystem::history>},
    {"checkpoint", Right::keeper, checkpoint},
    {"tune", Right::keeper, tune},
    {"scrub_start", Right::keeper, scrub_start},
    {"scrub_stop", Right::keeper, stop<&Filesystem::stop_scrub>},
    {"scrub_report", Right::anyone, told<&Filesystem::scrub_state>},
    {"clean_start", Right::keeper, clean_start},
    {"clean_stop", Right::keeper, stop<&Filesystem::stop_clean>},
    {"clean_report", Right::anyone, told<&Filesystem::clean_state>},
    {"resize_start", Right::keeper, resize_start},
    {"resize_stop", Right::keeper, stop<&Filesystem::stop_resize>},
    {"resize_report", Right::anyone, told<&Filesystem::resize_state>},
    {"snapshot_list", Right::anyone, told<&Filesystem::snapshots>},
    {"snapshot_create", Right::keeper, change<Change::Kind::create>},
    {"snapshot_rename", Right::keeper, change<Change::Kind::rename>},
    {"snapshot_remove", Right::keeper, change<Change::Kind::remove>},
    {"snapshot_hold", Right::keeper, snapshot_hold},
    {"snapshot_compare", Right::keeper, snapshot_compare},
    {"trim", Right::keeper, nullptr},     // FITRIM
    {"label", Right::keeper, nullptr},    // FS_IOC_SETFSLABEL
    {"shut_down", Right::root, nullptr},  // FS_IOC_SHUTDOWN
};

// An error that has only a code is told as the system says it, after what was asked for.
std::string message_of(const Error& error, std::string_view ask) {
  if (error.message() != varve::text_of(error.code())) return error.message();
  return fmt::format("{}: {}", ask.substr(0, ask.find('_')), std::strerror(errno_of(error.code())));  // NOLINT(concurrency-mt-unsafe)
}

Errc code_named(const std::string& name) {
#define X(code, number, text) \
  if (name == #code) return Errc::code;
  VARVE_ERRORS(X)
#undef X
  return Errc::invalid;  // one that this version does not know
}

}  // namespace

Result<const Command*> find_command(std::string_view name) {
  for (const Command& command : kCommands)
    if (command.name == name) return &command;
  return Error(Errc::unsupported, fmt::format("the program that has mounted it does not know the request '{:.40}'", name));
}

Result<Attempt> prepare(fs::Filesystem& filesystem, const Request& request) {
  const Command* const command = TRY(find_command(request.ask));
  if (!command->prepare) return Error(Errc::unsupported, fmt::format("'{}' is asked by an ioctl of Linux", request.ask));
  return command->prepare(filesystem, request.arguments);
}

Result<Answer> answer(fs::Filesystem& filesystem, const Request& request) {
  const Attempt attempt = TRY(prepare(filesystem, request));
  fs::Operation operation(filesystem.operations(), {});
  return fs::block_on(operation, [&] { return attempt(operation); });
}

Result<std::string> to_text(const Request& request) {
  Json json{{"version", kVersion}, {"ask", request.ask}};
  json.update(request.arguments);
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    return Error(Errc::invalid, "names and values are UTF-8");
  }
}

Result<Request> request_from(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error(Errc::invalid, "a request is a JSON object");
  if (json.value("version", Json()) != kVersion)
    return Error(Errc::unsupported, fmt::format("the program that has mounted it knows version {} of requests, and no other", kVersion));
  Request request{TRY(words_in(json, "ask")), {}};
  request.arguments = std::move(json);
  return request;
}

std::string to_text(const Result<Answer>& answer, std::string_view ask) {
  Json json{{"version", kVersion}};
  if (answer.ok()) json["answer"] = answer->json;
  else json["error"] = {{"code", name_of(answer.error().code())}, {"message", message_of(answer.error(), ask)}};
  return json_text(json);
}

Result<Answer> answer_from(std::string_view text, std::span<const std::byte> bytes) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("answer")) return Answer{std::move(json["answer"]), {bytes.begin(), bytes.end()}};
  const Json error = json.is_object() ? json.value("error", Json()) : Json();
  const auto code = words_in(error, "code"), message = words_in(error, "message");
  if (!code.ok() || !message.ok()) return Error(Errc::corrupt, "the daemon's answer makes no sense");
  return Error(code_named(*code), *message);
}

Request to_request(const compare::Question& question) {
  Json inodes = Json::array();
  for (const Ino ino : question.inodes) inodes.push_back(ino.v);
  return {"snapshot_compare",
          {{"kind", static_cast<std::uint32_t>(question.kind)}, {"before", question.before.v}, {"after", question.after.v},
           {"from", key_json(question.from)}, {"inodes", std::move(inodes)}}};
}

Result<compare::Answer> compared(const Answer& answer) {
  const auto next = key_from(answer.json.is_object() ? answer.json.value("next", Json()) : Json());
  if (!next.ok()) return Error(Errc::corrupt, "the daemon's answer makes no sense");
  return compare::Answer{*next, answer.json.value("ended", Json()) == true, answer.bytes};
}

}  // namespace varve::control

// Requests of tools to a filesystem, and their answers. The daemon that has it mounted answers, or the tool itself for an image.
//
// A request is JSON: {"version": 1, "ask": "snapshot_create", …what it takes…}. The answer is {"version": 1, "answer": …}, which bytes may
// follow, or {"version": 1, "error": {"code": "exists", "message": "…"}}. The table of requests says for each whose right it is.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/result.h"
#include "compare/question.h"

namespace varve::fs {
class Filesystem;
}

namespace varve::operation {
class Operation;
}

namespace varve::control {

inline constexpr std::uint32_t kVersion = 1;

struct Request {
  std::string ask;
  Json arguments = Json::object();
};

struct Answer {
  Json json = Json::object();
  format::Bytes bytes{};
};

enum class Right : std::uint8_t {  // whose it is to ask
  anyone,
  keeper,  // the user who has mounted it, and root
  root,
};

// One attempt at an answer, which never waits (operation/operation.h).
using Attempt = std::function<Result<Answer>(operation::Operation&)>;

struct Command {
  std::string_view name;
  Right right;
  Result<Attempt> (*prepare)(fs::Filesystem&, const Json& arguments);  // null: it is asked by an ioctl of Linux
};
// Errc::unsupported: there is no such request.
Result<const Command*> find_command(std::string_view name);

// Errc::invalid, with words: what it takes is not there, or makes no sense. The filesystem must outlive the attempt.
Result<Attempt> prepare(fs::Filesystem& filesystem, const Request& request);
// For a tool that has mounted the filesystem by itself; it waits.
Result<Answer> answer(fs::Filesystem& filesystem, const Request& request);

// --- as text ---

Result<std::string> to_text(const Request& request);  // Errc::invalid: what is no UTF-8
Result<Request> request_from(std::string_view text);  // Errc::invalid: it is none; Errc::unsupported: it is of another version
std::string to_text(const Result<Answer>& answer, std::string_view ask);
Result<Answer> answer_from(std::string_view text, std::span<const std::byte> bytes);  // Errc::corrupt: no daemon says that

// --- questions about snapshots ---

Request to_request(const compare::Question& question);
Result<compare::Answer> compared(const Answer& answer);

}  // namespace varve::control

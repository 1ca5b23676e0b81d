#include "support/script.h"

#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

namespace varve::test {

namespace {

// What follows the verb: t target, o other, n number, 8 octal number, i signed number (numbers fill n[0], n[1], …),
// r rename flags, f fallocate mode, x setxattr flags.
struct Grammar {
  Verb verb;
  std::string_view name;
  std::string_view fields;
};

constexpr Grammar kGrammar[] = {
    {Verb::create, "create", "t8"},        {Verb::mknod, "mknod", "t8n"},
    {Verb::mkdir, "mkdir", "t8"},          {Verb::symlink, "symlink", "to"},
    {Verb::tmpfile, "tmpfile", "to8"},     {Verb::link, "link", "to"},
    {Verb::unlink, "unlink", "t"},         {Verb::rmdir, "rmdir", "t"},
    {Verb::rename, "rename", "tor"},       {Verb::write, "write", "tnnn"},
    {Verb::append, "append", "tnn"},       {Verb::read, "read", "tnn"},
    {Verb::truncate, "truncate", "tn"},    {Verb::fallocate, "fallocate", "tfnn"},
    {Verb::chmod, "chmod", "t8"},          {Verb::chown, "chown", "tnn"},
    {Verb::utimes, "utimes", "tii"},       {Verb::setxattr, "setxattr", "tonnx"},
    {Verb::removexattr, "removexattr", "to"}, {Verb::hold, "hold", "to"},
    {Verb::release, "release", "t"},       {Verb::fsync, "fsync", "t"},
    {Verb::sync, "sync", ""},              {Verb::checkpoint, "checkpoint", ""},
    {Verb::remount, "remount", ""},        {Verb::pass, "pass", "n"},
    {Verb::seal, "seal", ""},              {Verb::clean, "clean", "o"},
    {Verb::work, "work", ""},              {Verb::move, "move", "n"},
    {Verb::tidy, "tidy", "tn"},
    {Verb::resize, "resize", "n"},
    {Verb::keep, "keep", "t"},             {Verb::drop, "drop", "t"},
    {Verb::relabel, "relabel", "to"},
};

constexpr std::string_view kRenameWords[] = {"move", "noreplace", "exchange", "noreplace+exchange"};
constexpr std::string_view kFallocateWords[] = {"allocate", "keep", "punch", "zero", "zero-keep"};
constexpr std::string_view kXattrWords[] = {"set", "create", "replace"};

std::span<const std::string_view> words_of(char field) {
  if (field == 'r') return kRenameWords;
  if (field == 'f') return kFallocateWords;
  return kXattrWords;
}

const Grammar* grammar_of(Verb verb) {
  for (const Grammar& g : kGrammar) {
    if (g.verb == verb) return &g;
  }
  return nullptr;
}

const Grammar* grammar_of(std::string_view name) {
  for (const Grammar& g : kGrammar) {
    if (g.name == name) return &g;
  }
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

// Cuts the first word off `rest`.
std::string_view next_word(std::string_view& rest) {
  rest = trimmed(rest);
  const auto end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end);
  return word;
}

template <class Number>
std::optional<Number> number(std::string_view word, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool parse_number(char field, std::string_view word, std::uint64_t& out) {
  if (field == 'i') {
    const auto value = number<std::int64_t>(word, 10);
    if (value) out = static_cast<std::uint64_t>(*value);
    return value.has_value();
  }
  const auto value = number<std::uint64_t>(word, field == '8' ? 8 : 10);
  if (value) out = *value;
  return value.has_value();
}

bool parse_flags(char field, std::string_view word, unsigned& out) {
  const auto words = words_of(field);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != word) continue;
    out = static_cast<unsigned>(i);
    return true;
  }
  return false;
}

bool parse_field(char field, std::string_view word, Step& step, std::size_t& numbers) {
  if (word.empty()) return false;
  switch (field) {
    case 't':
      step.target = std::string(word);
      return true;
    case 'o':
      step.other = std::string(word);
      return true;
    case 'n':
    case '8':
    case 'i':
      return parse_number(field, word, step.n.at(numbers++));
    default:
      return parse_flags(field, word, step.flags);
  }
}

}  // namespace

std::string to_string(const Step& step) {
  const Grammar& grammar = *grammar_of(step.verb);
  std::string text(grammar.name);
  std::size_t numbers = 0;
  for (const char field : grammar.fields) {
    text += ' ';
    if (field == 't') text += step.target;
    else if (field == 'o') text += step.other;
    else if (field == 'n') text += fmt::format("{}", step.n.at(numbers++));
    else if (field == '8') text += fmt::format("{:#o}", step.n.at(numbers++));
    else if (field == 'i') text += fmt::format("{}", static_cast<std::int64_t>(step.n.at(numbers++)));
    else text += words_of(field)[step.flags];
  }
  return text;
}

std::string to_string(const Script& script, std::string_view separator) {
  std::string text;
  for (const Step& step : script) {
    if (!text.empty()) text += separator;
    text += to_string(step);
  }
  return text;
}

Result<Step> parse_step(std::string_view line) {
  std::string_view rest = line;
  const Grammar* grammar = grammar_of(next_word(rest));
  if (!grammar) return Error(Errc::invalid, fmt::format("no such step: {}", line));
  Step step;
  step.verb = grammar->verb;
  std::size_t numbers = 0;
  for (const char field : grammar->fields) {
    if (!parse_field(field, next_word(rest), step, numbers)) {
      return Error(Errc::invalid, fmt::format("cannot read step: {}", line));
    }
  }
  if (!trimmed(rest).empty()) return Error(Errc::invalid, fmt::format("too many words: {}", line));
  return step;
}

Result<Script> parse_script(std::string_view text) {
  Script script;
  while (!text.empty()) {
    const auto end = text.find_first_of("\n;");
    std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    script.push_back(TRY(parse_step(line)));
  }
  return script;
}

Script script(std::string_view text) {
  auto parsed = parse_script(text);
  if (!parsed.ok()) throw std::invalid_argument(parsed.error().message());
  return std::move(parsed).value();
}

Step step(std::string_view text) {
  auto parsed = parse_step(text);
  if (!parsed.ok()) throw std::invalid_argument(parsed.error().message());
  return std::move(parsed).value();
}

bool is_of_snapshots(Verb verb) { return verb == Verb::keep || verb == Verb::drop || verb == Verb::relabel; }

bool is_barrier(Verb verb) {
  return verb == Verb::fsync || verb == Verb::sync || verb == Verb::checkpoint || verb == Verb::remount || is_of_snapshots(verb);
}

bool is_neutral(Verb verb) {
  return (is_barrier(verb) && !is_of_snapshots(verb)) || verb == Verb::read || verb == Verb::pass ||
         verb == Verb::hold || verb == Verb::release || verb == Verb::seal || verb == Verb::clean || verb == Verb::work ||
         verb == Verb::move || verb == Verb::tidy || verb == Verb::resize;
}

}  // namespace varve::test

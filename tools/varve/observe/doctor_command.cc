#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "base/json_text.h"
#include "varve/command.h"
#include "varve/observe/doctor_checks.h"

namespace varve::tool {

namespace {

struct DoctorArguments {
  std::string path;
  bool json = false;
};

// As wide as 80 columns; the advice below.
std::string wrapped(const std::string& text, const std::string& margin) {
  constexpr std::size_t kWidth = 80;
  std::string out, line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && margin.size() + line.size() + 1 + word.size() > kWidth) {
      out += (out.empty() ? "" : margin) + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out + (out.empty() ? "" : margin) + line + "\n";
}

Status examine(const DoctorArguments& arguments, IoLayer& io) {
  std::vector<Finding> findings = check_system();
  if (!arguments.path.empty()) {
    const control::Place place = TRY(control::find_place(arguments.path));
    for (const auto& more : {check_storage(place), check_mount(place)})
      findings.insert(findings.end(), more.begin(), more.end());
  }
  auto json = Json::array();
  for (const Finding& f : findings) {
    json.push_back(to_json(f));
    if (arguments.json) continue;
    const std::string margin(22, ' ');
    io.out << fmt::format("{:<8}{:<13} {}", name_of(f.grade), f.subject, wrapped(f.text, margin));
    if (!f.advice.empty()) io.out << margin << wrapped("-> " + f.advice, margin + "   ");
  }
  io.answered = true;
  if (arguments.json) io.out << json_text(json, 2) << "\n";
  io.out << std::flush;
  const auto broken = std::ranges::count(findings, Finding::Grade::broken, &Finding::grade);
  if (broken)
    return Error(Errc::io, fmt::format("{} of {} checks say that something does not work", broken, findings.size()));
  return {};
}

}  // namespace

void declare_doctor(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command = app.add_subcommand("doctor", "What here costs speed or safety, and what to do about it");
  command->add_option("path", arguments->path, "Where it is mounted, or a device or image; none: this machine only");
  command->add_flag("--json", arguments->json, "For programs");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return examine(*arguments, io); }; });
}

}  // namespace varve::tool

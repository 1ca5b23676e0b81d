#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <vector>

#include "base/json_text.h"
#include "control/mount_table.h"
#include "control/place.h"
#include "varve/command.h"
#include "varve/observe/metrics_server.h"
#include "varve/observe/metrics_text.h"
#include "varve/observe/status_asker.h"

namespace varve::tool {

namespace {

struct MetricsArguments {
  std::vector<std::string> places;
  bool all = false;
  std::string listen;
  std::string format = "openmetrics";
};

constexpr auto kPatience = std::chrono::seconds(5);  // for a daemon; a scrape may take ten

struct Found {
  std::vector<Json> statuses;
  std::vector<Outage> outages;
  std::vector<Error> errors;
};

// Whose mount it is, is no outage: mounts of other users are left out of --all.
bool is_for_others(const Error& error) { return error.is(Errc::access) || error.is(Errc::not_permitted); }

Found look(const MetricsArguments& arguments, StatusAsker& asker) {
  std::vector<std::string> places = arguments.places, devices(places.size());
  if (arguments.all) {
    for (const control::MountEntry& entry : control::varve_mounts()) {
      places.push_back(entry.directory);
      devices.push_back(entry.source);
    }
  }
  Found found;
  auto answers = asker.ask(places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (answers[i].ok()) {
      found.statuses.push_back(std::move(answers[i]).value());
      continue;
    }
    if (!arguments.all || !is_for_others(answers[i].error())) found.outages.push_back({places[i], devices[i]});
    found.errors.push_back(answers[i].error());
  }
  return found;
}

void tell(const Found& found, std::ostream& err) {
  for (const Error& error : found.errors) err << "varve metrics: " << error.message() << std::endl;
}

// How much a client likes a type, from 0 to 1 (RFC 9110, 12.4.2). None: it does not name it.
std::optional<double> weight_of(std::string_view type, std::string_view accept) {
  std::optional<double> most;
  std::vector<std::string> ranges, words;
  for (std::string& range : boost::split(ranges, accept, boost::is_any_of(","))) {
    boost::split(words, range, boost::is_any_of("; "), boost::token_compress_on);
    std::erase(words, "");
    if (words.empty() || words[0] != type) continue;
    const auto given = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with("q="); });
    most = std::max(most.value_or(0), given == words.end() ? 1 : std::strtod(given->c_str() + 2, nullptr));
  }
  return most;
}

// Which of both a client wants: what it names counts more than what was chosen with --format.
MetricsFormat format_for(std::string_view accept, MetricsFormat chosen) {
  const auto modern = weight_of("application/openmetrics-text", accept), older = weight_of("text/plain", accept);
  if (!modern && !older) return chosen;
  return modern.value_or(0) >= older.value_or(0) ? MetricsFormat::openmetrics : MetricsFormat::prometheus;
}

const char* type_of(MetricsFormat format) {
  return format == MetricsFormat::prometheus ? "text/plain; version=0.0.4; charset=utf-8"
                                             : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

Status metrics(const MetricsArguments& arguments, IoLayer& io) {
  if (arguments.places.empty() != arguments.all)
    return Error(Errc::invalid, "metrics: name mounts, or --all, not both");
  StatusAsker asker(kPatience);
  const auto format = arguments.format == "prometheus" ? MetricsFormat::prometheus : MetricsFormat::openmetrics;
  if (!arguments.listen.empty()) {
    return serve_text(arguments.listen, [&](std::string_view accept) -> Page {
      const Found found = look(arguments, asker);
      tell(found, io.err);
      const MetricsFormat wanted = format_for(accept, format);
      return {type_of(wanted), metrics_text(found.statuses, found.outages, wanted)};
    });
  }
  const Found found = look(arguments, asker);
  io.out << metrics_text(found.statuses, found.outages, format) << std::flush;
  if (!arguments.all && !found.errors.empty()) return found.errors.front();
  tell(found, io.err);
  return {};
}

}  // namespace

void declare_metrics(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<MetricsArguments>();
  CLI::App* command = app.add_subcommand("metrics", "Counters and latencies as OpenMetrics text, for Prometheus");
  command->add_option("directory", arguments->places, "Where it is mounted");
  command->add_flag("--all", arguments->all, "All mounts of Varve that you may ask");
  command->add_option("--listen", arguments->listen,
                      "Serve them over HTTP at unix:PATH or 127.0.0.1:PORT, until interrupted");
  command->add_option("--format", arguments->format, "openmetrics, or prometheus: the older one, as the node exporter reads it")
      ->check(CLI::IsMember({"openmetrics", "prometheus"}))
      ->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return metrics(*arguments, io); }; });
}

}  // namespace varve::tool

#include "varve/observe/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/types.h"
#include "control/status_fields.h"
#include "varve/observe/latency_view.h"
#include "varve/observe/map/palette.h"
#include "varve/observe/report_chart.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace report_page {  // named: other files of the room have functions of these names

namespace {

using control::FieldPath;

// Colours by role, for both schemes; contrast of text on its ground at least 4.5.
constexpr const char* kStyle = R"(<style>
:root{color-scheme:light dark;--ground:#fbfbfa;--card:#fff;--text:#1d2226;--soft:#596570;--line:#d8dde1;--live:#2b6cb0;
--garbage:#c98a1b;
--reserve:#8795a1;--free:#e3e8ec;--good:#27714a;--note:#2b6cb0;--slow:#8a5a00;--unsafe:#b3390f;--broken:#b00020}
@media(prefers-color-scheme:dark){:root{--ground:#14181b;--card:#1d2327;--text:#e4e8eb;--soft:#9fabb5;--line:#343c42;--live:#6aa9e9;
--garbage:#e0a94a;--reserve:#7d8a95;--free:#2b3238;--good:#6fc797;--note:#6aa9e9;--slow:#e0a94a;--unsafe:#ff9a76;--broken:#ff8a8a}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:24px 16px 48px}h1{font-size:24px;margin:0}h2{font-size:17px;margin:0 0 10px}
.soft{color:var(--soft)}section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px;margin-top:16px}
.bar{display:flex;height:22px;border-radius:4px;overflow:hidden;background:var(--free)}.bar i{display:block}
.key{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 6px 0 14px}.key:first-child{margin-left:0}
table{border-collapse:collapse;width:100%}th,td{padding:4px 10px 4px 0;text-align:right;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500}
.facts th{width:1%;white-space:nowrap;text-align:left;vertical-align:top}.facts td{text-align:left;overflow-wrap:anywhere}
th:first-child,td:first-child,td.w,th.w{text-align:left}svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin:0}
dt{color:var(--soft);font-size:13px}
dd{margin:0;font-size:19px}.g{font-weight:600}.g.ok{color:var(--good)}.g.note{color:var(--note)}.g.slow{color:var(--slow)}
.g.unsafe{color:var(--unsafe)}.g.broken{color:var(--broken)}
.views>input{position:absolute;opacity:0}
.views>label{padding:3px 10px;border:1px solid var(--line);border-radius:5px;cursor:pointer;margin-right:6px}
.views>input:checked+label{background:var(--live);color:var(--card);border-color:var(--live)}
.views>input:focus-visible+label{outline:2px solid var(--text)}
.views .view{display:none;margin-top:12px}.views #v0:checked~.view0,.views #v1:checked~.view1,.views #v2:checked~.view2,
.views #v3:checked~.view3{display:block}
.entry{display:inline-block;max-width:100%;margin-right:12px;overflow-wrap:anywhere}
.chart{display:grid;grid-template-columns:auto 1fr;grid-template-rows:auto 150px auto;column-gap:8px;margin:0 0 20px}
.chart figcaption{grid-column:1/3;color:var(--soft);margin-bottom:14px}
.chart .y,.chart .x,.axis{color:var(--soft);font-size:12px;line-height:16px;display:flex;justify-content:space-between}
.chart .y{flex-direction:column;text-align:right;margin:-8px 0}.chart .x{grid-column:2;padding-top:4px}
.area{display:flex;align-items:flex-end;gap:1px;min-width:0;border-bottom:1px solid var(--soft);
background:linear-gradient(var(--line) 1px,transparent 1px) 0 0/100% 25%}
.area i{flex:1 1 0;min-width:0;background:var(--live)}
.area.garbage i{background:var(--garbage)}
.axis{width:210px}.axis span{width:38%}.axis span:last-child{width:auto}
@media(max-width:640px){main{padding:16px 8px 32px}section{padding:12px}
.stack tr{display:block;padding:8px 0;border-bottom:1px solid var(--line)}.stack tr:first-child{display:none}
.stack td{display:block;border:0;padding:1px 0;text-align:left;overflow-wrap:anywhere}
.stack td[data-l]:not(:empty)::before{content:attr(data-l) ": ";color:var(--soft)}}
</style>)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::uint64_t number(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }

std::string section(const std::string& title, const std::string& body) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, body);
}

// A line begins with its name; what is only continued begins with blanks.
std::string facts_table(const std::string& lines) {
  std::string rows;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const std::size_t end = line.find(' '), begin = line.find_first_not_of(' ', end);
    if (begin == std::string::npos) continue;
    rows += fmt::format("<tr><th>{}<td>{}\n", escaped(line.substr(0, end)), escaped(line.substr(begin)));
  }
  return "<table class=facts>" + rows + "</table>";
}

std::string head(const ReportFacts& facts) {
  const std::string label = facts.status.value("label", ""), device = facts.status.value("device", "");
  return fmt::format("<h1>{}</h1><p class=soft>Varve, {}</p>\n<section>{}</section>\n", escaped(label.empty() ? device : label), facts.made,
                     facts_table(status_summary(facts.status)));
}

std::string advice(const ReportFacts& facts) {
  auto findings = facts.findings;
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) { return a.grade > b.grade; });
  std::string rows;
  for (const Finding& f : findings) {
    const char* grade = name_of(f.grade);
    rows += fmt::format("<tr>\n<td><span class=\"g {0}\">{0}</span><td class=w>{1}<td class=w>{2}<td class=w data-l=Do>{3}",
                        grade, escaped(f.subject), escaped(f.text), escaped(f.advice));
  }
  return section("Health, and what to do",
                 "<div class=wide><table class=stack><tr><th>Grade<th class=w>What<th class=w>Is so<th class=w>Do" + rows +
                     "</table></div>");
}

struct Part {
  const char* name;
  std::uint64_t blocks;
  const char* colour;
};

std::string bar_of(const char* title, const std::vector<Part>& parts) {
  std::uint64_t all = 0;
  for (const Part& one : parts) all += one.blocks;
  std::string bar, keys;
  for (const auto& [name, blocks, colour] : parts) {
    bar += fmt::format("<i style=\"width:{:.2f}%;background:var(--{})\"></i>",
                       100 * static_cast<double>(blocks) / static_cast<double>(std::max<std::uint64_t>(all, 1)), colour);
    keys += fmt::format("<span class=entry><span class=key style=\"background:var(--{})\"></span>{} {}</span> ", colour,
                        size_text(blocks << kBlockShift), name);
  }
  return fmt::format("<p>{}: {}</p><div class=bar>{}</div><p class=soft>{}</p>", title, size_text(all << kBlockShift), bar, keys);
}

// Free is what users can still write; what of it is garbage now is another question.
std::string space(const Json& status) {
  const auto blocks = [&status](FieldPath path) { return control::number_of(status, path); };
  const std::uint64_t device = blocks("space.device_blocks"), live = blocks("space.live_blocks");
  const auto without = [device](std::uint64_t part) { return device - std::min(device, part); };
  const Json& space = control::section_of(status, "space");
  std::string bars;
  if (space.contains("available_blocks")) {
    const std::uint64_t used = blocks("space.charged_blocks"), available = blocks("space.available_blocks");
    bars += bar_of("For users", {{"used", used, "live"},
                                 {"free", available, "free"},
                                 {"kept for cleaning and checkpoints", without(used + available), "reserve"}});
  }
  if (space.contains("live_blocks")) {
    const std::uint64_t garbage = blocks("space.garbage_blocks");
    bars += bar_of("On the device", {{"live", live, "live"},
                                     {"garbage, which cleaning frees", garbage, "garbage"},
                                     {"empty", without(live + garbage), "free"}});
  }
  return section("Space", bars);
}

std::string numbers(const Json& status) {
  std::string list;
  const auto add = [&](const char* name, const std::string& value) {
    list += fmt::format("<div><dt>{}<dd>{}</div>", name, value);
  };
  if (control::section_of(status, "traffic").contains("write_cost")) {
    add("Written by users since the mount", size_text(control::bytes_of(status, "traffic.user_blocks_written")));
    add("To the device", size_text(control::bytes_of(status, "traffic.device_bytes_written")));
    add("Moved by cleaning", size_text(control::bytes_of(status, "traffic.cleaned_blocks_written")));
    add("Write cost", fmt::format("{:.3f}", control::factor_of(status, "traffic.write_cost")));
    add("Write cost, lifetime", fmt::format("{:.3f}", control::factor_of(status, "traffic.lifetime_write_cost")));
  }
  add("Written since it was made", size_text(control::bytes_of(status, "lifetime.device_bytes")));
  static constexpr FieldPath kCounts[] = {"lifetime.mounts", "lifetime.recoveries", "lifetime.checkpoints", "lifetime.errors"};
  for (const FieldPath& path : kCounts) add(path->label, fmt::format("{}", control::number_of(status, path)));
  return section("Write cost and lifetime", "<dl>" + list + "</dl>");
}

// The legend has the same.
std::string colour_of(const Look& look) {
  return look == Palette::empty() ? "var(--free)" : fmt::format("#{:02x}{:02x}{:02x}", look.red, look.green, look.blue);
}

// Cells of equal looks side by side are one rectangle: a page stays small.
std::string drawing(const DeviceMap& map, const Palette& palette, const std::map<Ino, std::string>& names) {
  constexpr std::size_t kColumns = 128;
  const std::size_t rows = (map.cells.size() + kColumns - 1) / kColumns;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" shape-rendering=crispEdges role=img aria-label=\"Map of segments\">",
                  kColumns, std::max<std::size_t>(rows, 1));
  for (std::size_t i = 0; i < map.cells.size();) {
    const Look look = palette.look_of(map.cells[i]);
    std::size_t end = i + 1;
    while (end < map.cells.size() && end % kColumns && palette.look_of(map.cells[end]) == look) ++end;
    svg += fmt::format("<rect x={} y={} width={} height=1 fill=\"{}\"/>", i % kColumns, i / kColumns, end - i, colour_of(look));
    i = end;
  }
  std::string keys;
  for (const LegendLine& line : palette.legend(names))
    keys += fmt::format("<span class=entry><span class=key style=\"background:{}\"></span>{}</span> ", colour_of(line.look),
                        escaped(line.text));
  return svg + "</svg><p class=soft>" + keys + "</p>";
}

std::string map_section(const ReportFacts& facts) {
  if (!facts.map) return section("Map of the device", "<p class=soft>" + escaped(facts.no_map) + "</p>");
  static constexpr std::pair<Aspect, const char*> kViews[] = {
      {Aspect::live, "Live share"}, {Aspect::age, "Age"}, {Aspect::group, "Group"}, {Aspect::owner, "Owner"}};
  std::string controls, views;
  for (std::size_t i = 0; i < std::size(kViews); ++i) {
    controls += fmt::format("<input type=radio name=view id=v{0}{1}><label for=v{0}>{2}</label>", i,
                            i ? "" : " checked", kViews[i].second);
    views += fmt::format("<div class=\"view view{}\">{}</div>", i,
                         drawing(*facts.map, Palette(*facts.map, kViews[i].first, kDistinctColours), facts.names));
  }
  return section(
      "Map of the device",
      fmt::format(
          "<div class=views>{}{}</div><p class=soft>From the beginning of the device, line by line; a cell is {}.</p>",
          controls, views, size_text(facts.map->blocks_per_cell << kBlockShift)));
}

std::string utilisation(const Json& space) {
  const auto counts = space.value("utilisation", std::vector<std::uint64_t>{});
  if (counts.empty()) return "";
  Chart chart{"Segments by the share of their blocks that is live", {}, {"0 %", "25 %", "50 %", "75 %", "100 %"}, "live"};
  for (std::size_t i = 0; i < counts.size(); ++i)
    chart.columns.push_back({fmt::format("{} to {} %", i * 100 / counts.size(), (i + 1) * 100 / counts.size()),
                             static_cast<double>(counts[i])});
  return section("Used segments by live share", chart_html(chart));
}

// Draws how much cleaning adds to what users write, in even steps of that. A round counts where it began.
std::string cost_over_time(const Json& rounds) {
  constexpr std::size_t kStepsOfTime = 40;
  const std::uint64_t first = number(rounds.front(), "log_clock"), last = number(rounds.back(), "log_clock");
  if (rounds.size() < 2 || last <= first) return "";
  const std::uint64_t step = std::max<std::uint64_t>((last - first + kStepsOfTime - 1) / kStepsOfTime, 1);
  std::vector<std::uint64_t> moved((last - first + step - 1) / step);
  for (const Json& round : rounds)
    if (const auto at = (number(round, "log_clock") - first) / step; at < moved.size()) moved[at] += number(round, "written_blocks");
  const auto place = [&](std::uint64_t clock) { return size_text(clock << kBlockShift); };
  Chart chart{"Write cost of cleaning: blocks written for each block of users, by what users had written",
              {},
              {place(first), place(last)},
              "garbage"};
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const std::uint64_t begin = first + i * step, end = std::min(begin + step, last);
    chart.columns.push_back({fmt::format("{} to {}", place(begin), place(end)),
                             std::round(1000 * (1 + static_cast<double>(moved[i]) / static_cast<double>(end - begin))) / 1000});
  }
  return chart_html(chart);
}

std::string cleaning(const Json& history) {
  constexpr std::size_t kMostRounds = 120;  // columns that can be told apart
  if (!history.is_array()) return "";
  if (history.empty()) return section("Cleaning", "<p class=soft>No round since the mount.</p>");
  const std::size_t begin = history.size() - std::min(history.size(), kMostRounds);
  const auto round_text = [&](std::size_t i) { return fmt::format("round {}", number(history[i], "round")); };
  const std::vector<std::string> ends{round_text(begin), round_text(history.size() - 1)};
  Chart moved{"MiB moved in each round", {}, ends, "garbage"}, clean{"Clean segments before it", {}, ends, "live"};
  for (std::size_t i = begin; i < history.size(); ++i) {
    moved.columns.push_back({round_text(i), static_cast<double>(number(history[i], "written_blocks") << kBlockShift) / (1 << 20)});
    clean.columns.push_back({round_text(i), static_cast<double>(number(history[i], "clean_segments"))});
  }
  return section("Cleaning", cost_over_time(history) + chart_html(moved) + chart_html(clean));
}

std::string latencies(const Json& status) {
  const auto found = latencies_between(nullptr, status);
  if (found.empty()) return "";
  std::string rows;
  for (const LatencyHistogram& h : found) {
    std::uint64_t most = 1;
    for (const auto& [end, count] : h.buckets) most = std::max(most, count);
    std::string shape = "<svg viewBox=\"0 0 105 24\" style=\"width:210px;height:24px\" preserveAspectRatio=none>";
    for (const auto& [end, count] : h.buckets) {
      const unsigned column = end == ~std::uint64_t{0}
                                  ? 104
                                  : static_cast<unsigned>(std::min(
                                        104.0, 4 * std::log2(static_cast<double>(std::max<std::uint64_t>(end, 1)))));
      const double height = 24 * std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(most));
      if (count)
        shape += fmt::format("<rect x={} y={:.1f} width=1 height={:.1f} fill=\"var(--live)\"/>", column, 24 - height,
                             height);
    }
    rows += fmt::format("<tr><td>{}<td data-l=Requests>{}<td data-l=Mean>{}<td data-l=Median>{}<td data-l=p99>{}<td class=w>{}</svg>\n",
                        escaped(h.operation), h.times,
                        microseconds_text(h.total_us / h.times), microseconds_text(h.quantile(0.5)),
                        microseconds_text(h.quantile(0.99)), shape);
  }
  constexpr const char* kHead =
      "<tr><th>Operation<th>Requests<th>Mean<th>Median<th>p99"
      "<th class=w><div class=axis><span>1 µs</span><span>1 ms</span><span>1 s</span></div>";
  constexpr const char* kNote = "To the right the time goes from 1 µs to a minute by its logarithm, upwards the requests by theirs.";
  return section("Latencies since the mount",
                 fmt::format("<div class=wide><table class=stack>{}\n{}</table></div><p class=soft>{}</p>", kHead, rows, kNote));
}

}  // namespace

std::string whole(const ReportFacts& facts) {
  return fmt::format(
             "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
             "content=\"width=device-width\"><title>Varve: {}</title>\n{}\n<main>\n",
             escaped(facts.status.value("device", "")), kStyle) +
         head(facts) + advice(facts) + space(facts.status) + map_section(facts) +
         utilisation(control::section_of(facts.status, "space")) + numbers(facts.status) + cleaning(facts.history) +
         latencies(facts.status) + "</main></html>\n";
}

}  // namespace report_page

std::string report_html(const ReportFacts& facts) { return report_page::whole(facts); }

}  // namespace varve::tool

#include "varve/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "varve/latency_view.h"
#include "varve/map/palette.h"
#include "varve/status_text.h"

namespace varve::tool {

namespace report_page {  // named: other files of the room have functions of these names

namespace {

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
th{color:var(--soft);font-weight:500}th:first-child,td:first-child,td.w,th.w{text-align:left}svg{display:block;width:100%;height:auto}
.wide{overflow-x:auto}dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;margin:0}
dt{color:var(--soft);font-size:13px}
dd{margin:0;font-size:19px}.g{font-weight:600}.g.ok{color:var(--good)}.g.note{color:var(--note)}.g.slow{color:var(--slow)}
.g.unsafe{color:var(--unsafe)}.g.broken{color:var(--broken)}
.views>input{position:absolute;opacity:0}
.views>label{padding:3px 10px;border:1px solid var(--line);border-radius:5px;cursor:pointer;margin-right:6px}
.views>input:checked+label{background:var(--live);color:var(--card);border-color:var(--live)}
.views>input:focus-visible+label{outline:2px solid var(--text)}
.views .view{display:none;margin-top:12px}.views #v0:checked~.view0,.views #v1:checked~.view1,.views #v2:checked~.view2{display:block}
</style>)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

Json part(const Json& json, const char* key) {
  return json.is_object() ? json.value(key, Json::object()) : Json::object();
}
std::uint64_t number(const Json& json, const char* key) { return json.value(key, std::uint64_t{0}); }
std::string blocks_text(const Json& json, const char* key) { return size_text(number(json, key) << kBlockShift); }

std::string section(const std::string& title, const std::string& body) {
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, body);
}

std::string head(const ReportFacts& facts) {
  const std::string label = facts.status.value("label", ""), device = facts.status.value("device", "");
  std::string summary = escaped(status_summary(facts.status));
  for (std::size_t at = 0; (at = summary.find('\n', at)) != std::string::npos; at += 4) summary.replace(at, 1, "<br>");
  return fmt::format("<h1>{}</h1><p class=soft>Varve, {}</p>\n<section>{}</section>\n",
                     escaped(label.empty() ? device : label), facts.made, summary);
}

std::string advice(const ReportFacts& facts) {
  static constexpr const char* kGrades[] = {"ok", "note", "slow", "unsafe", "broken"};
  auto findings = facts.findings;
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) { return a.grade > b.grade; });
  std::string rows;
  for (const Finding& f : findings) {
    const char* grade = kGrades[static_cast<unsigned>(f.grade)];
    rows += fmt::format("<tr><td><span class=\"g {0}\">{0}</span><td class=w>{1}<td class=w>{2}<td class=w>{3}\n",
                        grade, escaped(f.subject), escaped(f.text), escaped(f.advice));
  }
  return section("Health, and what to do",
                 "<div class=wide><table><tr><th>Grade<th class=w>What<th class=w>Is so<th class=w>Do\n" + rows +
                     "</table></div>");
}

std::string space(const Json& space) {
  const double device = std::max(1.0, static_cast<double>(number(space, "device_blocks")));
  std::string bar, keys;
  for (const auto& [key, name, colour] : {std::tuple{"live_blocks", "live", "live"},
                                          {"garbage_blocks", "garbage", "garbage"},
                                          {"reserve_blocks", "reserve", "reserve"}}) {
    if (!space.contains(key)) continue;
    bar += fmt::format("<i style=\"width:{:.2f}%;background:var(--{})\"></i>",
                       100 * static_cast<double>(number(space, key)) / device, colour);
    keys += fmt::format("<span class=key style=\"background:var(--{})\"></span>{} {}", colour, name,
                        blocks_text(space, key));
  }
  return section(
      "Space",
      fmt::format(
          "<div class=bar>{}</div><p class=soft>{}<span class=key style=\"background:var(--free)\"></span>of {}</p>",
          bar, keys, blocks_text(space, "device_blocks")));
}

std::string numbers(const Json& status) {
  const Json traffic = part(status, "traffic"), lifetime = part(status, "lifetime");
  std::string list;
  const auto add = [&](const char* name, const std::string& value) {
    list += fmt::format("<div><dt>{}<dd>{}</div>", name, value);
  };
  if (traffic.contains("write_cost")) {
    add("Written by users since the mount", blocks_text(traffic, "user_blocks_written"));
    add("To the device", size_text(number(traffic, "device_bytes_written")));
    add("Moved by cleaning", blocks_text(traffic, "cleaned_blocks_written"));
    add("Write cost", fmt::format("{:.3f}", traffic.value("write_cost", 0.0)));
    add("Write cost, lifetime", fmt::format("{:.3f}", traffic.value("lifetime_write_cost", 0.0)));
  }
  add("Written since it was made", size_text(number(lifetime, "device_bytes")));
  for (const auto& [key, name] : {std::pair{"mounts", "Mounts"},
                                  {"recoveries", "Recoveries"},
                                  {"checkpoints", "Checkpoints"},
                                  {"errors", "Errors"}})
    add(name, fmt::format("{}", number(lifetime, key)));
  return section("Write cost and lifetime", "<dl>" + list + "</dl>");
}

// Cells of equal looks side by side are one rectangle: a page stays small.
std::string drawing(const DeviceMap& map, const Palette& palette) {
  constexpr std::size_t kColumns = 128;
  const std::size_t rows = (map.cells.size() + kColumns - 1) / kColumns;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" shape-rendering=crispEdges role=img aria-label=\"Map of segments\">",
                  kColumns, std::max<std::size_t>(rows, 1));
  for (std::size_t i = 0; i < map.cells.size();) {
    const Look look = palette.look_of(map.cells[i]);
    std::size_t end = i + 1;
    while (end < map.cells.size() && end % kColumns && palette.look_of(map.cells[end]) == look) ++end;
    if (map.cells[i].live)
      svg += fmt::format("<rect x={} y={} width={} height=1 fill=\"#{:02x}{:02x}{:02x}\"/>", i % kColumns, i / kColumns,
                         end - i, look.red, look.green, look.blue);
    else
      svg +=
          fmt::format("<rect x={} y={} width={} height=1 fill=\"var(--free)\"/>", i % kColumns, i / kColumns, end - i);
    i = end;
  }
  std::string keys;
  for (const LegendLine& line : palette.legend({}))
    keys += fmt::format(
        "<span style=\"white-space:nowrap\"><span class=key style=\"background:#{:02x}{:02x}{:02x}\"></span>{}</span> ",
        line.look.red, line.look.green, line.look.blue, escaped(line.text));
  return svg + "</svg><p class=soft>" + keys + "</p>";
}

std::string map_section(const ReportFacts& facts) {
  if (!facts.map) return section("Map of the device", "<p class=soft>" + escaped(facts.no_map) + "</p>");
  static constexpr std::pair<Aspect, const char*> kViews[] = {
      {Aspect::live, "Live share"}, {Aspect::age, "Age"}, {Aspect::group, "Group"}};
  std::string controls, views;
  for (std::size_t i = 0; i < std::size(kViews); ++i) {
    controls += fmt::format("<input type=radio name=view id=v{0}{1}><label for=v{0}>{2}</label>", i,
                            i ? "" : " checked", kViews[i].second);
    views += fmt::format("<div class=\"view view{}\">{}</div>", i,
                         drawing(*facts.map, Palette(*facts.map, kViews[i].first)));
  }
  return section(
      "Map of the device",
      fmt::format(
          "<div class=views>{}{}</div><p class=soft>From the beginning of the device, line by line; a cell is {}.</p>",
          controls, views, size_text(facts.map->blocks_per_cell << kBlockShift)));
}

std::string columns_svg(const std::vector<std::pair<std::string, double>>& values, const std::string& colour) {
  double most = 0;
  for (const auto& [name, value] : values) most = std::max(most, value);
  const double width = 960.0 / static_cast<double>(std::max<std::size_t>(values.size(), 1));
  std::string svg = "<svg viewBox=\"0 0 960 180\" role=img>";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double height = most > 0 ? 150 * values[i].second / most : 0, x = static_cast<double>(i) * width;
    svg += fmt::format(
        "<rect x={:.1f} y={:.1f} width={:.1f} height={:.1f} fill=\"var(--{})\"><title>{}: {}</title></rect>", x,
        155 - height, std::max(1.0, width * 0.86), height, colour, escaped(values[i].first), values[i].second);
    if (values.size() <= 24)
      svg += fmt::format("<text x={:.1f} y=173 font-size=12 fill=\"var(--soft)\" text-anchor=middle>{}</text>",
                         x + width * 0.43, escaped(values[i].first));
  }
  return svg + "</svg>";
}

std::string utilisation(const Json& space) {
  const auto counts = space.value("utilisation", std::vector<std::uint64_t>{});
  if (counts.empty()) return "";
  std::vector<std::pair<std::string, double>> values;
  for (std::size_t i = 0; i < counts.size(); ++i)
    values.emplace_back(fmt::format("{} %", (i + 1) * 100 / counts.size()), counts[i]);
  return section("Used segments by live share", columns_svg(values, "live"));
}

std::string cleaning(const Json& history) {
  if (!history.is_array()) return "";
  if (history.empty()) return section("Cleaning", "<p class=soft>No round since the mount.</p>");
  std::vector<std::pair<std::string, double>> moved, clean;
  for (const Json& round : history) {
    const std::string name = fmt::format("round {}", number(round, "round"));
    moved.emplace_back(name, number(round, "written_blocks"));
    clean.emplace_back(name, number(round, "clean_segments"));
  }
  return section("Cleaning", fmt::format("<p class=soft>Blocks moved in each of the latest {} rounds</p>{}<p "
                                         "class=soft>Clean segments before it</p>{}",
                                         moved.size(), columns_svg(moved, "garbage"), columns_svg(clean, "live")));
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
    rows += fmt::format("<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td class=w>{}</svg>\n", escaped(h.operation), h.times,
                        microseconds_text(h.total_us / h.times), microseconds_text(h.quantile(0.5)),
                        microseconds_text(h.quantile(0.99)), shape);
  }
  return section("Latencies since the mount",
                 "<div class=wide><table><tr><th>Operation<th>Requests<th>Mean<th>Half in<th>99 % in<th class=w>1 µs … "
                 "1 min, logarithmic\n" +
                     rows + "</table></div>");
}

}  // namespace

std::string whole(const ReportFacts& facts) {
  return fmt::format(
             "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
             "content=\"width=device-width\"><title>Varve: {}</title>\n{}\n<main>\n",
             escaped(facts.status.value("device", "")), kStyle) +
         head(facts) + advice(facts) + space(part(facts.status, "space")) + map_section(facts) +
         utilisation(part(facts.status, "space")) + numbers(facts.status) + cleaning(facts.history) +
         latencies(facts.status) + "</main></html>\n";
}

}  // namespace report_page

std::string report_html(const ReportFacts& facts) { return report_page::whole(facts); }

}  // namespace varve::tool

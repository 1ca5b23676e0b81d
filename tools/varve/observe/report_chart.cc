#include "varve/observe/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace varve::tool {

namespace {

constexpr int kAxisSteps = 4;

std::string scale_html(double step) {
  std::string marks;
  for (int i = kAxisSteps; i >= 0; --i) marks += fmt::format("<span>{:g}</span>", step * i);
  return "<div class=y>" + marks + "</div>";
}

}  // namespace

double axis_step(double most) {
  const double least = most > 0 ? most / kAxisSteps : 0.25;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string chart_html(const Chart& chart) {
  double most = 0;
  for (const ChartColumn& column : chart.columns) most = std::max(most, column.value);
  const double step = axis_step(most), end = step * kAxisSteps;
  std::string columns, ends;
  for (const ChartColumn& column : chart.columns)
    columns += fmt::format("<i style=\"height:{:.2f}%\" title=\"{}: {:g}\"></i>", 100 * column.value / end, column.name, column.value);
  for (const std::string& text : chart.ends) ends += "<span>" + text + "</span>";
  return fmt::format("<figure class=chart><figcaption>{}</figcaption>{}<div class=\"area {}\">{}</div><div class=x>{}</div></figure>\n",
                     chart.title, scale_html(step), chart.colour, columns, ends);
}

}  // namespace varve::tool

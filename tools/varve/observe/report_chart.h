// A chart of columns for the report: HTML and CSS alone, so that its letters keep their size whatever the width of the window.
#pragma once

#include <string>
#include <vector>

namespace varve::tool {

struct ChartColumn {
  std::string name;  // shown with the value when somebody points at it
  double value = 0;
};

struct Chart {
  std::string title;                 // with the unit of the values
  std::vector<ChartColumn> columns;
  std::vector<std::string> ends;     // below the axis, evenly from its left to its right end
  std::string colour;                // a name of the style sheet
};

// The axis begins at 0, and ends at a round number that no value exceeds. Texts are HTML already.
std::string chart_html(const Chart& chart);
// The steps of that axis: a fourth of its end; 1, 2, 2.5 or 5 times a power of ten.
double axis_step(double most);

}  // namespace varve::tool

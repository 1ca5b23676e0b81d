// Charts of the report: axes end at round numbers, and no column leaves them.
#include "varve/observe/report_chart.h"

#include <gtest/gtest.h>

namespace varve::tool {
namespace {

TEST(ReportChart, AxesHaveRoundSteps) {
  constexpr std::pair<double, double> kSteps[] = {{4, 1}, {4.1, 2}, {8.5, 2.5}, {1000, 250}, {1001, 500}, {0.003, 0.001}, {90, 25}};
  for (const auto& [most, step] : kSteps) {
    EXPECT_DOUBLE_EQ(axis_step(most), step) << most;
    EXPECT_GE(4 * axis_step(most), most);
  }
  EXPECT_GT(axis_step(0), 0) << "nothing but zeros";
}

TEST(ReportChart, TellsUnitValuesAndBothEnds) {
  const std::string html = chart_html({"MiB moved", {{"round 1", 10}, {"round 2", 40}}, {"round 1", "round 2"}, "live"});
  for (const char* part : {"MiB moved", "<span>40</span><span>30</span><span>20</span><span>10</span><span>0</span>", "height:25.00%",
                           "height:100.00%", "title=\"round 2: 40\"", "<span>round 1</span><span>round 2</span>"})
    EXPECT_NE(html.find(part), std::string::npos) << part << " in " << html;
}

}  // namespace
}  // namespace varve::tool

// The table of a status' fields: what is made from it is whole, and docs/status.md says the same.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "control/status_fields.h"
#include "control/status_json.h"
#include "support/places.h"
#include "support/settings.h"
#include "varve/observe/metrics_text.h"
#include "varve/observe/status_text.h"

namespace varve::control {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// By Unit.
constexpr const char* kUnitNames[] = {"text",    "yes or no",          "number", "bytes", "blocks", "blocks",
                                      "seconds", "seconds since 1970", "ratio",  "waits", "error",  "list"};

std::string in_document(const Field& field) {
  const std::string key = std::string(field.section) + (field.section.empty() ? "" : ".") + std::string(field.key);
  const bool is_counter = field.metric.kind == Metric::Kind::counter;
  const std::string metric = *field.metric.name ? "`" + std::string(field.metric.name) + (is_counter ? "_total`" : "`") : "";
  return "| `" + key + "` | " + kUnitNames[static_cast<std::size_t>(field.unit)] + " | " + field.meaning + " | " + metric + " |\n";
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// With VARVE_WRITE_DOCUMENTS=1 the test writes the table into the document instead.
TEST(StatusFields, TheDocumentHasThemAll) {
  const std::string path = test::source_folder() + "/docs/status.md", head = "| Field | Unit | Meaning | Metric |\n|---|---|---|---|\n";
  std::string table;
  for (const Field& field : kFields) table += in_document(field);
  const std::string text = text_of(path);
  const auto begin = text.find(head);
  ASSERT_NE(begin, text.npos);
  const auto end = std::min(text.find("\n\n", begin), text.size() - 1) + 1;
  if (!test::setting("VARVE_WRITE_DOCUMENTS").empty())
    std::ofstream(path) << text.substr(0, begin) << head << table << text.substr(end);
  else
    EXPECT_EQ(text.substr(begin, end - begin), head + table) << "run this test with VARVE_WRITE_DOCUMENTS=1";
}

TEST(StatusFields, EachIsNamedOnceAndExplained) {
  std::set<std::string> paths, metrics;
  for (const Field& field : kFields) {
    const std::string path = std::string(field.section) + "." + std::string(field.key);
    EXPECT_TRUE(paths.insert(path).second) << path;
    EXPECT_TRUE(!*field.metric.name || metrics.insert(field.metric.name).second) << path;
    EXPECT_TRUE(std::string_view(field.meaning).ends_with('.')) << path;
    EXPECT_FALSE(std::string_view(field.metric.name).ends_with("_total")) << path;
  }
}

// The status of a mount as its daemon begins it.
TEST(StatusFields, JsonHasWhatAFilesystemKnows) {
  const Json status = to_json(fs::FilesystemStatus{});
  for (const Field& field : kFields) {
    if (field.section == "mount" || field.section == "lease" || field.section == "connection" || field.section == "host") continue;
    EXPECT_EQ(section_of(status, field.section).contains(std::string(field.key)), field.key != "state" || !field.section.empty())
        << field.section << "." << field.key;
  }
}

TEST(StatusFields, ACounterComesToTextAndMetricsByTheTableAlone) {
  fs::FilesystemStatus counted;
  counted.device_blocks = 1000;
  counted.live_blocks = 250;
  counted.user_blocks_written = 3;
  counted.flushes = 17;
  counted.read_only = true;
  const Json status = to_json(counted);
  const std::string text = tool::status_text(status), metrics = tool::metrics_text({status}, {});
  EXPECT_THAT(text, HasSubstr("\nWritten since mount\n  By users                  12.0 KiB\n"));
  EXPECT_THAT(text, HasSubstr("\n  Live                      1000.0 KiB (25.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("\n  Flushes                   17\n"));
  EXPECT_THAT(text, HasSubstr("\n  Read-only                 yes\n"));
  EXPECT_THAT(text, Not(HasSubstr("Label")));
  EXPECT_THAT(metrics, HasSubstr("# TYPE varve_user_written_bytes counter\n# UNIT varve_user_written_bytes bytes\n"
                                 "# HELP varve_user_written_bytes Written by users.\n"
                                 "varve_user_written_bytes_total{mount=\"\",device=\"\"} 12288\n"));
  EXPECT_THAT(metrics, HasSubstr("varve_flushes_total{mount=\"\",device=\"\"} 17\n"));
  EXPECT_THAT(metrics, HasSubstr("varve_read_only{mount=\"\",device=\"\"} 1\n"));
}

// Alerts and the dashboard ask for metrics by name: one that is not exported any more would never fire.
TEST(StatusFields, PackagesAskForMetricsThatThereAre) {
  const std::string metrics = "\n" + tool::metrics_text({to_json(fs::FilesystemStatus{})}, {}) + "\n# TYPE varve_request_seconds histogram";
  std::size_t seen = 0;
  for (const char* path : {"/packaging/prometheus/varve.rules.yml", "/packaging/grafana/varve.json"}) {
    const std::string text = text_of(test::source_folder() + path);
    const std::regex name("\\bvarve_[a-z_]+");
    for (auto found = std::sregex_iterator(text.begin(), text.end(), name); found != std::sregex_iterator(); ++found, ++seen) {
      const std::string family = std::regex_replace(found->str(), std::regex("_(total|info|bucket|count|sum)$"), "");
      EXPECT_THAT(metrics, HasSubstr("\n# TYPE " + family + " ")) << path;
    }
  }
  EXPECT_GT(seen, 20U);
}

// In text some stand further up than in JSON.
TEST(StatusFields, TextKeepsItsOrder) {
  const std::string text = tool::status_text(to_json(fs::FilesystemStatus{}));
  for (const auto& [first, second] : {std::pair{"  Garbage ", "    freed by a checkpoint "}, {"    freed by a checkpoint ", "  Reserve "},
                                      {"  Limit ", "  Tree nodes "}, {"  Tree nodes ", "    hits "}}) {
    ASSERT_THAT(text, HasSubstr(first));
    EXPECT_LT(text.find(first), text.find(second)) << first << second;
  }
}

// Another version's daemon may know less, or more.
TEST(StatusFields, WhatIsNotThereIsNothing) {
  const Json status{{"space", 7}, {"log", {{"serial", "x"}, {"flushes", 3}}}};
  EXPECT_EQ(number_of(status, "space.device_blocks"), 0U);
  EXPECT_EQ(number_of(status, "space.segments.clean"), 0U);
  EXPECT_EQ(number_of(status, "log.serial"), 0U);
  EXPECT_EQ(number_of(status, "log.flushes"), 3U);
  EXPECT_EQ(words_of(Json(), "label"), "");
  EXPECT_FALSE(flag_of(status, "read_only"));
}

}  // namespace
}  // namespace varve::control

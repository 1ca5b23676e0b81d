// Short words for the tests of the checker.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/check.h"
#include "image_builder.h"

namespace varve::check::test {

inline Report run(io::BlockDevice& device, const CheckOptions& options = {}) {
  auto report = check(device, options);
  EXPECT_TRUE(report.ok()) << report.error().message();
  return report.ok() ? std::move(report).value() : Report{};
}

inline std::string lines(const Report& report) {
  std::string text;
  for (const Problem& problem : report.problems.kept()) text += to_line(problem) + "\n";
  return text;
}

inline void expect_clean(io::BlockDevice& device) {
  const Report report = run(device, {.verify_data = true});
  EXPECT_EQ(lines(report), "");
}

// The codes of all problems, once each.
inline std::set<Code> codes(io::BlockDevice& device, const CheckOptions& options = {}) {
  std::set<Code> found;
  const Report report = run(device, options);
  for (const auto& [code, count] : report.problems.counts()) found.insert(code);
  return found;
}

inline std::set<Code> codes(ImageBuilder& builder, const CheckOptions& options = {}) {
  const auto device = builder.build();
  return codes(*device, options);
}

// A bit of everything: three levels of directories, a big directory, links, symlinks, xattrs, orphans, holes.
inline void fill(ImageBuilder& builder) {
  const Ino home = builder.add_directory(kRootIno, "home");
  const Ino deep = builder.add_directory(builder.add_directory(home, "a"), "b");
  const Ino file = builder.add_file(deep, "file", 100);
  builder.add_link(home, "hard link", file);
  builder.add_symlink(kRootIno, "short", "home/a");
  builder.add_symlink(home, "long", std::string(3000, 't'));
  builder.set_xattrs(file, {{"user.big", format::Bytes(5000, std::byte{1})}, {"user.small", {}}});
  builder.add_unwritten(file, 200, 50);
  builder.add_orphan();
  const Ino many = builder.add_directory(home, "many");
  for (int i = 0; i < 600; ++i) builder.add_file(many, fmt::format("file {}", i), i % 3, 1);
}

}  // namespace varve::check::test

#include "image/name_cipher.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "base/utf8.h"

namespace varve::image {
namespace {

const NameCipher kCipher({17, 4711});

std::string changed(std::string name, const NameCipher& cipher = kCipher) {
  cipher.change(std::as_writable_bytes(std::span(name)));
  return name;
}

std::string changed_path(std::string path) {
  kCipher.change_path(std::as_writable_bytes(std::span(path)));
  return path;
}

TEST(NameCipher, makes_other_names_of_the_same_length) {
  const std::string name = "quarterly report (final).tar.gz", other = changed(name);
  EXPECT_EQ(other.size(), name.size());
  EXPECT_EQ(other.find("report"), std::string::npos);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool changes = std::isalnum(static_cast<unsigned char>(name[i])) != 0;
    EXPECT_TRUE(changes || other[i] == name[i]) << "dots and the like stay: " << i;
  }
  EXPECT_EQ(changed(name), other);
  EXPECT_NE(changed(name, NameCipher({18, 4711})), other) << "another filesystem has other names";
  EXPECT_EQ(changed("."), ".");
  EXPECT_EQ(changed(".."), "..");
}

TEST(NameCipher, makes_no_two_names_one) {
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-\xC3\xE4\xA4\xBD\xFF";
  std::set<std::string> names;
  std::size_t count = 0;
  for (const char first : letters)
    for (const char second : letters)
      for (const char third : {'a', '7', '\xA4', '.'}) {
        names.insert(changed({first, second, third}));
        ++count;
      }
  EXPECT_EQ(names.size(), count);
}

TEST(NameCipher, lets_names_that_begin_or_end_alike_differ_everywhere) {
  const std::string one = changed("documents-2026a"), other = changed("documents-2026b"), begun = changed("aocuments-2026a");
  EXPECT_NE(one.substr(0, 4), other.substr(0, 4));
  EXPECT_NE(one.substr(11), begun.substr(11));
}

TEST(NameCipher, keeps_utf8) {
  for (const std::string name : {"Müßiggang", "日本語のファイル", "наука", "🙂🙃", "naïve café"}) {
    EXPECT_TRUE(is_printable(changed(name))) << name;
    EXPECT_NE(changed(name), name);
    EXPECT_TRUE(is_printable(kCipher.ascii_only(name))) << name;
  }
}

TEST(NameCipher, leads_paths_where_the_names_are) {
  EXPECT_EQ(changed_path("../notes/today.txt"), "../" + changed("notes") + "/" + changed("today.txt"));
  EXPECT_EQ(changed_path("/a//b/"), "/" + changed("a") + "//" + changed("b") + "/");
}

}  // namespace
}  // namespace varve::image

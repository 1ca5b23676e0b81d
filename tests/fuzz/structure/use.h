// Everything that a user may do to what is on an image.
#pragma once

#include <set>
#include <string>

#include "support/fs_fixture.h"

namespace varve::fuzz {

class Use {
 public:
  // `strict`: what fails is kept in broken(), unless it is what the operation may say of a whole filesystem. `damage`: but reading may
  // fail, since fsck says so.
  Use(test::FsFixture& fixture, bool strict, bool damage) : fixture_(fixture), strict_(strict), damage_(damage) {}

  void all(bool snapshots);
  void of_one_state();  // of the newest, or of the one that the fixture shows: no changes
  const std::string& broken() const { return broken_; }  // the first; empty: nothing

 private:
  void walk(Ino directory, unsigned depth);
  void look(Ino directory, const test::ListedEntry& entry, unsigned depth);
  void read(const fs::Attr& attr);
  void read_attributes(Ino ino);
  void change(Ino directory, const std::string& name, const fs::Attr& attr);
  void change_file(const fs::Attr& attr, unsigned turn);
  void make_names();
  void use_snapshots();
  void scrub();
  template <class T>
  void want(const char* what, Ino ino, const Result<T>& result, std::initializer_list<Errc> allowed = {});
  template <class T>
  void want_change(const char* what, Ino ino, const Result<T>& result);

  test::FsFixture& fixture_;
  const bool strict_, damage_;
  bool changes_ = true;
  std::set<Ino> seen_;
  std::string broken_;
};

}  // namespace varve::fuzz

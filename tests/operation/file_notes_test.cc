// Operations note something of files, and a part of it is left when there are many.
#include "operation/file_notes.h"

#include <gtest/gtest.h>

namespace varve::operation {
namespace {

TEST(FileNotes, pieces_add_up_and_are_taken_once) {
  FileNotes notes(true);
  EXPECT_FALSE(notes.any());
  notes.note_pieces(Ino{7}, 3);
  notes.note_overwrite(Ino{7}, 100);
  EXPECT_TRUE(notes.any());
  EXPECT_EQ(notes.take(), (FileNotes::Files{{7, 4}}));
  EXPECT_FALSE(notes.any());
  EXPECT_TRUE(notes.take().empty());
}

TEST(FileNotes, what_was_taken_can_be_put_back) {
  FileNotes notes(true);
  notes.note_pieces(Ino{7}, 3);
  const FileNotes::Files files = notes.take();
  notes.note_pieces(Ino{7}, 2);
  notes.put_back(files);
  EXPECT_EQ(notes.take(), (FileNotes::Files{{7, 5}}));
}

TEST(FileNotes, of_too_many_the_one_with_least_to_gain_goes) {
  FileNotes notes(true);
  for (std::uint64_t i = 0; i <= FileNotes::kMostFiles; ++i) notes.note_pieces(Ino{100 + i}, i == 5 ? 1 : 2);
  const FileNotes::Files files = notes.take();
  EXPECT_EQ(files.size(), FileNotes::kMostFiles);
  EXPECT_FALSE(files.contains(105));
}

TEST(FileNotes, pieces_cost_what_seeks_do) {
  FileNotes notes(true);
  notes.note_overwrite(Ino{7}, 100);
  notes.note_pieces(Ino{7}, 4);
  notes.put_back(notes.take());
  EXPECT_EQ(notes.cost(0), 100U);
  EXPECT_EQ(notes.cost(50), 200U);
}

TEST(FileNotes, uses_count_only_where_somebody_looks) {
  FileNotes on(true), off(false);
  on.note_use();
  off.note_use();
  EXPECT_EQ(on.uses(), 1U);
  EXPECT_EQ(off.uses(), 0U);
}

}  // namespace
}  // namespace varve::operation

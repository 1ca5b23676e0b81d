#include "operation/file_notes.h"

#include <algorithm>

namespace varve::operation {

// When there are too many, the one with least to gain goes.
void FileNotes::note(std::uint64_t file, std::uint64_t pieces) {
  files_[file] += pieces;
  has_files_.store(true, std::memory_order_relaxed);
  if (files_.size() <= kMostFiles) return;
  files_.erase(std::ranges::min_element(files_, {}, [](const auto& one) { return std::pair(one.second, one.first); }));
}

void FileNotes::note_overwrite(Ino file, std::uint64_t blocks) {
  const Lock lock(mutex_);
  written_over_ += blocks;
  note(file.v, 1);
}

void FileNotes::note_pieces(Ino file, std::uint64_t pieces) {
  const Lock lock(mutex_);
  read_in_pieces_ += pieces;
  note(file.v, pieces);
}

FileNotes::Files FileNotes::take() {
  const Lock lock(mutex_);
  has_files_.store(false, std::memory_order_relaxed);
  return std::exchange(files_, {});
}

void FileNotes::put_back(const Files& files) {
  const Lock lock(mutex_);
  for (const auto& [file, pieces] : files) note(file, pieces);
}

// A block that is moved is read and written.
std::uint64_t FileNotes::cost(std::uint64_t seek_blocks) const {
  const Lock lock(mutex_);
  return written_over_ + read_in_pieces_ * seek_blocks / 2;
}

}  // namespace varve::operation

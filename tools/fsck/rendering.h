// The findings of a check and what was done about them as text and as JSON, from one model.
#pragma once

#include <map>
#include <string>

#include "repair/repair.h"

namespace varve::fsck {

struct Findings {
  std::string device;
  bool data_verified = false;
  bool preening = false;
  bool in_place = false;  // else the actions are what a repair would do
  bool ended_errors = false;  // former ones are over: all has been read
  const repair::Outcome& outcome;
  const std::map<Ino, std::string>& names;  // of the inodes in it, as far as they are known
};

std::string to_text(const Findings& findings);
std::string to_json(const Findings& findings);

}  // namespace varve::fsck

// What `varve doctor` looks at. Each check reads what the system says; none changes or tries anything on the device.
#pragma once

#include <string>
#include <vector>

#include "base/json_text.h"
#include "control/place.h"

namespace varve::tool {

struct Finding {
  enum class Grade : std::uint8_t { good, note, slow, unsafe, broken } grade = Grade::good;
  std::string subject;  // "fuse.conf"
  std::string text;     // what is so
  std::string advice;   // what to do; empty: nothing
};

const char* name_of(Finding::Grade grade);
Json to_json(const Finding& finding);

std::vector<Finding> check_system();
// Of the image or device and, where it is mounted, of the mount.
std::vector<Finding> check_storage(const control::Place& place);
std::vector<Finding> check_mount(const control::Place& place);

}  // namespace varve::tool

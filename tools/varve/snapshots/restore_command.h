// `restore`, which is a command of `varve` and of `varve snapshot`.
#pragma once

#include <string>

#include "base/json_text.h"
#include "varve/command.h"

namespace varve::tool {

struct RestoreArguments {
  std::string path;
  std::string name;           // of the snapshot, or a time
  bool removes = false;       // what is new since
  bool only_says = false;     // changes nothing
  bool json = false;          // what is printed, for programs
  Json* answer = nullptr;     // with `json`: takes it, and nothing is printed
  bool only_missing = false;  // what is there now is not touched: Errc::exists
};
Status restore(RestoreArguments arguments, IoLayer& io);

void add_restore(CLI::App& parent, Action& chosen);

}  // namespace varve::tool

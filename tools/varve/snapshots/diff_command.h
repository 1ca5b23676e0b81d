// `diff`, which is a command of `varve` and of `varve snapshot`.
#pragma once

#include "varve/command.h"

namespace varve::tool {

void add_diff(CLI::App& parent, Action& chosen);

}  // namespace varve::tool

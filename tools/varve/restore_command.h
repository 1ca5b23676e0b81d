// `restore`, which is a command of `varve` and of `varve snapshot`.
#pragma once

#include "varve/command.h"

namespace varve::tool {

void add_restore(CLI::App& parent, Action& chosen);

}  // namespace varve::tool

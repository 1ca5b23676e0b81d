// `varve list` and `varve status --all`: which filesystems are mounted on this machine, and by which processes.
#pragma once

#include "varve/command.h"

namespace varve::tool {

void declare_list(CLI::App& app, Action& chosen);

Status list_mounts(bool json, IoLayer& io);

}  // namespace varve::tool

// Whether the log goes on after the checkpoint. Replaying it is the engine's business.
#pragma once

#include "check/context.h"

namespace varve::check {

void probe_log(Context& context);

}  // namespace varve::check

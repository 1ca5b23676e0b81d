// A report names the kind of machine and device: others need that to understand the figures, and nothing tells whose they are.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

// Model, processor, processors, memory, kernel.
Json machine_facts();

// Kind, vendor, model, size, whether it turns. No serial numbers. Of a file: that it is one, and of what filesystem.
Json device_facts(const std::string& device);

}  // namespace varve::tool

// Whether the machine runs on its battery: then cleaning does only what is needed.
#pragma once

#include <string>

namespace varve::cleaner {

enum class Power { mains, battery };

// As the kernel's power_supply class tells: battery, if some battery discharges and no mains or USB supply is on line.
// Machines without batteries, and those that say nothing, run on mains. `folder` is another one in tests.
Power read_power(const std::string& folder = "/sys/class/power_supply");

}  // namespace varve::cleaner

// What the base images hold: a little of everything that the format knows.
#pragma once

#include <memory>

#include "io/mem_device.h"

namespace varve::fuzz {

std::unique_ptr<io::MemDevice> make_base(unsigned kind);

}  // namespace varve::fuzz

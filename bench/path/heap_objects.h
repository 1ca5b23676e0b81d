#pragma once

#include <cstdint>

// Made by the process so far, freed ones included. Any thread.
std::uint64_t heap_objects();

// How long threads were ready to run and had no CPU. To the thread itself that looks as if what it waited for had taken so long.
// 0 where the kernel does not tell (/proc/PID/task/TID/schedstat).
#pragma once

#include <cstdint>

namespace varve {

// Tells it of the calling thread, ns. Costs one system call.
std::uint64_t cpu_wait_of_thread_ns();
// Tells it of all threads that this process has now, together. Costs three for each of them.
std::uint64_t cpu_wait_of_process_ns();

// For how long something on this machine was ready to run and had no CPU, since it was booted, ns; 0 where the kernel does not tell
// (/proc/pressure/cpu).
std::uint64_t cpu_wait_of_machine_ns();

}  // namespace varve

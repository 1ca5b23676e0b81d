// In which order an I/O scheduler serves what a thread asks for. Linux's ioprio_set, of the calling thread.
#pragma once

namespace varve {

// When nobody else wants anything. Where there is no scheduler that knows it, nothing changes.
void be_idle_for_io();

// Before the thread's CPU policy becomes SCHED_IDLE: without this its I/O would be idle, too. What the user has chosen stays.
void keep_io_priority();

}  // namespace varve

// Declares the parts that jobs are given, of the engine and of this room. A source that uses one includes the header of that part.
#pragma once

namespace varve {
class Clock;
class Gate;
class Random;
class WaitList;
}  // namespace varve

namespace varve::changes {
class Changes;
class Staging;
}  // namespace varve::changes

namespace varve::checkpoint {
class Checkpoints;
class Protection;
class Reshaping;
class Seals;
class SuperblockKeeper;
struct CheckpointRequest;
}  // namespace varve::checkpoint

namespace varve::cleaner {
class Cleaner;
}

namespace varve::device {
class Faults;
class IoContext;
}  // namespace varve::device

namespace varve::io {
class BlockDevice;
class Reactor;
}  // namespace varve::io

namespace varve::log {
class Log;
}

namespace varve::operation {
class FileNotes;
class Operation;
class Operations;
class References;
}  // namespace varve::operation

namespace varve::segments {
class LogClock;
class SegmentTable;
struct Counters;
}  // namespace varve::segments

namespace varve::snapshots {
class Snapshots;
}

namespace varve::space {
class Charge;
class HoleFeeder;
class Space;
}  // namespace varve::space

namespace varve::jobs {
class CheckpointTiming;
class HoleSupply;
class Reaper;
class Requests;
class Rounds;
class SealTiming;
class Shortage;
class Sizes;
class Upkeep;
}  // namespace varve::jobs

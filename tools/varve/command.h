// The commands of varve(1). Each declares its arguments and is run when it was chosen.
#pragma once

#include <functional>

#include "base/result.h"
#include "varve/io_layer.h"

namespace CLI {
class App;
}

namespace varve::tool {

using Action = std::function<Status(IoLayer&)>;

// Each adds its subcommand to `app` and sets `chosen` when that is on the command line.
void declare_mount(CLI::App& app, Action& chosen);
void declare_umount(CLI::App& app, Action& chosen);
void declare_status(CLI::App& app, Action& chosen);
void declare_top(CLI::App& app, Action& chosen);
void declare_checkpoint(CLI::App& app, Action& chosen);
void declare_trim(CLI::App& app, Action& chosen);
void declare_clean(CLI::App& app, Action& chosen);
void declare_resize(CLI::App& app, Action& chosen);
void declare_snapshot(CLI::App& app, Action& chosen);
void declare_diff(CLI::App& app, Action& chosen);
void declare_send(CLI::App& app, Action& chosen);
void declare_receive(CLI::App& app, Action& chosen);
void declare_restore(CLI::App& app, Action& chosen);
void declare_versions(CLI::App& app, Action& chosen);
void declare_undelete(CLI::App& app, Action& chosen);
void declare_history(CLI::App& app, Action& chosen);
void declare_scrub(CLI::App& app, Action& chosen);
void declare_map(CLI::App& app, Action& chosen);
void declare_tune(CLI::App& app, Action& chosen);
void declare_probe(CLI::App& app, Action& chosen);
void declare_label(CLI::App& app, Action& chosen);
void declare_uuid(CLI::App& app, Action& chosen);
void declare_metrics(CLI::App& app, Action& chosen);
void declare_report(CLI::App& app, Action& chosen);
void declare_doctor(CLI::App& app, Action& chosen);
void declare_image(CLI::App& app, Action& chosen);
void declare_dump(CLI::App& app, Action& chosen);
void declare_salvage(CLI::App& app, Action& chosen);
void declare_trial(CLI::App& app, Action& chosen);

// Returns the exit code: 0 on success, otherwise 1 with a message on io.err.
int run(int argc, const char* const* argv, IoLayer io);

}  // namespace varve::tool

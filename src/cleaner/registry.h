// The names of policies and strategies: those that come with Varve, and those of loaded plugins.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cleaner/evaluation.h"
#include "cleaner/placement.h"
#include "cleaner/selection.h"
#include "cleaner/strategy.h"

namespace varve::cleaner {

struct PolicyName {
  std::string name;
  std::string help;  // one line: what it does, its parameters
};

// One kind of plugin. Thread-safe; nothing is ever removed.
template <class Plugin, class... Scale>
class PluginTable {
 public:
  explicit PluginTable(const char* kind) : kind_(kind) {}  // for messages: "policy", "strategy"

  using Factory = std::function<std::unique_ptr<Plugin>(const Parameters&, const Scale&...)>;

  // Errc::exists: the name is taken.
  Status add(std::string name, std::string help, Factory factory);
  bool contains(std::string_view name) const;
  Result<std::unique_ptr<Plugin>> make(std::string_view spelling, const Scale&... scale) const;
  std::vector<PolicyName> names() const;

 private:
  struct Entry {
    PolicyName name;
    Factory factory;
  };
  const char* const kind_;
  mutable Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
};

struct Registry {
  PluginTable<Evaluation> evaluations{"policy"};
  PluginTable<VictimSelection> selections{"policy"};
  PluginTable<Placement, PlacementScale> placements{"placement"};
  PluginTable<Strategy> strategies{"strategy"};

  Registry();  // with what comes with Varve
};

// The one of this process: shared objects are loaded once and for all, too.
Registry& registry();

// Loads a plugin: a shared object that was built with these headers (examples/cleaner-plugin is one to copy) and calls
// VARVE_CLEANER_PLUGIN. It stays loaded. Errc::invalid: cannot be loaded, is none, or of another version.
Status load_plugin(const std::string& path);

// Changes with every change of the plugin classes.
inline constexpr unsigned kPluginVersion = 3;

}  // namespace varve::cleaner

// Defines what load_plugin() looks for; a function body that adds to `registry` and returns a Status follows.
#define VARVE_CLEANER_PLUGIN(registry)                                                                 \
  extern "C" [[gnu::visibility("default")]] const unsigned varve_cleaner_plugin_version =              \
      varve::cleaner::kPluginVersion;                                                                  \
  static varve::Status add_to_registry(varve::cleaner::Registry& registry);                            \
  extern "C" [[gnu::visibility("default")]] void varve_cleaner_plugin(varve::cleaner::Registry* table, \
                                                                      varve::Status* status) {         \
    *status = add_to_registry(*table);                                                                 \
  }                                                                                                    \
  static varve::Status add_to_registry(varve::cleaner::Registry& registry)

#include "support/script_generator.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>

namespace varve::test {

namespace {

constexpr std::uint64_t kBlock = 4096;

void collect(const ModelFs& state, ModelId id, const std::string& path, std::size_t depth,
             std::vector<std::pair<std::string, ModelId>>& out) {
  for (const auto& [name, child] : state.inode(id).entries) {
    out.emplace_back(path + "/" + name, child);
    if (state.inode(child).is_directory()) collect(state, child, path + "/" + name, depth + 1, out);
  }
}

std::size_t depth_of(const std::string& path) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

Step step_of(Verb verb, std::string target, std::string other = {}) {
  Step step;
  step.verb = verb;
  step.target = std::move(target);
  step.other = std::move(other);
  return step;
}

}  // namespace

std::string ScriptGenerator::name() {
  static constexpr const char* kNames[] = {"foo", "bar", "baz", "qux", "quux", "corge", "grault", "garply"};
  const std::uint64_t n = dice_.below(profile_.names);
  if (n < std::size(kNames)) return profile_.prefix + kNames[n];
  std::string text = profile_.prefix + "n" + std::to_string(n);
  if (n % 7 == 0) text += std::string(180, 'x');  // long names fill leaves sooner
  return text;
}

std::string ScriptGenerator::blind_path() {
  std::string path;
  for (std::uint64_t i = dice_.between(1, profile_.depth + 1); i > 0; --i) path += "/" + name();
  return path;
}

std::string ScriptGenerator::existing(const ModelFs& state, Wanted wanted) {
  std::vector<std::pair<std::string, ModelId>> all;
  collect(state, kModelRoot, "", 0, all);
  std::erase_if(all, [&](const auto& item) {
    const ModelInode& inode = state.inode(item.second);
    if (wanted == Wanted::file) return !inode.is_file();
    if (wanted == Wanted::directory) return !inode.is_directory();
    return wanted == Wanted::not_directory && inode.is_directory();
  });
  if (!all.empty()) return dice_.pick(all).first;
  return profile_.spare_root && wanted != Wanted::directory ? blind_path() : "/";
}

std::string ScriptGenerator::file_target(const ModelFs& state) {
  if (!state.slots().empty() && dice_.percent(10)) return slot();
  if (dice_.percent(profile_.error_percent / 2)) return blind_path();
  return existing(state, Wanted::file);
}

std::string ScriptGenerator::fresh(const ModelFs& state) {
  if (dice_.percent(profile_.error_percent)) return blind_path();
  std::string directory = dice_.percent(40) ? "/" : existing(state, Wanted::directory);
  if (depth_of(directory) > profile_.depth) directory = "/";
  return (directory == "/" ? "" : directory) + "/" + name();
}

std::uint64_t ScriptGenerator::length() {
  switch (dice_.below(10)) {
    case 0:
    case 1:
      return dice_.between(1, 200);
    case 2:
    case 3:
    case 4:
      return kBlock * dice_.between(1, std::max<std::uint64_t>(1, profile_.write_bytes / kBlock));
    case 5:
      return std::min<std::uint64_t>(1u << 20, profile_.write_bytes * 8);
    default:
      return dice_.between(1, profile_.write_bytes);
  }
}

// Somewhere in or behind a file of this size: often at a border of a block or at the end.
std::uint64_t ScriptGenerator::place_in(std::uint64_t size) {
  if (dice_.percent(profile_.far_percent)) return dice_.below(1ULL << dice_.between(20, 44));
  const std::uint64_t limit = std::min(size + 2 * kBlock, profile_.file_bytes);
  switch (dice_.below(6)) {
    case 0:
      return 0;
    case 1:
      return std::min(size, profile_.file_bytes);
    case 2:
    case 3:
      return dice_.below(limit / kBlock + 1) * kBlock;
    case 4: {
      const std::uint64_t border = dice_.below(limit / kBlock + 1) * kBlock;
      return border + dice_.between(0, 2) - std::min<std::uint64_t>(border, 1);
    }
    default:
      return dice_.below(limit + 1);
  }
}

Step ScriptGenerator::rename_step(const ModelFs& state) {
  const std::string from = dice_.percent(profile_.error_percent) ? blind_path() : existing(state, Wanted::any);
  const std::string to = dice_.percent(50) ? existing(state, Wanted::any) : fresh(state);
  Step step = step_of(Verb::rename, from == "/" ? fresh(state) : from, to == "/" ? fresh(state) : to);
  const std::uint64_t kind = dice_.below(10);
  step.flags = kind < 6 ? 0 : kind < 8 ? 2 : kind < 9 ? 1 : dice_.percent(20) ? 3 : 0;
  return step;
}

Step ScriptGenerator::names_step(const ModelFs& state) {
  const bool crowded = state.inode_count() > profile_.names * 8;
  const std::uint64_t kind = crowded ? dice_.between(55, 99) : dice_.below(100);
  Step step;
  if (kind < 28) {
    step = step_of(Verb::create, fresh(state));
    step.n[0] = 0644;
  } else if (kind < 38) {
    step = step_of(Verb::mkdir, fresh(state));
    step.n[0] = dice_.percent(10) ? 02755 : 0755;
  } else if (kind < 43) {
    const std::size_t target_length = dice_.between(1, dice_.percent(10) ? 4000 : 60);
    step = step_of(Verb::symlink, fresh(state), "to-" + std::string(target_length, 's'));
  } else if (kind < 46) {
    step = step_of(Verb::mknod, fresh(state));
    step.n[0] = dice_.percent(50) ? S_IFIFO | 0600 : S_IFCHR | 0666;
    step.n[1] = dice_.between(1, 1 << 16);
  } else if (kind < 55) {
    const std::string source = dice_.percent(5) ? existing(state, Wanted::any) : existing(state, Wanted::not_directory);
    step = step_of(Verb::link, source == "/" ? blind_path() : source, fresh(state));
  } else if (kind < 72) {
    const std::string victim = existing(state, dice_.percent(5) ? Wanted::any : Wanted::not_directory);
    step = step_of(Verb::unlink, victim == "/" ? blind_path() : victim);
  } else if (kind < 80) {
    const std::string victim = existing(state, dice_.percent(8) ? Wanted::any : Wanted::directory);
    step = step_of(Verb::rmdir, victim == "/" ? blind_path() : victim);
  } else {
    step = rename_step(state);
  }
  return step;
}

Step ScriptGenerator::data_step(const ModelFs& state) {
  const std::string target = file_target(state);
  auto found = inode_of(state, target);
  const std::uint64_t size = found.ok() ? state.inode(*found).size : 0;
  const bool full = state.written_bytes() > profile_.total_bytes;
  const std::uint64_t kind = full ? dice_.between(70, 99) : dice_.below(100);
  Step step;
  if (kind < 45) {
    step = step_of(Verb::write, target);
    step.n = {place_in(size), length(), seed()};
    if (step.n[0] < profile_.file_bytes) step.n[1] = std::min(step.n[1], profile_.file_bytes - step.n[0]);
  } else if (kind < 65) {
    step = step_of(Verb::append, target);
    step.n = {length(), seed(), 0};
    if (size + step.n[0] > profile_.file_bytes) step.n[0] = 1;
  } else if (kind < 85) {
    step = step_of(Verb::truncate, target);
    step.n[0] = full ? dice_.below(size / 2 + 1) : place_in(size);
  } else {
    step = step_of(Verb::fallocate, target);
    step.flags = static_cast<unsigned>(full ? 2 : dice_.below(5));
    step.n = {place_in(size), length() * (dice_.percent(20) ? 4 : 1), 0};
  }
  return step;
}

Step ScriptGenerator::attribute_step(const ModelFs& state) {
  static constexpr std::uint32_t kModes[] = {0600, 0644, 0755, 0777, 04755, 02750, 01777, 0};
  const std::string target = existing(state, Wanted::any);
  const std::string attribute = "user.a" + std::to_string(dice_.below(5));
  Step step;
  switch (dice_.below(7)) {
    case 0:
      step = step_of(Verb::chmod, target);
      step.n[0] = kModes[dice_.below(std::size(kModes))];
      break;
    case 1:
      step = step_of(Verb::chown, target);
      step.n = {dice_.below(3) * 500, dice_.below(3) * 500, 0};
      break;
    case 2:
      step = step_of(Verb::utimes, target);
      step.n = {dice_.below(1ULL << 62), 0 - dice_.below(1ULL << 61), 0};
      break;
    case 3:
      step = step_of(Verb::removexattr, target, attribute);
      break;
    default:
      step = step_of(Verb::setxattr, target, attribute);
      step.n = {dice_.between(0, dice_.percent(10) ? 9000 : 100), seed(), 0};
      step.flags = static_cast<unsigned>(dice_.percent(30) ? dice_.between(1, 2) : 0);
  }
  return step;
}

Step ScriptGenerator::reference_step(const ModelFs& state) {
  const std::uint64_t kind = dice_.below(10);
  if (kind < 3) return step_of(Verb::release, slot());
  if (kind < 4) {
    Step step = step_of(Verb::tmpfile, slot(), existing(state, Wanted::directory));
    step.n[0] = 0600;
    return step;
  }
  if (kind < 5) return step_of(Verb::link, slot(), fresh(state));
  const std::string path = existing(state, dice_.percent(10) ? Wanted::any : Wanted::file);
  return step_of(Verb::hold, slot(), path == "/" ? blind_path() : path);
}

Step ScriptGenerator::snapshot_step(const ModelFs& state) {
  const auto fresh_name = [this] { return "s" + std::to_string(seed()); };
  const auto& kept = state.kept();
  if (kept.empty() || (kept.size() < profile_.most_snapshots && dice_.percent(60))) return step_of(Verb::keep, fresh_name());
  const std::string& name = std::next(kept.begin(), static_cast<std::ptrdiff_t>(dice_.below(kept.size())))->first;
  return dice_.percent(20) ? step_of(Verb::relabel, name, fresh_name()) : step_of(Verb::drop, name);
}

Step ScriptGenerator::next(const ModelFs& state) {
  const ScriptProfile& p = profile_;
  std::uint64_t lot = dice_.below(p.names_weight + p.data_weight + p.attribute_weight + p.reference_weight +
                                  p.fsync_weight + p.checkpoint_weight + p.remount_weight + p.read_weight +
                                  p.seal_weight + p.work_weight + p.clean_weight + p.move_weight + p.resize_weight + p.snapshot_weight +
                                  p.pass_weight);
  const auto drawn = [&lot](unsigned weight) {
    if (lot < weight) return true;
    lot -= weight;
    return false;
  };
  if (drawn(p.names_weight)) return names_step(state);
  if (drawn(p.data_weight)) return data_step(state);
  if (drawn(p.attribute_weight)) return attribute_step(state);
  if (drawn(p.reference_weight)) return reference_step(state);
  if (drawn(p.fsync_weight)) {
    return dice_.percent(80) ? step_of(Verb::fsync, existing(state, Wanted::any)) : step_of(Verb::sync, {});
  }
  if (drawn(p.checkpoint_weight)) return step_of(Verb::checkpoint, {});
  if (drawn(p.remount_weight)) return step_of(Verb::remount, {});
  if (drawn(p.seal_weight)) return step_of(Verb::seal, {});
  if (drawn(p.work_weight)) return step_of(Verb::work, {});
  if (drawn(p.clean_weight)) return step_of(Verb::clean, {}, dice_.pick(p.strategies));
  if (drawn(p.resize_weight)) {
    Step step = step_of(Verb::resize, {});
    step.n[0] = dice_.between(p.least_bytes / kBlock, p.most_bytes / kBlock) * kBlock;
    return step;
  }
  if (drawn(p.snapshot_weight)) return snapshot_step(state);
  if (drawn(p.move_weight)) {
    Step step = step_of(Verb::move, {});
    step.n[0] = dice_.below(64);
    return step;
  }
  if (drawn(p.pass_weight)) {
    Step step = step_of(Verb::pass, {});
    step.n[0] = dice_.between(1'000, 40'000);
    return step;
  }
  Step step = step_of(Verb::read, file_target(state));
  step.n = {place_in(profile_.file_bytes / 2), length(), 0};
  return step;
}

void crowd(ScriptProfile& profile) {
  profile.names = 3;
  profile.depth = 1;
  profile.data_weight = 150;
  profile.file_bytes = 512u << 10;
  profile.write_bytes = 64u << 10;
  profile.total_bytes = 3u << 20;
  profile.work_weight = 20;
  profile.far_percent = 0;
}

Script random_script(std::uint64_t seed, const ScriptProfile& profile) {
  ScriptGenerator generator(seed, profile);
  ModelFs state;
  Script script;
  for (std::size_t i = 0; i < profile.steps; ++i) {
    script.push_back(generator.next(state));
    (void)apply(state, script.back(), Timestamp{static_cast<std::int64_t>(i), 0});
  }
  return script;
}

}  // namespace varve::test

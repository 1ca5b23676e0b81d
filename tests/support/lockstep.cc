#include "support/lockstep.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/pattern.h"
#include "support/snapshot.h"

namespace varve::test {

namespace {

constexpr std::int64_t kStepNs = 1'000'000;

template <class T>
std::optional<Error> error_in(const Result<T>& result) {
  return result.ok() ? std::nullopt : std::optional(result.error());
}

std::string describe(const std::optional<Error>& error) {
  return error ? fmt::format("{} ({})", name_of(error->code()), error->message()) : "success";
}

fs::NewNode new_node(const Step& step) {
  fs::NewNode node;
  node.mode = static_cast<std::uint32_t>(step.n[0]);
  if (step.verb == Verb::create) node.mode |= S_IFREG;
  if (step.verb == Verb::mkdir) node.mode |= S_IFDIR;
  if (step.verb == Verb::mknod) node.rdev = static_cast<std::uint32_t>(step.n[1]);
  if (step.verb == Verb::symlink) {
    node.mode = S_IFLNK | 0777;
    node.symlink = step.other;
  }
  return node;
}

fs::AttrChange change_of(const Step& step) {
  fs::AttrChange change;
  if (step.verb == Verb::truncate) change.size = step.n[0];
  if (step.verb == Verb::chmod) change.mode = static_cast<std::uint32_t>(step.n[0]);
  if (step.verb == Verb::chown) {
    change.uid = static_cast<std::uint32_t>(step.n[0]);
    change.gid = static_cast<std::uint32_t>(step.n[1]);
  }
  if (step.verb == Verb::utimes) {
    change.atime = timestamp_from_ns(static_cast<std::int64_t>(step.n[0]));
    change.mtime = timestamp_from_ns(static_cast<std::int64_t>(step.n[1]));
  }
  return change;
}

// Bytes a step may want to write.
std::uint64_t size_of(const Step& step) {
  if (step.verb == Verb::write || step.verb == Verb::fallocate) return step.n[1];
  return step.verb == Verb::append || step.verb == Verb::setxattr ? step.n[0] : kBlockSize;
}

}  // namespace

Status Lockstep::adopt_root(Ino root) {
  const fs::Attr attr = TRY(fixture_.getattr(root));
  ModelInode& inode = model.edit(kModelRoot);
  inode.mode = attr.mode;
  inode.uid = attr.uid;
  inode.gid = attr.gid;
  inode.nlink = attr.nlink;
  model.adopt_times(kModelRoot, attr.atime, attr.mtime, attr.ctime, attr.btime);
  model.bind(kModelRoot, attr.ino, attr.generation);
  return {};
}

void Lockstep::drop_reference(const Result<fs::Attr>& attr) {
  if (attr.ok() && fixture_.options().count_references) fixture_.fs().forget(attr->ino, 1);
}

Lockstep::Answer Lockstep::ask(const Step& step) {
  switch (step.verb) {
    case Verb::create:
    case Verb::mknod:
    case Verb::mkdir:
    case Verb::symlink:
    case Verb::link:
      return ask_make(step);
    case Verb::unlink:
    case Verb::rmdir:
    case Verb::rename:
      return ask_names(step);
    case Verb::tmpfile:
    case Verb::hold:
    case Verb::release:
      return ask_hold(step);
    case Verb::sync:
    case Verb::checkpoint:
    case Verb::remount:
    case Verb::pass:
    case Verb::seal:
    case Verb::clean:
    case Verb::work:
    case Verb::move:
    case Verb::tidy:
    case Verb::resize:
    case Verb::keep:
    case Verb::drop:
    case Verb::relabel:
      return ask_whole(step);
    default:
      return ask_inode(step);
  }
}

Lockstep::Answer Lockstep::ask_make(const Step& step) {
  const bool is_link = step.verb == Verb::link;
  ModelId source = 0;
  if (is_link) {
    auto found = inode_of(model, step.target);
    if (!found.ok()) return Answer(found.error());
    source = *found;
  }
  auto place = place_of(model, is_link ? step.other : step.target);
  if (!place.ok()) return Answer(place.error());
  const Ino parent = model.inode(place->parent).ino;
  auto attr = fixture_.call([&](fs::Operation& op) {
    if (is_link) return fixture_.fs().link(op, model.inode(source).ino, parent, place->name);
    return fixture_.fs().make(op, parent, place->name, new_node(step));
  });
  drop_reference(attr);
  if (!attr.ok()) return Answer(attr.error());
  return Answer(*attr);
}

Lockstep::Answer Lockstep::ask_names(const Step& step) {
  auto place = place_of(model, step.target);
  if (!place.ok()) return Answer(place.error());
  const Ino parent = model.inode(place->parent).ino;
  auto& fs = fixture_.fs();
  if (step.verb == Verb::rename) {
    auto to = place_of(model, step.other);
    if (!to.ok()) return Answer(to.error());
    const Ino to_parent = model.inode(to->parent).ino;
    return Answer(error_in(fixture_.call([&](fs::Operation& op) {
              return fs.rename(op, parent, place->name, to_parent, to->name, step.flags);
            })));
  }
  return Answer(error_in(fixture_.call([&](fs::Operation& op) {
            return step.verb == Verb::unlink ? fs.unlink(op, parent, place->name) : fs.rmdir(op, parent, place->name);
          })));
}

Lockstep::Answer Lockstep::ask_hold(const Step& step) {
  auto& fs = fixture_.fs();
  auto before = model.held(step.target);
  const Ino old = before.ok() ? model.inode(*before).ino : Ino{};
  if (step.verb == Verb::release) {
    if (!before.ok()) return Answer(before.error());
    fs.forget(old, 1);
    return Answer();
  }
  Result<fs::Attr> attr = Errc::invalid;
  if (step.verb == Verb::tmpfile) {
    auto directory = inode_of(model, step.other);
    if (!directory.ok()) return Answer(directory.error());
    fs::NewNode node;
    node.mode = S_IFREG | static_cast<std::uint32_t>(step.n[0]);
    const Ino parent = model.inode(*directory).ino;
    attr = fixture_.call([&](fs::Operation& op) { return fs.make_unnamed(op, parent, node); });
  } else {
    auto place = place_of(model, step.other);
    if (!place.ok()) return Answer(place.error());
    const Ino parent = model.inode(place->parent).ino;
    attr = fixture_.call([&](fs::Operation& op) { return fs.lookup(op, parent, place->name); });
  }
  if (!attr.ok()) return Answer(attr.error());
  if (old) fs.forget(old, 1);
  return Answer(*attr);
}

Lockstep::Answer Lockstep::ask_whole(const Step& step) {
  auto& fs = fixture_.fs();
  switch (step.verb) {
    case Verb::sync:
      return Answer(error_in(fixture_.call([&](fs::Operation& op) { return fs.sync(op); })));
    case Verb::checkpoint:
      return Answer(error_in(fixture_.checkpoint()));
    case Verb::pass:
      clock_.advance(static_cast<std::int64_t>(step.n[0]) * 1'000'000);
      return {};
    case Verb::seal:
      return Answer(error_in(fixture_.seal()));
    case Verb::clean:
      return Answer(error_in(fixture_.clean(step.other)));
    case Verb::work:
      return Answer(error_in(fixture_.work()));
    case Verb::move:
      return Answer(error_in(fixture_.move(step.n[0])));
    case Verb::tidy: {
      const auto file = fixture_.resolve(step.target);
      return Answer(file.ok() ? error_in(fixture_.tidy(*file, step.n[0])) : error_in(file));
    }
    case Verb::resize:
      return Answer(error_in(fixture_.resize(step.n[0])));
    case Verb::keep:
      return Answer(error_in(fixture_.snapshot({snapshots::SnapshotChange::Kind::create, step.target, {}})));
    case Verb::drop:
      return Answer(error_in(fixture_.snapshot({snapshots::SnapshotChange::Kind::remove, step.target, {}})));
    case Verb::relabel:
      return Answer(error_in(fixture_.snapshot({snapshots::SnapshotChange::Kind::rename, step.target, step.other})));
    default: {
      auto status = fixture_.unmount();
      if (status.ok()) status = fixture_.mount();
      return Answer(error_in(status));
    }
  }
}

Lockstep::Answer Lockstep::ask_inode(const Step& step) {
  auto id = inode_of(model, step.target);
  if (!id.ok()) return Answer(id.error());
  const ModelInode& inode = model.inode(*id);
  auto& fs = fixture_.fs();
  if (step.verb == Verb::fsync) {
    return Answer(error_in(fixture_.call([&](fs::Operation& op) { return fs.fsync(op, inode.ino); })));
  }
  if (step.verb == Verb::read) {
    auto data = fixture_.read(inode.ino, step.n[0], step.n[1]);
    if (!data.ok()) return Answer(data.error());
    Answer answer;
    answer.data = std::move(data).value();
    return answer;
  }
  Answer answer;
  if (step.verb == Verb::write || step.verb == Verb::append) {
    const std::uint64_t offset = step.verb == Verb::append ? inode.size : step.n[0];
    const std::uint64_t length = step.verb == Verb::append ? step.n[0] : step.n[1];
    const auto data = pattern_bytes(step.verb == Verb::append ? step.n[1] : step.n[2], offset, length);
    answer.error = error_in(fixture_.write(inode.ino, offset, data));
  } else if (step.verb == Verb::fallocate) {
    answer.error = error_in(fixture_.call([&](fs::Operation& op) {
      return fs.fallocate(op, inode.ino, static_cast<fs::FallocateMode>(step.flags), step.n[0], step.n[1]);
    }));
  } else {
    answer = ask_attributes(step, inode.ino);
  }
  if (answer.error) return answer;
  auto attr = fixture_.getattr(inode.ino);
  answer.error = error_in(attr);
  if (attr.ok()) answer.attr = *attr;
  return answer;
}

Lockstep::Answer Lockstep::ask_attributes(const Step& step, Ino ino) {
  auto& fs = fixture_.fs();
  if (step.verb == Verb::setxattr) {
    const auto value = pattern_bytes(step.n[1], 0, step.n[0]);
    return Answer(error_in(fixture_.call(
                [&](fs::Operation& op) { return fs.setxattr(op, ino, step.other, value, step.flags); })));
  }
  if (step.verb == Verb::removexattr) {
    return Answer(error_in(fixture_.call([&](fs::Operation& op) { return fs.removexattr(op, ino, step.other); })));
  }
  return Answer(error_in(fixture_.call([&](fs::Operation& op) { return fs.setattr(op, ino, change_of(step)); })));
}

// The model cannot know when space runs out; it only refuses to believe it while there is plenty.
bool Lockstep::space_is_low(const Step& step) {
  auto available = fixture_.available_bytes();
  const std::uint64_t device = fixture_.device().geometry().size_bytes;
  return available.ok() && *available < 2 * size_of(step) + device / 64 + (1u << 20);
}

std::string Lockstep::judge_read(const Step& step, const Answer& answer) {
  const ModelInode& inode = model.inode(*inode_of(model, step.target));
  const std::uint64_t rest = step.n[0] < inode.size ? inode.size - step.n[0] : 0;
  std::vector<std::byte> expected(std::min(step.n[1], rest));
  inode.content.read(step.n[0], expected);
  if (*answer.data == expected) return "";
  if (answer.data->size() != expected.size()) {
    return fmt::format("reads {} bytes, expected {}", answer.data->size(), expected.size());
  }
  const auto at = std::mismatch(expected.begin(), expected.end(), answer.data->begin()).first - expected.begin();
  return fmt::format("byte {} of what it reads is wrong", step.n[0] + static_cast<std::uint64_t>(at));
}

std::string Lockstep::judge_error(const Step& step, const Answer& answer, const Result<ModelId>& expected) {
  const std::optional<Error> wanted = error_in(expected);
  const int got_number = answer.error ? answer.error->to_errno() : 0;
  const int wanted_number = wanted ? wanted->to_errno() : 0;
  if (got_number == wanted_number) return "";
  return fmt::format("{}: answers {}, expected {}", to_string(step), describe(answer.error), describe(wanted));
}

std::string Lockstep::judge(const Step& step, const Answer& answer, Timestamp now) {
  const auto target = inode_of(model, step.target);  // before the step: it may take the name away
  auto expected = apply(model, step, now);
  succeeded_ = expected.ok() && !answer.error;
  changed_ = expected.ok() && !is_neutral(step.verb);
  std::string text = judge_error(step, answer, expected);
  if (!text.empty() || !expected.ok()) return text;
  if (answer.data) return judge_read(step, answer);
  if (!answer.attr) return "";
  if (*expected != 0) model.bind(*expected, answer.attr->ino, answer.attr->generation);
  const ModelId id = *expected != 0                  ? *expected
                     : step.verb == Verb::hold ? *model.held(step.target)
                                                     : *target;
  CompareOptions compare;
  compare.times = options_.compare_times;
  text = difference(entry_of(model.inode(id)), entry_of(*answer.attr), compare);
  return text.empty() ? "" : fmt::format("{}: {}", to_string(step), text);
}

std::string Lockstep::run(const Step& step) {
  const bool follows = fixture_.options().protection.is_on() || !followed_.empty();
  const ModelFs before = follows ? model : ModelFs();
  between_.clear();
  std::string text = run_one(step);
  if (follows && text.empty()) text = follow_automatic(before);
  return text.empty() || text.find(to_string(step)) != std::string::npos ? text : fmt::format("{}: {}", to_string(step), text);
}

std::set<std::string> Lockstep::automatic_names() const {
  std::set<std::string> names;
  for (const fs::SnapshotFacts& item : fixture_.fs().snapshots().snapshots)
    if (item.automatic) names.insert(item.name);
  return names;
}

std::string Lockstep::follow_automatic(const ModelFs& before) {
  // Else the reading below would carry out what is due.
  for (int i = 0; i < 100 && !fixture_.fs().read_only() && fixture_.store().protection().is_due(); ++i)
    if (const Status done = fixture_.work(); !done.ok()) return done.error().message();
  std::set<std::string> all;
  const auto items = fixture_.fs().snapshots().snapshots;
  for (const fs::SnapshotFacts& item : items) {
    all.insert(item.name);
    if (!item.automatic || model.kept().contains(item.name)) continue;
    ++automatic_seen_;
    changed_ = true;
    const Snapshot found = kept_beside(fixture_, Serial{item.serial});
    model.keep_state(item.name, model);
    if (difference(snapshot_of(*model.kept().at(item.name)), found).empty()) continue;
    model.keep_state(item.name, before);
    const std::string text = difference(snapshot_of(*model.kept().at(item.name)), found);
    if (!text.empty()) return fmt::format("{} shows neither what was there before the step nor what is there now:\n{}", item.name, text);
  }
  const std::set<std::string> former = std::exchange(followed_, automatic_names());
  for (const std::string& name : former)
    if (!all.contains(name) && model.drop(name).ok()) changed_ = true;
  if (followed_ != former) find_between(before, former);
  return "";
}

// One checkpoint after the other gives up the oldest, and makes new ones.
void Lockstep::find_between(const ModelFs& before, const std::set<std::string>& former) {
  std::vector<std::string> gone, come;
  std::ranges::set_difference(former, followed_, std::back_inserter(gone));
  std::ranges::set_difference(followed_, former, std::back_inserter(come));
  std::erase_if(gone, [&](const std::string& name) { return !before.kept().contains(name); });  // it has another name by now
  for (std::size_t left = 0; left <= gone.size(); ++left) {
    for (std::size_t made = 0; made <= come.size(); ++made) {
      for (const ModelFs* const content : {static_cast<const ModelFs*>(&model), &before}) {
        ModelFs state = *content;
        for (std::size_t i = left; i < gone.size(); ++i) state.keep_state(gone[i], *before.kept().at(gone[i]));
        for (std::size_t i = 0; i < left; ++i) (void)state.drop(gone[i]);
        for (std::size_t i = 0; i < made; ++i) state.keep_state(come[i], *model.kept().at(come[i]));
        for (std::size_t i = made; i < come.size(); ++i) (void)state.drop(come[i]);
        between_.push_back(std::move(state));
      }
    }
  }
}

std::string Lockstep::run_one(const Step& step) {
  succeeded_ = changed_ = false;
  if (!options_.remounts && (step.verb == Verb::remount || step.verb == Verb::pass)) return "";
  if (options_.advance_clock) clock_.advance(kStepNs);
  const Timestamp now = clock_.now();
  const Answer answer = ask(step);
  if (answer.error && answer.error->is(Errc::no_space)) {
    if (!space_is_low(step)) return fmt::format("{}: no space, although there is plenty", to_string(step));
    ++refused_for_space_;
    return "";
  }
  return judge(step, answer, now);
}

std::string run_script(Lockstep& lockstep, const Script& script) {
  for (std::size_t i = 0; i < script.size(); ++i) {
    const std::string text = lockstep.run(script[i]);
    if (!text.empty()) return fmt::format("step {}: {}", i + 1, text);
  }
  return "";
}

}  // namespace varve::test

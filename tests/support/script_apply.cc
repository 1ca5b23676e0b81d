// What each step means to the model.
#include <sys/stat.h>

#include "support/script.h"

namespace varve::test {

namespace {

ModelNewNode new_node(std::uint32_t mode) {
  ModelNewNode node;
  node.mode = mode;
  return node;
}

Result<ModelId> apply_make(ModelFs& model, const Step& step, Timestamp now) {
  const auto permissions = static_cast<std::uint32_t>(step.n[0]);
  if (step.verb == Verb::tmpfile) {
    const ModelId directory = TRY(inode_of(model, step.other));
    const ModelId id = TRY(model.make_unnamed(directory, new_node(S_IFREG | permissions), now));
    model.hold(step.target, id);
    return id;
  }
  ModelNewNode node = new_node(permissions);
  if (step.verb == Verb::create) node.mode |= S_IFREG;
  if (step.verb == Verb::mkdir) node.mode |= S_IFDIR;
  if (step.verb == Verb::mknod) node.rdev = static_cast<std::uint32_t>(step.n[1]);
  if (step.verb == Verb::symlink) {
    node.mode = S_IFLNK | 0777;
    node.symlink = step.other;
  }
  const Place place = TRY(place_of(model, step.target));
  return model.make(place.parent, place.name, node, now);
}

Status apply_names(ModelFs& model, const Step& step, Timestamp now) {
  if (step.verb == Verb::link) {
    const ModelId id = TRY(inode_of(model, step.target));
    const Place place = TRY(place_of(model, step.other));
    return model.link(id, place.parent, place.name, now);
  }
  const Place place = TRY(place_of(model, step.target));
  if (step.verb == Verb::unlink) return model.unlink(place.parent, place.name, now);
  if (step.verb == Verb::rmdir) return model.rmdir(place.parent, place.name, now);
  const Place to = TRY(place_of(model, step.other));
  return model.rename(place.parent, place.name, to.parent, to.name, step.flags, now);
}

Status apply_data(ModelFs& model, const Step& step, ModelId id, Timestamp now) {
  switch (step.verb) {
    case Verb::write:
      return model.write(id, step.n[0], step.n[1], step.n[2], now);
    case Verb::append:
      return model.write(id, model.inode(id).size, step.n[0], step.n[1], now);
    case Verb::fallocate:
      return model.fallocate(id, static_cast<ModelFallocate>(step.flags), step.n[0], step.n[1], now);
    case Verb::setxattr:
      return model.setxattr(id, step.other, ModelValue{step.n[1], step.n[0]}, step.flags, now);
    default:
      return model.removexattr(id, step.other, now);
  }
}

Status apply_attributes(ModelFs& model, const Step& step, ModelId id, Timestamp now) {
  ModelAttrChange change;
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
  return model.setattr(id, change, now);
}

// Steps that change nothing, as far as the model goes.
Status apply_neutral(ModelFs& model, const Step& step) {
  switch (step.verb) {
    case Verb::hold: {
      const Place place = TRY(place_of(model, step.other));
      model.hold(step.target, TRY(model.lookup(place.parent, place.name)));
      return {};
    }
    case Verb::release:
      return model.release(step.target);
    case Verb::remount:
      model.drop_all_references();
      return {};
    case Verb::read: {
      const ModelId id = TRY(inode_of(model, step.target));
      if (model.inode(id).is_directory()) return Errc::is_directory;
      if (!model.inode(id).is_file()) return Errc::invalid;
      return {};
    }
    case Verb::fsync:
      TRY(inode_of(model, step.target));
      return {};
    default:
      return {};
  }
}

Status apply_snapshots(ModelFs& model, const Step& step) {
  if (step.verb == Verb::keep) return model.keep(step.target);
  if (step.verb == Verb::drop) return model.drop(step.target);
  return model.relabel(step.target, step.other);
}

}  // namespace

Timestamp timestamp_from_ns(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = ns / kSecond;
  if (ns % kSecond < 0) --seconds;
  return {seconds, static_cast<std::uint32_t>(ns - seconds * kSecond)};
}

bool is_slot(std::string_view target) { return target.starts_with('%'); }

Result<Place> place_of(const ModelFs& model, std::string_view path) {
  if (is_slot(path)) return Errc::invalid;
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash + 1 == path.size()) return Errc::invalid;
  Place place;
  place.parent = TRY(model.resolve(path.substr(0, slash)));
  place.name = std::string(path.substr(slash + 1));
  if (!model.inode(place.parent).is_directory()) return Errc::not_directory;
  return place;
}

Result<ModelId> inode_of(const ModelFs& model, std::string_view target) {
  return is_slot(target) ? model.held(target) : model.resolve(target);
}

Result<ModelId> apply(ModelFs& model, const Step& step, Timestamp now) {
  switch (step.verb) {
    case Verb::create:
    case Verb::mknod:
    case Verb::mkdir:
    case Verb::symlink:
    case Verb::tmpfile:
      return apply_make(model, step, now);
    case Verb::link:
    case Verb::unlink:
    case Verb::rmdir:
    case Verb::rename:
      TRY(apply_names(model, step, now));
      return ModelId{0};
    case Verb::write:
    case Verb::append:
    case Verb::fallocate:
    case Verb::setxattr:
    case Verb::removexattr: {
      const ModelId id = TRY(inode_of(model, step.target));
      TRY(apply_data(model, step, id, now));
      return ModelId{0};
    }
    case Verb::truncate:
    case Verb::chmod:
    case Verb::chown:
    case Verb::utimes: {
      const ModelId id = TRY(inode_of(model, step.target));
      TRY(apply_attributes(model, step, id, now));
      return ModelId{0};
    }
    case Verb::keep:
    case Verb::drop:
    case Verb::relabel:
      TRY(apply_snapshots(model, step));
      return ModelId{0};
    default:
      TRY(apply_neutral(model, step));
      return ModelId{0};
  }
}

}  // namespace varve::test

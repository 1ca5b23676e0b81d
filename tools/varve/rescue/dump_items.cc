#include <fmt/format.h>

#include "base/utf8.h"
#include "format/item.h"
#include "format/snapshot.h"
#include "varve/observe/superblock_json.h"
#include "varve/rescue/dump.h"

namespace varve::tool {

namespace {

const char* kind_name(format::ItemKind kind) {
  switch (kind) {
    case format::ItemKind::extent:
      return "extent";
    case format::ItemKind::dirent:
      return "dirent";
    case format::ItemKind::name_hash:
      return "name_hash";
    case format::ItemKind::xattr:
      return "xattr";
    case format::ItemKind::symlink:
      return "symlink";
    case format::ItemKind::orphan:
      return "orphan";
    case format::ItemKind::attributes:
      return "attributes";
    case format::ItemKind::snapshot:
      return "snapshot";
    case format::ItemKind::dead:
      return "dead";
    case format::ItemKind::place:
      return "place";
    case format::ItemKind::name:
      return "name";
  }
  return "unknown";
}

void add_attributes(Json& json, const format::Attributes& a) {
  json["mode"] = fmt::format("{:06o}", a.mode);
  json["uid"] = a.uid;
  json["gid"] = a.gid;
  json["nlink"] = a.nlink;
  json["size"] = a.size;
  json["blocks"] = a.blocks;
  json["rdev"] = a.rdev;
  json["generation"] = a.generation;
  json["flags"] = a.flags;
  json["parent"] = a.parent.v;
  json["next_cookie"] = a.next_cookie;
  json["entries"] = a.entries;
  json["atime"] = time_text(a.atime);
  json["mtime"] = time_text(a.mtime);
  json["ctime"] = time_text(a.ctime);
  json["btime"] = time_text(a.btime);
}

void add_extent(Json& json, const format::Extent& e) {
  json["length"] = e.length;
  if (e.unwritten) {
    json["unwritten"] = true;
    return;
  }
  json["address"] = e.address.v;
  json["clock"] = e.clock;
  json["estimate"] = e.estimate;
  auto& crcs = json["crcs"] = Json::array();
  for (const std::uint32_t crc : e.crcs) crcs.push_back(fmt::format("{:08x}", crc));
}

Status add_mapping(Json& json, std::span<const std::byte> value) {
  if (format::is_tail(value)) json["tail"] = TRY(format::decode_tail(value)).size();
  else add_extent(json, TRY(format::decode_extent(value)));
  return {};
}

void add_entry(Json& json, const format::Dirent& entry) {
  json["inode"] = entry.ino.v;
  json["type"] = entry.type;
  json["name"] = printable(entry.name);
}

std::string as_text(std::span<const std::byte> value) {
  return printable({reinterpret_cast<const char*>(value.data()), value.size()});
}

Json birth_json(const format::Birth& birth) {
  if (birth.ancient) return "before all snapshots";
  return {{birth.of_node ? "serial" : "clock", birth.when}};
}

void add_snapshot(Json& json, const format::SnapshotItem& s) {
  json["name"] = printable(s.name);
  json["serial"] = s.serial.v;
  if (s.deleting) json["deleting"] = true;
  if (s.automatic) json["automatic"] = true;
  json["made"] = time_text(s.made);
  json["clock"] = s.clock;
  json["inode_file"] = node_ref_json(s.inode_file);
  json["inode_file_level"] = s.inode_file_level;
  json["data_blocks"] = s.data_blocks;
  json["reserved_blocks"] = s.reserved_blocks;
  json["inodes"] = s.inodes;
  json["dead"] = s.dead;
  json["alone"] = s.alone;
}

Status decode_of_snapshots(Json& json, const format::Key& key, std::span<const std::byte> value) {
  switch (key.kind) {
    case format::ItemKind::snapshot:
      add_snapshot(json, TRY(format::decode_snapshot(key, value)));
      break;
    case format::ItemKind::dead: {
      const format::DeadPiece piece = TRY(format::decode_dead(value));
      json["death"] = piece.death.v;
      auto& runs = json["runs"] = Json::array();
      for (const format::DeadRun& run : piece.runs)
        runs.push_back({{"address", run.address.v}, {"length", run.length}, {"birth", birth_json(run.birth)}});
      break;
    }
    case format::ItemKind::place: {
      const format::PlaceItem item = TRY(format::decode_place(value));
      json["place"] = item.place.v;
      json["birth"] = birth_json(item.birth);
      break;
    }
    case format::ItemKind::name:
      json["named"] = TRY(format::decode_name(value)).v;
      break;
    default:
      return Error(Errc::corrupt, "unknown kind");
  }
  return {};
}

Status decode(Json& json, const format::Key& key, std::span<const std::byte> value) {
  switch (key.kind) {
    case format::ItemKind::extent:
      TRY(add_mapping(json, value));
      break;
    case format::ItemKind::dirent:
      add_entry(json, TRY(format::decode_dirent(value)));
      break;
    case format::ItemKind::name_hash:
      json["cookies"] = TRY(format::decode_cookies(value));
      break;
    case format::ItemKind::attributes:
      add_attributes(json, TRY(format::decode_attributes(value)));
      break;
    case format::ItemKind::xattr:
      json["bytes"] = value.size();
      break;  // a piece of the set: see inode
    case format::ItemKind::symlink:
      json["target"] = as_text(value);
      break;
    case format::ItemKind::orphan:
      break;
    default:
      return decode_of_snapshots(json, key, value);
  }
  return {};
}

Json bytes_json(std::span<const std::byte> value) { return {{"bytes", value.size()}, {"text", as_text(value)}}; }

struct RecordJson {
  Json operator()(const format::SetAttributes& r) const {
    Json json{{"record", "set_attributes"}, {"inode", r.ino.v}};
    add_attributes(json, r.attributes);
    json.erase("blocks");
    return json;
  }
  Json operator()(const format::FreeInode& r) const { return of_inode("free_inode", r.ino); }
  Json operator()(const format::SetOrphan& r) const { return of_inode("set_orphan", r.ino); }
  Json operator()(const format::ClearOrphan& r) const { return of_inode("clear_orphan", r.ino); }
  Json operator()(const format::SetDirent& r) const {
    Json json{{"record", "set_dirent"}, {"directory", r.directory.v}, {"cookie", r.cookie}};
    add_entry(json, r.entry);
    return json;
  }
  Json operator()(const format::DeleteDirent& r) const {
    return {
        {"record", "delete_dirent"}, {"directory", r.directory.v}, {"cookie", r.cookie}, {"name", printable(r.name)}};
  }
  Json operator()(const format::SetXattr& r) const {
    return {{"record", "set_xattr"}, {"inode", r.ino.v}, {"name", printable(r.name)}, {"value", bytes_json(r.value)}};
  }
  Json operator()(const format::DeleteXattr& r) const {
    return {{"record", "delete_xattr"}, {"inode", r.ino.v}, {"name", printable(r.name)}};
  }
  Json operator()(const format::SetSymlink& r) const {
    return {{"record", "set_symlink"}, {"inode", r.ino.v}, {"target", printable(r.target)}};
  }
  Json operator()(const format::MapBlocks& r) const {
    return {{"record", "map_blocks"}, {"inode", r.ino.v}, {"first", r.first},       {"blocks", r.crcs.size()},
            {"address", r.address.v}, {"clock", r.clock}, {"estimate", r.estimate}, {"moved", r.moved}};
  }
  Json operator()(const format::ClearRange& r) const {
    return {{"record", "clear_range"}, {"inode", r.ino.v}, {"from", r.from}, {"to", r.to}, {"unwritten", r.unwritten}};
  }
  Json operator()(const format::SetTail& r) const {
    return {{"record", "set_tail"}, {"inode", r.ino.v}, {"block", r.block}, {"bytes", r.bytes.size()}};
  }
  static Json of_inode(const char* name, Ino ino) { return {{"record", name}, {"inode", ino.v}}; }
};

}  // namespace

Json item_json(const format::Key& key, std::span<const std::byte> value) {
  Json json{{"kind", kind_name(key.kind)}, {"owner", key.ino.v}, {"offset", key.offset}};
  const Status decoded = decode(json, key, value);
  if (!decoded.ok()) json["damaged"] = decoded.error().message();
  return json;
}

Json record_json(const format::Record& record) { return std::visit(RecordJson{}, record); }

// Everything about an inode: its items in the tree, decoded, as of the last checkpoint.
Result<Json> dump_inode(ImageReader& image, Ino ino, const EachPart& each) {
  Json json{{"inode", ino.v}, {"as_of", "the last checkpoint"}};
  Json extents = Json::array();
  std::uint64_t entries = 0;
  format::Bytes xattrs, target;
  bool found = false;
  tree::Cursor cursor(image.nodes(), image.inode_file());
  TRY(cursor.seek({ino, static_cast<format::ItemKind>(0), 0}));
  for (; cursor.valid() && cursor.key().ino == ino; TRY(cursor.next())) {
    found = true;
    TRY(each(extents.size() + entries));
    const auto value = cursor.value();
    switch (cursor.key().kind) {
      case format::ItemKind::extent: {
        Json extent{{"first", cursor.key().offset}};
        TRY(add_mapping(extent, value));
        extent.erase("crcs");
        extents.push_back(extent);
        break;
      }
      case format::ItemKind::dirent:
        ++entries;
        break;
      case format::ItemKind::xattr:
        xattrs.insert(xattrs.end(), value.begin(), value.end());
        break;
      case format::ItemKind::symlink:
        target.insert(target.end(), value.begin(), value.end());
        break;
      case format::ItemKind::attributes:
        add_attributes(json, TRY(format::decode_attributes(value)));
        break;
      default:
        break;
    }
  }
  if (!found) return Error(Errc::not_found, fmt::format("inode {}: not in the last checkpoint", ino));
  if (!extents.empty()) json["extents"] = extents;
  if (entries) json["entries_found"] = entries;
  if (!target.empty()) json["target"] = as_text(target);
  if (!xattrs.empty())
    for (const auto& xattr : TRY(format::decode_xattrs(xattrs)))
      json["xattrs"].push_back({{"name", printable(xattr.name)}, {"value", as_text(xattr.value)}});
  return json;
}

Result<Json> dump_directory(ImageReader& image, Ino ino, const EachPart& each) {
  Json entries = Json::array();
  tree::Cursor cursor(image.nodes(), image.inode_file());
  TRY(cursor.seek({ino, format::ItemKind::dirent, 0}));
  for (; cursor.valid() && cursor.key().ino == ino && cursor.key().kind == format::ItemKind::dirent;
       TRY(cursor.next())) {
    TRY(each(entries.size()));
    Json entry{{"cookie", cursor.key().offset}};
    add_entry(entry, TRY(format::decode_dirent(cursor.value())));
    entries.push_back(std::move(entry));
  }
  return Json{{"directory", ino.v}, {"as_of", "the last checkpoint"}, {"entries", std::move(entries)}};
}

}  // namespace varve::tool

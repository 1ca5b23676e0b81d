#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <ostream>

#include "base/counted.h"
#include "base/descriptor.h"
#include "checkpoint/superblocks.h"
#include "format/image_mark.h"
#include "image/metadata.h"
#include "io/overlay_device.h"
#include "remote/open_device.h"
#include "shared/recovery.h"
#include "varve/command.h"
#include "varve/observe/status_text.h"
#include "varve/steps.h"
#include "varve/volume/image_reader.h"

namespace varve::tool {

namespace {

struct ImageArguments {
  std::string path, file;
  bool hashes_names = false;
};

// A new file of holes. It goes again if it does not become an image.
class NewImage {
 public:
  static Result<NewImage> create(const std::string& path) {
    NewImage image(path, Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
    if (image.file_.get() >= 0) return image;
    if (errno == EEXIST) return Error(Errc::exists, fmt::format("{}: is there already; give the name of a new file", path));
    return Error(errc_from_errno(errno), fmt::format("{}: cannot be made: {}", path, errno_text()));
  }
  NewImage(NewImage&& other) noexcept : path_(std::exchange(other.path_, "")), file_(std::move(other.file_)) {}
  NewImage& operator=(NewImage&&) = delete;
  ~NewImage() {
    if (!path_.empty() && file_.get() >= 0) ::unlink(path_.c_str());
  }

  Status empty(std::uint64_t bytes) {
    const bool is_done = ::ftruncate(file_.get(), 0) == 0 && ::ftruncate(file_.get(), static_cast<off_t>(bytes)) == 0;
    if (is_done) return {};
    return Error(errc_from_errno(errno), fmt::format("{}: cannot be {} long: {}", path_, size_text(bytes), errno_text()));
  }
  std::uint64_t bytes_taken() const {
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
  }
  void keep() { path_.clear(); }

 private:
  NewImage(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  Descriptor file_;
};

struct Made {
  image::Report report;
  bool has_log = false;
  std::string note;
};

Result<image::Report> copy(io::BlockDevice& source, const format::Superblock& super, const ImageArguments& arguments, NewImage& target,
                           bool has_log, Steps& steps) {
  TRY(target.empty(super.device_blocks * kBlockSize));
  const auto device = TRY(remote::open_device(arguments.file, {.access = io::Access::read_write}));
  const auto advance = [&](std::uint64_t nodes) {
    return steps.next([&] { return fmt::format("{} of metadata copied", size_text(nodes << kBlockShift)); });
  };
  auto report = TRY(image::copy_metadata(source, super, *device,
                                         {.hashes_names = arguments.hashes_names, .has_log = has_log, .advance = advance}));
  return report;
}

// The log has names, too: it is replayed first, in memory.
Result<Made> copy_replayed(ImageReader& reader, const ImageArguments& arguments, NewImage& target, Steps& steps) {
  io::OverlayDevice overlay(reader.device());
  const Status replayed = recover(overlay, repair::Tolerance::nothing);
  if (!replayed.ok())
    return Made{TRY(copy(reader.device(), reader.super(), arguments, target, false, steps)), false,
                fmt::format("The log cannot be replayed: the image is as of the last checkpoint. {}", replayed.error().message())};
  const auto found = TRY(checkpoint::read_superblocks(overlay));
  return Made{TRY(copy(overlay, found.best, arguments, target, false, steps)), false, "The log has been replayed before."};
}

Result<Made> make(const ViewedPlace& place, const ImageArguments& arguments, NewImage& target, Steps& steps) {
  for (int i = 0; i < kTriesBesideMount; ++i) {
    ImageReader reader = TRY(place.open());
    if (format::is_image(reader.super()))
      return Error(Errc::invalid, fmt::format("{}: is such an image already; copy the file", place.device));
    const bool is_unclean = !place.is_mounted() && !reader.super().clean;
    if (is_unclean && arguments.hashes_names) return copy_replayed(reader, arguments, target, steps);
    const bool has_tails = reader.super().features.incompat & format::kIncompatTails;
    const bool has_log = is_unclean && !has_tails;
    Made made{TRY(copy(reader.device(), reader.super(), arguments, target, has_log, steps)), has_log, ""};
    if (is_unclean && !has_log) made.note = "The log may hold content of files and is not in it: the image is as of the last checkpoint.";
    const bool is_whole = made.report.damaged + made.report.unreadable == 0;
    if (!place.is_mounted() || is_whole || TRY(place.open()).super().serial == reader.super().serial) return made;
  }
  return Error(Errc::in_use, fmt::format("{}: so much is written there that its blocks are used again before they are copied; try it "
                                         "again later, or unmount it first", place.directory));
}

std::string text_of(const Made& made, const ImageArguments& arguments, std::uint64_t bytes) {
  const image::Report& report = made.report;
  std::string text = fmt::format("{}: {} of metadata, {} on the disk; no data of files\n", arguments.file, counted(report.nodes, "block"),
                                 size_text(bytes));
  if (arguments.hashes_names) text += "Names are others, of the same length. Values of extended attributes are zeros.\n";
  else text += "Names of files are in it, and extended attributes: --hash-names takes them out.\n";
  const char* const end = report.log_is_damaged ? ", up to where it is damaged" : "";
  if (made.has_log) text += fmt::format("The log is in it: {}{}\n", counted(report.log_blocks, "block"), end);
  if (!made.note.empty()) text += made.note + "\n";
  if (report.damaged) text += fmt::format("Damaged: {}; what is below them is not there\n", counted(report.damaged, "block"));
  if (report.left_out)
    text += fmt::format("Left out because they may hold names or content: {}\n", counted(report.left_out, "damaged block"));
  if (report.unreadable) text += fmt::format("Not there because the device does not give them: {}\n", counted(report.unreadable, "block"));
  return text + "Most of the file is holes: pack it with tar -S, or with zstd.\n";
}

Status image(const ImageArguments& arguments, IoLayer& io) {
  if (arguments.file == "-")
    return Error(Errc::invalid, "-: an image has holes, which a pipe cannot have: name a file (./- where it is to be called so)");
  const ViewedPlace place = TRY(viewed_place(arguments.path, io, false));
  NewImage target = TRY(NewImage::create(arguments.file));
  Steps steps(io, true, "the file that was begun is removed");
  const Made made = TRY(make(place, arguments, target, steps));
  steps.wipe();
  io.out << text_of(made, arguments, target.bytes_taken());
  target.keep();
  return {};
}

}  // namespace

void declare_image(CLI::App& app, Action& chosen) {
  auto arguments = std::make_shared<ImageArguments>();
  CLI::App* command = app.add_subcommand("image", "Copy the metadata, without data of files, for a bug report");
  command->add_option("source", arguments->path, "Where it is mounted, or a device or image")->required();
  command->add_option("file", arguments->file, "The file to make: as long as the filesystem, mostly holes")->required();
  command->add_flag("--hash-names", arguments->hashes_names, "Put other names of the same length in place of all names");
  command->callback([arguments, &chosen] { chosen = [arguments](IoLayer& io) { return image(*arguments, io); }; });
}

}  // namespace varve::tool

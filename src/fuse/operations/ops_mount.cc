#include "base/logging.h"
#include "format/layout.h"
#include "fuse/operations/operations.h"
#include "fuse/operations/request.h"

namespace varve::fuse {

Status init(Request& r) {
  const auto offer = TRY(decode_init(r.body().rest()));
  const auto agreed = r.session().initialise(offer);
  if (!agreed.ok()) {
    log_error("{}", agreed.error().message());
    r.reply_errno(EPROTO);
  } else {
    r.reply_struct((*agreed)->reply);
  }
  r.session().initialised();
  return {};
}

Status destroy(Request& r) {
  r.session().destroy_requested(r.header().unique);
  r.end();
  return {};
}

Status statfs(Request& r) {
  r.serve([&r] { return r.fs().statfs(r.operation()); },
          [&r](const fs::SpaceInfo& space) {
            fuse_statfs_out out{};
            out.st.blocks = space.total;
            out.st.bfree = space.free;
            out.st.bavail = space.available;
            out.st.files = space.inodes;
            out.st.ffree = space.inodes_free;
            out.st.bsize = kBlockSize;
            out.st.frsize = kBlockSize;
            out.st.namelen = format::kMaxName;
            r.reply_struct(out);
          });
  return {};
}

Status syncfs(Request& r) {
  r.serve([&r] { return r.fs().sync(r.operation()); }, [&r] { r.reply(); });
  return {};
}

Status nothing_to_do(Request& r) {
  r.reply();
  return {};
}

Status not_implemented(Request& r) {
  r.reply_errno(ENOSYS);
  return {};
}

// ENOSYS makes the kernel do without from then on. Old ones did without all of close(2): it wrote nothing back and told of no error.
Status flush(Request& r) {
  const Agreement* const agreement = r.session().agreement();
  return agreement && agreement->flushes_while_asked ? nothing_to_do(r) : not_implemented(r);
}

// It brings what a notification has asked for, and gets no answer.
Status notify_reply(Request& r) {
  if (const auto in = r.body().take<fuse_notify_retrieve_in>(); in.ok()) r.session().cache_probes().answer(r.header().unique, in->size);
  r.end();
  return {};
}

}  // namespace varve::fuse

#include "io/patient_read.h"

namespace varve::io {

Status read_patiently(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out) {
  Status status = device.read(offset, out);
  for (unsigned attempt = 1; !status.ok() && attempt < kPatientAttempts; ++attempt) status = device.read(offset, out);
  return status;
}

}  // namespace varve::io

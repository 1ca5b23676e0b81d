#include "base/errc.h"

#include <cstring>

#include "base/result.h"

namespace varve {

namespace {

struct ErrorRow {
  const char* name;
  int number;
  const char* text;
};

constexpr ErrorRow kErrors[] = {
#define X(name, number, text) {#name, number, text},
    VARVE_ERRORS(X)
#undef X
};

const ErrorRow& row_of(Errc code) { return kErrors[static_cast<std::size_t>(code)]; }

}  // namespace

const char* name_of(Errc code) { return row_of(code).name; }
const char* text_of(Errc code) { return row_of(code).text; }
int errno_of(Errc code) { return row_of(code).number; }

Errc errc_from_errno(int number) {
  if (number == EIO || number == 0) return Errc::io;
  for (std::size_t i = 0; i < std::size(kErrors); ++i)
    if (kErrors[i].number == number && static_cast<Errc>(i) != Errc::would_block) return static_cast<Errc>(i);
  return Errc::io;
}

std::string Error::message() const { return context_ ? *context_ : std::string(text_of(code_)); }

std::string errno_text() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe): of this thread in glibc

}  // namespace varve

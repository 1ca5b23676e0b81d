// What packaging/recognition/varve.c uses of util-linux' libblkid/src/superblocks/superblocks.h, and of what that includes.
#pragma once

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define le32_to_cpu(x) le32toh(x)
#define le64_to_cpu(x) le64toh(x)

enum { BLKID_PROBE_OK = 0, BLKID_PROBE_NONE = 1 };
enum { BLKID_USAGE_FILESYSTEM = 1 << 1 };

typedef struct blkid_struct_probe *blkid_probe;

struct blkid_idmag {
  const char *magic;
  unsigned int len;
  long kboff;
  unsigned int sboff;
};

struct blkid_idinfo {
  const char *name;
  int usage;
  int (*probefunc)(blkid_probe pr, const struct blkid_idmag *mag);
  struct blkid_idmag magics[];
};

extern const struct blkid_idinfo varve_idinfo;

const unsigned char *blkid_probe_get_sb_buffer(blkid_probe pr, const struct blkid_idmag *mag, size_t size);
int blkid_probe_verify_csum(blkid_probe pr, uint64_t csum, uint64_t expected);
int blkid_probe_sprintf_version(blkid_probe pr, const char *fmt, ...) __attribute__((__format__(__printf__, 2, 3)));
int blkid_probe_set_uuid(blkid_probe pr, const unsigned char *uuid);
int blkid_probe_set_label(blkid_probe pr, const unsigned char *label, size_t len);
int blkid_probe_set_fsblocksize(blkid_probe pr, uint32_t block_size);
int blkid_probe_set_block_size(blkid_probe pr, unsigned block_size);
int blkid_probe_set_fssize(blkid_probe pr, uint64_t size);

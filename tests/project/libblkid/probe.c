/* Calls the prober of packaging/recognition/varve.c for the file that is named, as libblkid would, and prints what it says. */
#include "superblocks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "crc32c.h"

struct blkid_struct_probe {
  unsigned char start[4096];
};

uint32_t ul_crc32c_exclude_offset(uint32_t crc, const unsigned char *buf, size_t size, size_t exclude_off, size_t exclude_len) {
  for (size_t i = 0; i < size; ++i) {
    crc ^= i >= exclude_off && i < exclude_off + exclude_len ? 0 : buf[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return crc;
}

const unsigned char *blkid_probe_get_sb_buffer(blkid_probe pr, const struct blkid_idmag *mag, size_t size) {
  (void)mag;
  return size <= sizeof pr->start ? pr->start : NULL;
}

int blkid_probe_verify_csum(blkid_probe pr, uint64_t csum, uint64_t expected) {
  (void)pr;
  return csum == expected;
}

int blkid_probe_sprintf_version(blkid_probe pr, const char *fmt, ...) {
  (void)pr;
  va_list list;
  va_start(list, fmt);
  printf("version ");
  vprintf(fmt, list);
  va_end(list);
  return printf("\n");
}

int blkid_probe_set_uuid(blkid_probe pr, const unsigned char *uuid) {
  (void)pr;
  printf("uuid ");
  for (int i = 0; i < 16; ++i) printf("%02x", uuid[i]);
  return printf("\n");
}

int blkid_probe_set_label(blkid_probe pr, const unsigned char *label, size_t len) {
  (void)pr;
  return printf("label %.*s\n", (int)len, (const char *)label);
}

int blkid_probe_set_fsblocksize(blkid_probe pr, uint32_t block_size) {
  (void)pr;
  return printf("blocks of %u\n", block_size);
}

int blkid_probe_set_block_size(blkid_probe pr, unsigned block_size) {
  (void)pr;
  (void)block_size;
  return 0;
}

int blkid_probe_set_fssize(blkid_probe pr, uint64_t size) {
  (void)pr;
  return printf("size %llu\n", (unsigned long long)size);
}

int main(int argc, char **argv) {
  struct blkid_struct_probe probe;
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file || fread(probe.start, sizeof probe.start, 1, file) != 1) return 2;
  fclose(file);
  const struct blkid_idmag *mag = varve_idinfo.magics;
  if (memcmp(probe.start + mag->kboff * 1024 + mag->sboff, mag->magic, mag->len) != 0) return 1;
  return varve_idinfo.probefunc(&probe, mag);
}

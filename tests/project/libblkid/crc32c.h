// What packaging/recognition/varve.c uses of util-linux' include/crc32c.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

uint32_t ul_crc32c_exclude_offset(uint32_t crc, const unsigned char *buf, size_t size, size_t exclude_off, size_t exclude_len);

/*
 * A superblock prober for libblkid, in the form in which util-linux takes it: libblkid/src/superblocks/varve.c.
 * Besides, util-linux needs one line each in superblocks.c (idinfos[]: &varve_idinfo), superblocks.h (extern) and meson.build and
 * Makemodule.am (the file). docs/format.md has the bytes.
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "superblocks.h"
#include "crc32c.h"

#define VARVE_BLOCK_SIZE 4096
#define VARVE_CRC_OFFSET 8

struct varve_super_block {
	uint8_t magic[8];	/* "VARVEVE\x1a" */
	uint32_t crc;		/* CRC-32C of the block, these four bytes as zeros */
	uint32_t version;
	uint64_t compat, ro_compat, incompat;
	uint8_t uuid[16];
	uint8_t label[64];	/* UTF-8, zeros behind it */
	uint64_t identity;
	uint64_t hash_key[2];
	uint64_t made_seconds;
	uint32_t made_nanoseconds;
	uint32_t unused;
	uint64_t device_blocks;	/* of 4096 bytes */
} __attribute__((packed));

static int probe_varve(blkid_probe pr, const struct blkid_idmag *mag)
{
	const struct varve_super_block *sb;
	const unsigned char *block;
	uint32_t crc;

	block = blkid_probe_get_sb_buffer(pr, mag, VARVE_BLOCK_SIZE);
	if (!block)
		return errno ? -errno : BLKID_PROBE_NONE;
	sb = (const struct varve_super_block *) block;

	crc = ul_crc32c_exclude_offset(~0L, block, VARVE_BLOCK_SIZE, VARVE_CRC_OFFSET, sizeof(sb->crc));
	if (!blkid_probe_verify_csum(pr, ~crc, le32_to_cpu(sb->crc)))
		return BLKID_PROBE_NONE;

	blkid_probe_sprintf_version(pr, "%u", le32_to_cpu(sb->version));
	blkid_probe_set_uuid(pr, sb->uuid);
	if (*sb->label)
		blkid_probe_set_label(pr, sb->label, sizeof(sb->label));
	blkid_probe_set_fsblocksize(pr, VARVE_BLOCK_SIZE);
	blkid_probe_set_block_size(pr, VARVE_BLOCK_SIZE);
	blkid_probe_set_fssize(pr, le64_to_cpu(sb->device_blocks) * VARVE_BLOCK_SIZE);
	return BLKID_PROBE_OK;
}

const struct blkid_idinfo varve_idinfo = {
	.name		= "varve",
	.usage		= BLKID_USAGE_FILESYSTEM,
	.probefunc	= probe_varve,
	.magics		= {
		{ .magic = "VARVEVE\x1a", .len = 8 },
		{ NULL }
	}
};

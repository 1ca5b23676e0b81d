/* Small workloads that need exact timing and nothing else; compiled by `peers`.
 *   worker walk DIR ROUNDS        lstat of everything below DIR       -> operations seconds
 *   worker statfs PATH SECONDS    a request that is never cached      -> operations seconds p50_us p99_us
 *   worker append PATH COUNT      4 KiB appended with O_SYNC          -> operations seconds p50_us p99_us
 *   worker fsync PATH COUNT       4 KiB appended, fsync               -> operations seconds p50_us p99_us
 *   worker overwrite PATH COUNT   4 KiB at random, fdatasync          -> operations seconds p50_us p99_us
 *   worker create DIR COUNT       new 4 KiB file, fsync               -> operations seconds p50_us p99_us
 *   worker stream PATH MIB        endless sequential rewriting of a file of that size
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static float* latencies;
static size_t count, capacity;

static void add(double seconds) {
  if (count == capacity) {
    capacity = capacity ? 2 * capacity : 65536;
    latencies = realloc(latencies, capacity * sizeof *latencies);
    if (!latencies) fail("realloc");
  }
  latencies[count++] = (float)(seconds * 1e6);
}

static int ascending(const void* a, const void* b) {
  float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}

static void report(double seconds) {
  qsort(latencies, count, sizeof *latencies, ascending);
  printf("%zu %.6f %.2f %.2f\n", count, seconds, latencies[count / 2], latencies[(count * 99 + 99) / 100 - 1]);
}

static long walk(int parent, const char* name) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (fd < 0) fail(name);
  DIR* dir = fdopendir(fd);
  if (!dir) fail(name);
  long seen = 0;
  for (struct dirent* e; (e = readdir(dir));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
    struct stat s;
    if (fstatat(fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW)) fail(e->d_name);
    ++seen;
    if (S_ISDIR(s.st_mode)) seen += walk(fd, e->d_name);
  }
  closedir(dir);
  return seen;
}

static uint64_t next_random(void) { /* splitmix64 */
  static uint64_t state = 42;
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static void fill(char* block, size_t size) {
  for (size_t i = 0; i + 8 <= size; i += 8) {
    uint64_t r = next_random();
    memcpy(block + i, &r, 8);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* what = argv[1];
  const char* path = argv[2];
  double amount = atof(argv[3]);
  static char block[1 << 20];
  fill(block, sizeof block);
  double start = now(), before;

  if (!strcmp(what, "walk")) {
    long seen = 0;
    for (int i = 0; i < (int)amount; ++i) seen += walk(AT_FDCWD, path);
    printf("%ld %.6f\n", seen, now() - start);
    return 0;
  }
  if (!strcmp(what, "statfs")) {
    struct statfs s;
    do {
      before = now();
      if (statfs(path, &s)) fail("statfs");
      add(now() - before);
    } while (now() - start < amount);
    report(now() - start);
    return 0;
  }
  if (!strcmp(what, "create")) {
    for (int i = 0; i < (int)amount; ++i) {
      char name[4096];
      snprintf(name, sizeof name, "%s/file%06d", path, i);
      before = now();
      int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
      if (fd < 0 || write(fd, block, 4096) != 4096 || fsync(fd)) fail(name);
      close(fd);
      add(now() - before);
    }
    report(now() - start);
    return 0;
  }

  int append = !strcmp(what, "append"), overwrite = !strcmp(what, "overwrite"), stream = !strcmp(what, "stream");
  int fd = open(path, O_CREAT | O_WRONLY | (append ? O_SYNC : 0), 0644);
  struct stat s;
  if (fd < 0 || fstat(fd, &s)) fail(path);
  if (stream) {
    for (;;) {
      for (long i = 0; i < (long)amount; ++i)
        if (pwrite(fd, block, sizeof block, i << 20) != (ssize_t)sizeof block) fail("pwrite");
    }
  }
  off_t end = overwrite ? 0 : s.st_size;
  for (int i = 0; i < (int)amount; ++i) {
    off_t at = overwrite ? (off_t)(next_random() % (uint64_t)(s.st_size / 4096)) * 4096 : end + (off_t)i * 4096;
    before = now();
    if (pwrite(fd, block + (next_random() % 64) * 8192, 4096, at) != 4096) fail("pwrite");
    if (overwrite ? fdatasync(fd) : append ? 0 : fsync(fd)) fail("fsync");
    add(now() - before);
  }
  report(now() - start);
  return 0;
}

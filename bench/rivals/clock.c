// Gives a User-Mode Linux a clock that follows its own CPU time and skips what it idles. So a guest runs alike however busy the machine
// is, and a modelled device that keeps it waiting for hours keeps nobody else. Made for LD_PRELOAD before the program of UML.
//
// The guest reads CLOCK_MONOTONIC, arms one timer (SIGALRM) and waits for it by sigsuspend(). Its processes are children that it traces:
// it continues one and waits for it by waitpid(). GUEST_CPU says how many seconds of the guest a second of CPU is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int64_t Ns;
static const Ns kSecond = 1000000000;

static double wanted = 1, scale = 1;
static volatile Ns skipped, of_children;  // skipped: time of the guest; of_children: CPU of those that have stopped
static volatile Ns last, expires, interval;  // time of the guest; expires is 0 where no timer is armed
static volatile pid_t running;
static volatile Ns running_from;
static volatile int resumed_by;  // the request that continued it

static Ns in_ns(const struct timespec* time) { return time->tv_sec * kSecond + time->tv_nsec; }

static struct timespec in_timespec(Ns ns) { return (struct timespec){ns / kSecond, ns % kSecond}; }

static int real_clock(clockid_t clock, struct timespec* out) { return (int)syscall(SYS_clock_gettime, clock, out); }

static Ns cpu_of(clockid_t clock) {
  struct timespec time = {0, 0};
  real_clock(clock, &time);
  return in_ns(&time);
}

// As clock_getcpuclockid(3) makes it, which asks the kernel each time whether there is such a process.
static clockid_t clock_of(pid_t pid) { return ~(clockid_t)pid << 3 | 2; }

static Ns of_running(void) {
  const pid_t pid = running;
  if (pid <= 0) return 0;
  const Ns grown = cpu_of(clock_of(pid)) - running_from;
  return grown > 0 ? grown : 0;
}

static Ns now_unchecked(void) {
  const Ns cpu = cpu_of(CLOCK_PROCESS_CPUTIME_ID) + of_children + of_running();
  return kSecond + skipped + (Ns)(scale * (double)cpu);
}

static Ns now(void) {
  const Ns time = now_unchecked();
  if (time > last) last = time;
  return last;
}

__attribute__((constructor)) static void begin(void) {
  const char* const word = getenv("GUEST_CPU");
  if (word && atof(word) > 0) wanted = atof(word);
}

int clock_gettime(clockid_t clock, struct timespec* out) {
  if (clock != CLOCK_MONOTONIC) return real_clock(clock, out);
  *out = in_timespec(now());
  return 0;
}

// A real timer of no time at all would be disarmed.
static struct timespec real(Ns ns) {
  const Ns time = (Ns)((double)ns / scale);
  return in_timespec(ns && time < 1000 ? 1000 : time);
}

static int set_real(timer_t timer, Ns ns) {
  static int (*set)(timer_t, int, const struct itimerspec*, struct itimerspec*);
  if (!set) set = (int (*)(timer_t, int, const struct itimerspec*, struct itimerspec*))dlsym(RTLD_NEXT, "timer_settime");
  const struct itimerspec value = {real(interval), real(ns)};
  return set(timer, 0, &value, NULL);
}

// The real timer may come too early, as CPU time passes no faster than real time: then the guest arms it again for the rest.
int timer_settime(timer_t timer, int flags, const struct itimerspec* value, struct itimerspec* old) {
  const Ns ns = in_ns(&value->it_value);
  if (flags != 0 || old != NULL) abort();  // nothing of that kind is known of this guest
  interval = in_ns(&value->it_interval);  // only while it boots
  expires = ns ? now() + ns : 0;
  return set_real(timer, ns);
}

// While the guest is idle.
int sigsuspend(const sigset_t* mask) {
  static int (*suspend)(const sigset_t*);
  if (!suspend) suspend = (int (*)(const sigset_t*))dlsym(RTLD_NEXT, "sigsuspend");
  sigset_t pending;
  sigpending(&pending);
  if (expires && !sigismember(&pending, SIGALRM)) {
    const Ns left = expires - now();
    if (left > 0) skipped += left;
    expires = interval ? expires + interval : 0;
    kill(getpid(), SIGALRM);
  }
  return suspend(mask);
}

// A guest that boots measures how fast loops are, which lasts for a given time of its own. It has booted when its processes run.
static void begin_scaled(void) {
  static int waits;
  if (++waits != 1000) return;
  const Ns before = now();
  scale = wanted;
  skipped += before - now_unchecked();
}

static long (*trace(void))(int, pid_t, void*, void*) {
  static long (*real)(int, pid_t, void*, void*);
  if (!real) real = (long (*)(int, pid_t, void*, void*))dlsym(RTLD_NEXT, "ptrace");
  return real;
}

long ptrace(enum __ptrace_request request, ...) {
  va_list words;
  va_start(words, request);
  const pid_t pid = va_arg(words, pid_t);
  void* const address = va_arg(words, void*);
  void* const data = va_arg(words, void*);
  va_end(words);
  const int which = (int)request;
  if (which == PTRACE_CONT || which == PTRACE_SYSCALL || which == PTRACE_SINGLESTEP || which == PTRACE_SYSEMU ||
      which == PTRACE_SYSEMU_SINGLESTEP)
    resumed_by = which;
  return trace()(which, pid, address, data);
}

// Whoever halts and continues all processes of a machine means no process of the guest, which knows no such signal and would end.
static int is_of_the_machine(pid_t got, const int* status) {
  return got > 0 && status && WIFSTOPPED(*status) && (WSTOPSIG(*status) == SIGCONT || WSTOPSIG(*status) == SIGTSTP);
}

pid_t waitpid(pid_t pid, int* status, int options) {
  if (pid <= 0) return (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
  begin_scaled();
  running_from = cpu_of(clock_of(pid));
  running = pid;
  pid_t got = (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
  while (resumed_by && is_of_the_machine(got, status)) {
    trace()(resumed_by, pid, NULL, NULL);
    got = (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
  }
  const Ns grown = of_running();
  running = 0;
  of_children += grown;
  return got;
}

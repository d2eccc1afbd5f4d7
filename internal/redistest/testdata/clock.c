/*
 * A wall clock that a test sets, for a server that is started with LD_PRELOAD.
 * The file that WEIR_CLOCK names holds the time in microseconds since the Unix
 * epoch, as a native int64_t; 0 stands for the real time. The monotonic clocks,
 * by which the server runs its timers, stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *set;

__attribute__((constructor)) static void map_clock(void) {
	const char *name = getenv("WEIR_CLOCK");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *p = mmap(NULL, sizeof *set, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		set = p;
	close(fd);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
	int64_t us = set && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) ? *set : 0;
	if (!us)
		/* Not the next definition in line: looking it up may allocate, and the
		   allocator asks for the time. */
		return syscall(SYS_clock_gettime, id, ts);
	ts->tv_sec = us / 1000000;
	ts->tv_nsec = us % 1000000 * 1000;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec ts;
	(void)tz;
	if (clock_gettime(CLOCK_REALTIME, &ts))
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec ts;
	if (clock_gettime(CLOCK_REALTIME, &ts))
		return -1;
	if (t)
		*t = ts.tv_sec;
	return ts.tv_sec;
}

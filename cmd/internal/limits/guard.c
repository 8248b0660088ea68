//go:build linux && cgo

// This runs before the Go runtime starts: see package limits.
#define _GNU_SOURCE
#include "limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// gpudoctor_stderr is the descriptor that leads to standard error where descriptor 2
// leads to the watcher; else -1.
int gpudoctor_stderr = -1;

// say writes one line and a hint.
static void say(const char *hint, const char *format, ...) {
    char text[600];
    size_t n = (size_t)snprintf(text, sizeof text, "gpudoctor: ");
    va_list args;
    va_start(args, format);
    n += (size_t)vsnprintf(text + n, 400, format, args);
    va_end(args);
    n = strlen(text);
    snprintf(text + n, sizeof text - n, "\nhint: %s\n", hint);
    ssize_t written = write(2, text, strlen(text));
    (void)written; // There is nobody else to tell.
}

// of appends what a limit is, where one is set.
static const char *of(char *buffer, size_t size, int which, const char *words, int shift, const char *unit) {
    struct rlimit r;
    buffer[0] = 0;
    if (!getrlimit(which, &r) && r.rlim_cur != RLIM_INFINITY)
        snprintf(buffer, size, "; the limit on %s is %lu%s", words, (unsigned long)r.rlim_cur >> shift, unit);
    return buffer;
}

static const char processes_hint[] = "raise the limit on processes (ulimit -u, or the container's pids.max), or end other programs";
static const char memory_hint[] = "raise the limit: ulimit -v unlimited; ulimit -d unlimited";
static const char files_hint[] = "raise the limit: ulimit -n 1024";

static void refuse_low(int which, const char *words, int shift, const char *unit, unsigned long least, int hard, const char *hint) {
    struct rlimit r;
    if (getrlimit(which, &r)) return;
    rlim_t set = hard ? r.rlim_max : r.rlim_cur;
    if (set == RLIM_INFINITY || set >= least) return;
    say(hint, "the limit on %s is %lu%s; gpudoctor needs %lu%s", words, (unsigned long)set >> shift, unit, least >> shift, unit);
    _exit(2);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *pass(void *unused) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return unused;
}

// try_threads creates as many threads as the program needs, at once.
static void try_threads(void) {
    pthread_t threads[LEAST_THREADS];
    pthread_attr_t small;
    int n = 0, error = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_mutex_lock(&gate);
    for (; n < LEAST_THREADS && !error; n++) error = pthread_create(&threads[n], &small, pass, NULL);
    if (error) n--;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    pthread_attr_destroy(&small);
    if (!error) return;
    char limit[100];
    say(processes_hint, "%d of the %d threads that gpudoctor needs can be created%s", n, LEAST_THREADS,
        of(limit, sizeof limit, RLIMIT_NPROC, "processes (ulimit -u)", 0, ""));
    _exit(2);
}

static int below(int which, unsigned long low) {
    struct rlimit r;
    return !getrlimit(which, &r) && r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= low;
}

// number_in is the number that a file begins with, or -1.
static long number_in(const char *name) {
    char text[32] = "";
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && text[0] >= '0' && text[0] <= '9' ? atol(text) : -1;
}

// low is true where the program may come to a limit halfway.
static int low(void) {
    static const char *const pids[] = {"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"};
    if (below(RLIMIT_AS, LOW_MEMORY) || below(RLIMIT_DATA, LOW_MEMORY) || below(RLIMIT_NPROC, LOW_PROCESSES)) return 1;
    for (int i = 0; i < 2; i++) {
        long n = number_in(pids[i]);
        if (n >= 0 && n <= LOW_PROCESSES) return 1;
    }
    return number_in("/proc/sys/vm/overcommit_memory") == 2; // Memory is refused there, not overcommitted.
}

static pid_t watched;

// hand_on hands a signal on that somebody sent to this process. One of the terminal
// has gone to the whole group.
static void hand_on(int number, siginfo_t *info, void *unused) {
    (void)unused;
    if (watched > 1 && number != SIGCHLD && info->si_code <= 0) kill(watched, number);
}

static int any(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words)) return 1;
    return 0;
}

// The words are the runtime's: see resources in checks/internal/child/death.go.
static const char *const dying[] = {"runtime: ", "runtime/cgo: ", "fatal error: ", "goroutine ", "pthread_create failed", "SIGABRT: ", "SIGSEGV: ", NULL};
static const char *const no_thread[] = {"failed to create new OS thread", "pthread_create failed", "newosproc", NULL};
static const char *const no_file[] = {"epollcreate failed", "eventfd failed", "netpollinit failed", NULL};
static const char *const no_memory[] = {"out of memory", "cannot allocate memory", "failed to reserve", "cannot map pages", "malloc failed", "failed to allocate", NULL};

// explain tells in one line what the runtime died of.
static void explain(const char *text) {
    char a[100], b[100];
    // The stack of a thread is memory.
    if (any(text, no_thread) && !below(RLIMIT_AS, LOW_MEMORY) && !below(RLIMIT_DATA, LOW_MEMORY))
        say(processes_hint, "no thread could be created%s", of(a, sizeof a, RLIMIT_NPROC, "processes (ulimit -u)", 0, ""));
    else if (any(text, no_file))
        say(files_hint, "no file could be opened%s", of(a, sizeof a, RLIMIT_NOFILE, "open files (ulimit -n)", 0, ""));
    else
        say(memory_hint, "%s%s%s", any(text, no_thread) ? "no thread could be created" : any(text, no_memory) ? "memory ran out" : "the program ended early",
            of(a, sizeof a, RLIMIT_AS, "address space (ulimit -v)", 20, " MiB"), of(b, sizeof b, RLIMIT_DATA, "data (ulimit -d)", 20, " MiB"));
}

// finish ends this process as the watched one ended.
static void finish(int status, const char *text) {
    int died = WIFSIGNALED(status) && strchr("\x04\x05\x06\x07\x08\x0b\x1f", WTERMSIG(status)) != NULL; // ILL TRAP ABRT BUS FPE SEGV SYS.
    if (died || (WEXITSTATUS(status) && any(text, dying) && strncmp(text, "panic: ", 7))) {
        explain(text);
        _exit(2);
    }
    ssize_t written = write(2, text, strlen(text));
    (void)written;
    if (WIFSIGNALED(status)) {
        struct rlimit none = {0, 0};
        sigset_t all;
        setrlimit(RLIMIT_CORE, &none);
        signal(WTERMSIG(status), SIG_DFL);
        sigemptyset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        raise(WTERMSIG(status));
    }
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

// watch waits for the end of the watched process, and keeps what it says on its
// descriptor 2: its own words take another way.
static void watch(int from, const sigset_t *open_mask) {
    static char text[64 << 10];
    size_t kept = 0;
    int status = 0, gone = 0;
    fcntl(from, F_SETFL, O_NONBLOCK);
    while (!gone) {
        struct pollfd f = {from, POLLIN, 0};
        ppoll(&f, from < 0 ? 0 : 1, NULL, open_mask); // Interrupted by SIGCHLD.
        gone = waitpid(watched, &status, WNOHANG) == watched;
        for (char part[4096]; from >= 0;) {
            ssize_t n = read(from, part, sizeof part);
            if (n < 0 && errno == EINTR) continue;
            if (n == 0) close(from), from = -1;
            if (n <= 0) break;
            size_t room = sizeof text - 1 - kept, take = (size_t)n < room ? (size_t)n : room;
            memcpy(text + kept, part, take);
            kept += take;
        }
    }
    finish(status, text);
}

// guard forks the program off, and stays behind to tell what it dies of. Where that
// cannot be had, the program goes on unguarded.
static void guard(void) {
    static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    int ends[2], real = fcntl(2, F_DUPFD_CLOEXEC, 10);
    if (real < 0) return;
    if (pipe2(ends, O_CLOEXEC)) {
        close(real);
        return;
    }
    struct sigaction action = {.sa_sigaction = hand_on, .sa_flags = SA_SIGINFO | SA_RESTART}, old[sizeof handed_on / sizeof *handed_on];
    sigset_t blocked, before;
    sigfillset(&action.sa_mask);
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++) {
        sigaction(handed_on[i], NULL, &old[i]);
        if (handed_on[i] == SIGCHLD || old[i].sa_handler != SIG_IGN) sigaction(handed_on[i], &action, NULL);
    }
    pid_t parent = getpid();
    watched = fork();
    if (watched < 0) {
        char limit[100];
        say(processes_hint, "no process could be created%s", of(limit, sizeof limit, RLIMIT_NPROC, "processes (ulimit -u)", 0, ""));
        _exit(2);
    }
    if (watched > 0) {
        close(ends[1]);
        close(0);
        close(1);
        close(real);
        watch(ends[0], &before);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); // Nothing outlives the watcher.
    if (getppid() != parent) _exit(2);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++) sigaction(handed_on[i], &old[i], NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    gpudoctor_stderr = real;
}

// is_child is true in a process that the doctor started: its parent tells its end
// (mark in checks/internal/child/child.go). libc hands the arguments on, musl not.
static int is_child(void) {
    char line[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return 0;
    line[n] = 0;
    size_t name = strlen(line) + 1;
    return name < (size_t)n && !strcmp(line + name, "__child");
}

__attribute__((constructor)) static void look(void) {
    if (is_child()) return;
    refuse_low(RLIMIT_AS, "address space (ulimit -v)", 20, " MiB", LEAST_ADDRESS_SPACE, 0, memory_hint);
    refuse_low(RLIMIT_DATA, "data (ulimit -d)", 20, " MiB", LEAST_DATA, 0, memory_hint);
    // Package os raises the limit on files as far as it may.
    refuse_low(RLIMIT_NOFILE, "open files (ulimit -n)", 0, "", LEAST_FILES, 1, files_hint);
    try_threads();
    if (getpid() > 0 && low()) guard(); // Otherwise main says what is wrong.
}

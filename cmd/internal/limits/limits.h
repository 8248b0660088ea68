// What the program needs, measured on Linux 6.18 with Go 1.26 and 2 cores (the
// greatest of `check` and `check --from`). limits_test.go holds that the numbers
// in limits.go are the same.
#ifndef GPUDOCTOR_LIMITS_H
#define GPUDOCTOR_LIMITS_H

// 1.9 GiB at its peak: the Go runtime reserves address space for its tables, and each
// thread of libc 8 MiB of stack and 64 MiB for malloc. With 1.5 GB it dies.
#define LEAST_ADDRESS_SPACE (2UL << 30)
// 255 MiB; with 200 MB it dies.
#define LEAST_DATA (512UL << 20)
// 27 open at once; with 7 the runtime dies, and with a few more files seem to be
// missing.
#define LEAST_FILES 64
// 10 threads without those of children.
#define LEAST_THREADS 16

// At and below these a limit is low: the program may come to it halfway. Red Hat's
// limit on processes for users was 4096, and a job may have thousands of threads.
#define LOW_MEMORY (64UL << 30)
#define LOW_PROCESSES 4096
#endif

// The kernels that move data between two GPUs, in HIP C++, which hiprtc compiles for
// the GPU at hand. They do what those of pairs.ptx do; every parameter is 64 bits wide. Without HIP
// they are CUDA C++: the tests compile them with NVRTC, to try them on a GPU.
typedef unsigned long long u64;

#if defined(__HIP__) || defined(__HIPCC_RTC__)
// The counter behind wall_clock64, of which older versions of hiprtc do not know.
extern "C" __device__ u64 __ockl_steadyctr_u64(void);
__device__ inline u64 gd_ticks() { return __ockl_steadyctr_u64(); }
// Memory that another GPU writes while the kernel runs is read past all caches.
__device__ inline u64 gd_seen(const u64 *p) { return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM); }
__device__ inline void gd_show(u64 *p, u64 v) { __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }
__device__ inline void gd_add(u64 *p, u64 v) { __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); }
#else
__device__ inline u64 gd_ticks() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
__device__ inline u64 gd_seen(const u64 *p) { return *(volatile const u64 *)p; }
__device__ inline void gd_show(u64 *p, u64 v) {
    *(volatile u64 *)p = v;
    __threadfence_system();
}
__device__ inline void gd_add(u64 *p, u64 v) { atomicAdd_system(p, v); }
#endif

// gd_copy copies units of 16 bytes, four in flight for each thread. Run by the
// source it stores to the peer, run by the destination it loads from it.
struct __attribute__((aligned(16))) gd_unit { u64 low, high; };
extern "C" __global__ void gd_copy(gd_unit *dst, const gd_unit *src, u64 units) {
    u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x, step = gridDim.x * (u64)blockDim.x;
    for (; i + 3 * step < units; i += 4 * step) {
        gd_unit a = src[i], b = src[i + step], c = src[i + 2 * step], d = src[i + 3 * step];
        dst[i] = a;
        dst[i + step] = b;
        dst[i + 2 * step] = c;
        dst[i + 3 * step] = d;
    }
    for (; i < units; i += step) dst[i] = src[i];
}

// gd_handshake plays ping-pong with a kernel on the peer: each side writes the
// number of the round into the peer's memory and waits for it in its own. One side
// goes first. It ends after so many rounds, or when the bound in ticks is over; the
// result is the rounds done, the ticks taken, and the ticks since the last store was
// seen. A compiler may take the counter
// for one that never changes, so looks are counted, too: a look takes longer than
// 10 ns, so that 2^30 of them are longer than any bound that is given.
extern "C" __global__ void gd_handshake(u64 *mine, u64 *peer, u64 rounds, u64 first, u64 bound, u64 *result) {
    u64 start = gd_ticks(), seen = start, round = 1, looks = 0;
    for (; round <= rounds; round++) {
        if (first) gd_show(peer, round);
        while (gd_seen(mine) < round) {
            if (gd_ticks() - start > bound || ++looks >> 30) goto done;
        }
        seen = gd_ticks();
        if (!first) gd_show(peer, round);
    }
done:
    gd_show(result, round - 1);
    u64 end = gd_ticks();
    gd_show(result + 1, end - start);
    gd_show(result + 2, end - seen);
}

// gd_chase follows pointers through memory, each load waiting for the one before
// it, and leaves the last pointer in the result.
extern "C" __global__ void gd_chase(const u64 *at, u64 steps, u64 *result) {
    for (; steps; steps--) at = (const u64 *)*(volatile const u64 *)at;
    *result = (u64)at;
}

// gd_atomics adds one to a counter so many times in each thread.
extern "C" __global__ void gd_atomics(u64 *counter, u64 adds) {
    for (; adds; adds--) gd_add(counter, 1);
}

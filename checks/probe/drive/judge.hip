// The kernels that write and compare patterns, in HIP C++, which hiprtc compiles for the
// GPU at hand. They do what those of judge.ptx do; every parameter is 64 bits wide. Without
// HIP they are CUDA C++: the tests compile them with NVRTC, to try them on a GPU.
typedef unsigned long long u64;

#if defined(__HIP__) || defined(__HIPCC_RTC__)
__device__ inline u64 gd_shuffle(u64 v, int distance) { return __shfl_xor(v, distance); }
#else
__device__ inline u64 gd_shuffle(u64 v, int distance) { return __shfl_xor_sync(0xffffffffu, v, distance); }
#endif

__device__ inline u64 gd_pattern(u64 seed, u64 i) {
    u64 x = seed + i * 0x9e3779b97f4a7c15ull;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

// gd_add adds the values of all threads of a warp to a word of the result.
__device__ inline void gd_add(u64 *at, u64 value) {
    for (int distance = warpSize / 2; distance; distance /= 2) value += gd_shuffle(value, distance);
    if (threadIdx.x % warpSize == 0) atomicAdd(at, value);
}

// gd_sign shows that a block ran: its first thread adds the pattern's word for the number
// of the block and a seed that no launch had before.
__device__ inline void gd_sign(u64 *result, u64 nonce) {
    if (threadIdx.x == 0) atomicAdd(result, gd_pattern(nonce, blockIdx.x));
}

// gd_fill writes the pattern of a seed over a buffer.
extern "C" __global__ void gd_fill(u64 *dst, u64 words, u64 seed, u64 nonce, u64 *result) {
    u64 count = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (u64)blockDim.x, count++) dst[i] = gd_pattern(seed, i);
    gd_sign(result, nonce);
    gd_add(result + 1, count);
}

// gd_verify compares a buffer with the sum, modulo 2^64, of the patterns of consecutive
// ranks, and so many words before and behind it with the poison. The seed of a rank is
// that of the rank before plus 0xd1b54a32d192ed03 (RankStep).
extern "C" __global__ void gd_verify(const u64 *buf, u64 words, u64 guard, u64 seed, u64 ranks, u64 poison, u64 nonce, u64 *result) {
    u64 count = 0, read = 0, expected = 0, bad = 0, first = words, last = 0, poisoned = 0, zeros = 0, spilled = 0;
    for (u64 j = blockIdx.x * (u64)blockDim.x + threadIdx.x; j < words + 2 * guard; j += gridDim.x * (u64)blockDim.x) {
        u64 i = j - guard, x = seed + i * 0x9e3779b97f4a7c15ull, want = poison, got = *(volatile const u64 *)(buf + i);
        if (i < words) {
            want = 0;
            for (u64 r = 0; r < ranks; r++) want += gd_pattern(seed + r * 0xd1b54a32d192ed03ull, i);
        }
        count++;
        read += got ^ x;
        expected += want ^ x;
        if (got == want) continue;
        if (i >= words) {
            spilled++;
            continue;
        }
        bad++;
        if (i < first) first = i;
        if (i > last) last = i;
        poisoned += got == poison;
        zeros += got == 0;
    }
    gd_sign(result, nonce);
    gd_add(result + 1, count);
    gd_add(result + 2, read);
    gd_add(result + 3, expected);
    if (bad + spilled == 0) return;
    atomicAdd(result + 4, bad);
    atomicMin(result + 5, first);
    atomicMax(result + 6, last);
    atomicAdd(result + 7, poisoned);
    atomicAdd(result + 8, zeros);
    atomicAdd(result + 9, spilled);
}

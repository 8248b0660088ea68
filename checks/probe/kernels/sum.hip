// The kernel of sum.ptx in HIP C++.
typedef unsigned long long u64;

extern "C" __global__ void gd_verify_sum(const u64 *buf, u64 words, u64 seed, u64 ranks, u64 poison, u64 *result) {
    u64 bad = 0, first = words, poisoned = 0, zeros = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < words; i += gridDim.x * (u64)blockDim.x) {
        u64 v = *(volatile const u64 *)(buf + i), sum = 0;
        for (u64 r = 0; r < ranks; r++) {
            u64 x = seed + r * 0xd1b54a32d192ed03ull + i * 0x9e3779b97f4a7c15ull;
            x ^= x >> 32;
            x *= 0xd6e8feb86659fd93ull;
            sum += x ^ (x >> 32);
        }
        if (v == sum) continue;
        bad++;
        if (i < first) first = i;
        poisoned += v == poison;
        zeros += v == 0;
    }
    if (bad == 0) return;
    atomicAdd(result, bad);
    atomicMin(result + 1, first);
    atomicAdd(result + 2, poisoned);
    atomicAdd(result + 3, zeros);
}

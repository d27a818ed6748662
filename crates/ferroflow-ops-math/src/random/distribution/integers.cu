// Integers of the type, or in a range: `from` and up.
extern "C" __global__ void integers(i64 n, u64 low, u64 high, u32 k0, u32 k1, u64 from, u64 range, T *out) {
    Stream stream = {low, high, k0, k1};
    for (i64 g = thread_number(); g * GROUP < n; g += thread_count()) {
        Words words = draw(stream, (u64)g);
        for (int i = 0; i < GROUP && g * GROUP + i < n; i++) {
            u64 word = words.w[i % 4];
            if (sizeof(T) == 8) word = (u64)words.w[2 * i % 4] | (u64)words.w[(2 * i + 1) % 4] << 32;
            if (range) word = from + word % range;
            out[g * GROUP + i] = (T)word;
        }
    }
}

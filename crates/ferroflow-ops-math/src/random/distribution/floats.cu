// A thread for each group of `GROUP` numbers, which come from one call.
extern "C" __global__ void uniform(i64 n, u64 low, u64 high, u32 k0, u32 k1, T *out) {
    Stream stream = {low, high, k0, k1};
    for (i64 g = thread_number(); g * GROUP < n; g += thread_count()) {
        Words words = draw(stream, (u64)g);
        for (int i = 0; i < GROUP && g * GROUP + i < n; i++) out[g * GROUP + i] = Uniform<T>::from(words, i);
    }
}

extern "C" __global__ void normal(i64 n, u64 low, u64 high, u32 k0, u32 k1, T *out) {
    Stream stream = {low, high, k0, k1};
    for (i64 g = thread_number(); g * GROUP < n; g += thread_count()) {
        Words words = draw(stream, (u64)g);
        for (int i = 0; i < GROUP && g * GROUP + i < n; i++) {
            auto both = Normal<T>::pair(words, i / 2);
            out[g * GROUP + i] = Narrow<T>::from(i % 2 ? both.b : both.a);
        }
    }
}

// A group may take any number of calls, so each has its own range of the stream.
extern "C" __global__ void truncated(i64 n, u64 low, u64 high, u32 k0, u32 k1, T *out) {
    Stream stream = {low, high, k0, k1};
    for (i64 g = thread_number(); g * GROUP < n; g += thread_count()) {
        int have = 0, want = n - g * GROUP < GROUP ? (int)(n - g * GROUP) : GROUP;
        for (u64 call = (u64)g * (GROUP * 256 / 4); have < want; call++) {
            Words words = draw(stream, call);
            for (int i = 0; i < Normal<T>::CALL_PAIRS; i++) {
                auto both = Normal<T>::pair(words, i);
                if (magnitude(both.a) < 2 && have < want) {
                    out[g * GROUP + have++] = Narrow<T>::from(both.a);
                }
                if (magnitude(both.b) < 2 && have < want) {
                    out[g * GROUP + have++] = Narrow<T>::from(both.b);
                }
            }
        }
    }
}

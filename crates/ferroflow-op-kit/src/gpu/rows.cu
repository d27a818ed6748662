// Orders updates by the rows that they change, so that each row is changed by one thread, in the
// order of the updates. `Index` is the type of indices.

// The number of the row that each tuple of indices names; `rows` if it names none.
struct Tuple { i64 depth; i64 dims[8]; };
extern "C" __global__ void row_numbers(i64 n, Tuple tuple, i64 rows, const Index *indices, i64 *keys,
                                       i64 *order) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 row = 0;
        bool is_inside = true;
        for (int d = 0; d < (int)tuple.depth; d++) {
            i64 at = (i64)indices[i * tuple.depth + d];
            is_inside = is_inside && 0 <= at && at < tuple.dims[d];
            row = row * tuple.dims[d] + at;
        }
        keys[i] = is_inside ? row : rows;
        order[i] = i;
    }
}

// A few entries: each thread counts the entries before its own.
extern "C" __global__ void sort_few(i64 n, const i64 *keys, i64 *to_keys, i64 *to_order) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 key = keys[i], at = 0;
        for (i64 j = 0; j < n; j++) at += keys[j] < key || (keys[j] == key && j < i);
        to_keys[at] = key;
        to_order[at] = i;
    }
}

// Many entries: a stable sort by four bits at a time. A thread takes 128 neighbours.
extern "C" __global__ void count_digits(i64 n, i64 tiles, i64 shift, const i64 *keys, i64 *counts) {
    for (i64 t = thread_number(); t < tiles; t += thread_count()) {
        i64 mine[16];
        for (int d = 0; d < 16; d++) mine[d] = 0;
        i64 end = (t + 1) * 128 < n ? (t + 1) * 128 : n;
        for (i64 i = t * 128; i < end; i++) mine[(keys[i] >> shift) & 15]++;
        for (int d = 0; d < 16; d++) counts[d * tiles + t] = mine[d];
    }
}

// Sums of all counts before each, by one block of 256 threads.
extern "C" __global__ void sum_counts(i64 n, i64 *counts) {
    __shared__ i64 sums[256];
    i64 each = (n + 255) / 256, from = threadIdx.x * each;
    i64 end = from + each < n ? from + each : n, sum = 0;
    for (i64 i = from; i < end; i++) sum += counts[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        i64 before = 0;
        for (int t = 0; t < 256; t++) {
            i64 mine = sums[t];
            sums[t] = before;
            before += mine;
        }
    }
    __syncthreads();
    i64 before = sums[threadIdx.x];
    for (i64 i = from; i < end; i++) {
        i64 mine = counts[i];
        counts[i] = before;
        before += mine;
    }
}

extern "C" __global__ void move_entries(i64 n, i64 tiles, i64 shift, const i64 *counts,
                                        const i64 *keys, const i64 *order, i64 *to_keys,
                                        i64 *to_order) {
    for (i64 t = thread_number(); t < tiles; t += thread_count()) {
        i64 at[16];
        for (int d = 0; d < 16; d++) at[d] = counts[d * tiles + t];
        i64 end = (t + 1) * 128 < n ? (t + 1) * 128 : n;
        for (i64 i = t * 128; i < end; i++) {
            i64 to = at[(keys[i] >> shift) & 15]++;
            to_keys[to] = keys[i];
            to_order[to] = order[i];
        }
    }
}

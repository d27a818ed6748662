// Collectives of ranks that are threads of one process. A call is in progress until all ranks have
// made it: like the real library, it waits forever for a rank that is gone.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID = 4, IN_PROGRESS = 7, MOST = 64 };
enum { INT64 = 4, FLOAT = 7 };

typedef struct { char bytes[128]; } Id;
typedef struct { const void *from; void *to; } Part;
typedef struct {
    long name;
    int size, joined, arrived;
    long rounds;
    Part parts[MOST];
} Group;
typedef struct { Group *group; int rank; long wanted; } Comm;

static Group *groups[1024];
static int count;
static long next = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int ncclGetVersion(int *version) { *version = 22809; return SUCCESS; }
const char *ncclGetErrorString(int status) { return "a fault of the fake library"; }

int ncclGetUniqueId(Id *id) {
    memset(id, 0, sizeof *id);
    pthread_mutex_lock(&lock);
    memcpy(id->bytes, &next, sizeof next);
    next++;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

int ncclCommInitRankConfig(Comm **comm, int size, Id id, int rank, const void *config) {
    long name;
    memcpy(&name, id.bytes, sizeof name);
    if (size > MOST) return INVALID;
    pthread_mutex_lock(&lock);
    Group *group = 0;
    for (int i = 0; i < count; i++) {
        if (groups[i]->name == name) group = groups[i];
    }
    if (!group) {
        group = groups[count++ % 1024] = calloc(1, sizeof *group);
        group->name = name;
        group->size = size;
    }
    group->joined++;
    *comm = calloc(1, sizeof **comm);
    (*comm)->group = group;
    (*comm)->rank = rank;
    pthread_mutex_unlock(&lock);
    return IN_PROGRESS;
}

int ncclCommGetAsyncError(Comm *comm, int *status) {
    pthread_mutex_lock(&lock);
    Group *group = comm->group;
    *status = group->joined < group->size || group->rounds < comm->wanted ? IN_PROGRESS : SUCCESS;
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

#define REDUCE(T)                                                                                  \
    for (size_t i = 0; i < n; i++) {                                                               \
        T sum = ((const T *)group->parts[0].from)[i];                                              \
        for (int r = 1; r < group->size; r++) {                                                    \
            T x = ((const T *)group->parts[r].from)[i];                                            \
            sum = by == 1 ? sum * x : by == 2 ? (sum > x ? sum : x) : by == 3 ? (sum < x ? sum : x) : sum + x; \
        }                                                                                          \
        ((T *)result)[i] = by == 4 ? sum / group->size : sum;                                      \
    }

// Brings the part of a rank. The last one does the work of all.
static int call(Comm *comm, const void *from, void *to, size_t n, int type, int by, int root) {
    if (type != INT64 && type != FLOAT) return INVALID;
    size_t bytes = n * (type == INT64 ? 8 : 4);
    pthread_mutex_lock(&lock);
    Group *group = comm->group;
    group->parts[comm->rank].from = from;
    group->parts[comm->rank].to = to;
    comm->wanted = group->rounds + 1;
    if (++group->arrived == group->size) {
        char *result = malloc(bytes + 1);
        if (root >= 0) memcpy(result, group->parts[root].from, bytes);
        else if (type == FLOAT) REDUCE(float)
        else REDUCE(long long)
        for (int r = 0; r < group->size; r++) memcpy(group->parts[r].to, result, bytes);
        free(result);
        group->arrived = 0;
        group->rounds++;
    }
    pthread_mutex_unlock(&lock);
    return IN_PROGRESS;
}

int ncclAllReduce(const void *from, void *to, size_t n, int type, int by, Comm *comm, void *stream) {
    return call(comm, from, to, n, type, by, -1);
}
int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, Comm *comm, void *stream) {
    return call(comm, from, to, n, type, 0, root);
}
// The memory of a rank that left is not written any more.
int ncclCommAbort(Comm *comm) { return SUCCESS; }
int ncclCommDestroy(Comm *comm) { return SUCCESS; }

// A driver of GPUs whose memory is that of the processor and whose kernels do nothing. A stream is
// done with a call when the call returns. Processes find each other's memory by their descriptors.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long Address;
typedef struct { char bytes[64]; } Handle;

static struct { Address base; size_t size; int file; } allocations[1024];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = 8; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "fake"); return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) { *value = which == 75 ? 9 : 0; return 0; }
int cuDeviceGetPCIBusId(char *name, int size, int device) {
    snprintf(name, size, "0000:%02x:00.0", device);
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = malloc(1); return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuMemGetInfo_v2(size_t *available, size_t *total) { *available = *total = 4ull << 30; return 0; }
int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); return 0; }
int cuStreamSynchronize(void *stream) { return 0; }
int cuEventCreate(void **event, unsigned flags) { *event = malloc(1); return 0; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }
int cuEventRecord(void *event, void *stream) { return 0; }
int cuEventQuery(void *event) { return 0; }
int cuEventSynchronize(void *event) { return 0; }
int cuEventElapsedTime(float *ms, void *from, void *to) { *ms = 0; return 0; }

// Maps a file as memory of the GPU.
static int mapped(Address *address, size_t size, int file) {
    void *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 2;
    *address = (Address)memory;
    pthread_mutex_lock(&lock);
    int full = count == 1024;
    if (!full) {
        allocations[count].base = *address;
        allocations[count].size = size;
        allocations[count++].file = file;
    }
    pthread_mutex_unlock(&lock);
    return full ? 2 : 0;
}
int cuMemAlloc_v2(Address *address, size_t size) {
    int file = memfd_create("fake-gpu", 0);
    if (file < 0 || ftruncate(file, size)) return 2;
    return mapped(address, size, file);
}
int cuMemFree_v2(Address address) { return 0; }
int cuMemGetAddressRange_v2(Address *base, size_t *size, Address address) {
    for (int i = 0; i < count; i++) {
        if (address - allocations[i].base < allocations[i].size) {
            *base = allocations[i].base;
            *size = allocations[i].size;
            return 0;
        }
    }
    return 1;
}
int cuIpcGetMemHandle(Handle *handle, Address address) {
    memset(handle, 0, sizeof *handle);
    for (int i = 0; i < count; i++) {
        if (allocations[i].base == address) {
            snprintf(handle->bytes, 64, "%d %d %zu", getpid(), allocations[i].file, allocations[i].size);
            return 0;
        }
    }
    return 1;
}
int cuIpcOpenMemHandle_v2(Address *address, Handle handle, unsigned flags) {
    int process, file;
    size_t size;
    char path[64];
    if (sscanf(handle.bytes, "%d %d %zu", &process, &file, &size) != 3) return 1;
    // As the driver does, refuse the memory of this process.
    if (process == getpid()) return 201;
    snprintf(path, 64, "/proc/%d/fd/%d", process, file);
    int theirs = open(path, O_RDWR);
    return theirs < 0 ? 1 : mapped(address, size, theirs);
}
int cuMemHostAlloc(void **address, size_t size, unsigned flags) { *address = malloc(size); return 0; }
int cuMemFreeHost(void *address) { free(address); return 0; }
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t n, void *stream) {
    memcpy((void *)to, from, n);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t n, void *stream) {
    memcpy(to, (void *)from, n);
    return 0;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void *stream) {
    memmove((void *)to, (void *)from, n);
    return 0;
}
int cuMemsetD8Async(Address to, unsigned char value, size_t n, void *stream) {
    memset((void *)to, value, n);
    return 0;
}
int cuModuleLoadData(void **module, const void *image) { *module = malloc(1); return 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) { *function = module; return 0; }
int cuLaunchKernel() { return 0; }
int cuGetErrorName(int status, const char **text) { *text = "fake"; return 0; }
int cuGetErrorString(int status, const char **text) { *text = "a fault of the fake driver"; return 0; }

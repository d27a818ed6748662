// A compiler whose binaries are empty.
#include <stddef.h>
int nvrtcVersion(int *major, int *minor) { *major = 13, *minor = 0; return 0; }
int nvrtcCreateProgram(void **program) { *program = (void *)1; return 0; }
int nvrtcCompileProgram() { return 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) { *size = 1; return 0; }
int nvrtcGetCUBIN() { return 0; }
int nvrtcGetProgramLogSize(void *program, size_t *size) { *size = 1; return 0; }
int nvrtcGetProgramLog(void *program, char *log) { *log = 0; return 0; }
int nvrtcDestroyProgram() { return 0; }

// Matrix products that do nothing.
int cublasLtCreate(void **handle) { *handle = (void *)1; return 0; }
int cublasLtMatmul() { return 0; }
int cublasLtMatmulAlgoGetHeuristic() { return 0; }
int cublasLtMatmulDescCreate() { return 0; }
int cublasLtMatmulDescSetAttribute() { return 0; }
int cublasLtMatrixLayoutCreate() { return 0; }
int cublasLtMatrixLayoutSetAttribute() { return 0; }
int cublasLtMatmulPreferenceCreate() { return 0; }
int cublasLtMatmulPreferenceSetAttribute() { return 0; }

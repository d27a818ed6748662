//! Matrix products with cuBLASLt. The choice of an algorithm is made once for each kind of product.

use crate::status::blas;
use cudarc::cublaslt::sys::{
    self, cublasComputeType_t as Compute, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t as DescAttribute,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreferenceAttributes_t as Preference,
    cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t as LayoutAttribute,
    cudaDataType_t as Element,
};
use ferroflow_core::{DType, Gemm, HashMap, Result, bail, ensure};
use parking_lot::Mutex;
use std::ffi::c_void;

/// Scratch memory that algorithms may use.
pub(crate) const WORKSPACE: usize = 32 << 20;

/// A library handle and the products it knows.
pub(crate) struct Blas {
    handle: cublasLtHandle_t,
    workspace: u64,
    allow_tf32: bool,
    known: Mutex<HashMap<ProductKind, Plan>>,
}

// SAFETY: the library allows calls with one handle from several threads.
unsafe impl Send for Blas {}
// SAFETY: see above.
unsafe impl Sync for Blas {}

/// All that the choice of an algorithm depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ProductKind {
    /// The product, with its addresses cleared.
    gemm: Gemm,
    /// Alignments of the addresses, in bytes.
    alignments: [u32; 3],
}

#[derive(Clone, Copy)]
struct Plan {
    desc: cublasLtMatmulDesc_t,
    layouts: [cublasLtMatrixLayout_t; 3],
    algorithm: cublasLtMatmulAlgo_t,
}

// SAFETY: only the address of a bias is changed after a descriptor is made, under a lock.
unsafe impl Send for Plan {}

impl Blas {
    /// A handle on the current context. `workspace` is the address of [`WORKSPACE`] bytes.
    pub fn new(workspace: u64, allow_tf32: bool) -> Result<Blas> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library sets `handle`.
        blas(unsafe { sys::cublasLtCreate(&mut handle) }, "cuBLASLt does not start")?;
        Ok(Blas { handle, workspace, allow_tf32, known: Mutex::default() })
    }

    /// Enqueues products. A row-major matrix is a transposed column-major one, so this computes
    /// `c' = b' * a'`.
    pub fn multiply(&self, gemm: &Gemm, stream: *mut c_void) -> Result<()> {
        let plan = self.plan(gemm)?;
        // No other call may set the address of its bias until this product is enqueued.
        let _lock = gemm.bias.map(|_| self.known.lock());
        if let Some(bias) = gemm.bias {
            set_bias(plan.desc, bias)?;
        }
        let (one, zero) = ([1.0f64], [0.0f64]);
        let (one_narrow, zero_narrow) = ([1.0f32], [0.0f32]);
        let (one, zero): (*const c_void, *const c_void) = match gemm.dtype {
            DType::Double => (one.as_ptr().cast(), zero.as_ptr().cast()),
            _ => (one_narrow.as_ptr().cast(), zero_narrow.as_ptr().cast()),
        };
        let (alpha, beta) = (one, if gemm.accumulate { one } else { zero });
        let c = gemm.c as *mut c_void;
        // SAFETY: the plan is for matrices of these sizes, and their memory belongs to tensors that
        // are alive. The workspace is used in the order of the stream.
        let status = unsafe {
            sys::cublasLtMatmul(
                self.handle,
                plan.desc,
                alpha,
                gemm.b as *const c_void,
                plan.layouts[0],
                gemm.a as *const c_void,
                plan.layouts[1],
                beta,
                c.cast_const(),
                plan.layouts[2],
                c,
                plan.layouts[2],
                &plan.algorithm,
                self.workspace as *mut c_void,
                WORKSPACE,
                stream.cast(),
            )
        };
        blas(status, "a matrix product")
    }

    fn plan(&self, gemm: &Gemm) -> Result<Plan> {
        let alignment = |address: u64| 1 << address.trailing_zeros().min(8);
        let kind = ProductKind {
            gemm: Gemm { a: 0, b: 0, c: 0, bias: gemm.bias.map(|_| 0), ..gemm.clone() },
            alignments: [gemm.b, gemm.a, gemm.c].map(alignment),
        };
        if let Some(known) = self.known.lock().get(&kind) {
            return Ok(*known);
        }
        let plan = self.make_plan(&kind, gemm.bias)?;
        self.known.lock().insert(kind, plan);
        Ok(plan)
    }

    fn make_plan(&self, kind: &ProductKind, bias: Option<u64>) -> Result<Plan> {
        let gemm = &kind.gemm;
        let (element, compute, scale) = match gemm.dtype {
            DType::Float if self.allow_tf32 => {
                (Element::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Element::CUDA_R_32F)
            }
            DType::Float => (Element::CUDA_R_32F, Compute::CUBLAS_COMPUTE_32F, Element::CUDA_R_32F),
            DType::Double => {
                (Element::CUDA_R_64F, Compute::CUBLAS_COMPUTE_64F, Element::CUDA_R_64F)
            }
            DType::Half => (Element::CUDA_R_16F, Compute::CUBLAS_COMPUTE_32F, Element::CUDA_R_32F),
            DType::BFloat16 => {
                (Element::CUDA_R_16BF, Compute::CUBLAS_COMPUTE_32F, Element::CUDA_R_32F)
            }
            other => bail!(Unimplemented, "matrix products of {other} on a GPU"),
        };
        let mut desc = std::ptr::null_mut();
        // SAFETY: the library sets `desc`.
        let made = unsafe { sys::cublasLtMatmulDescCreate(&mut desc, compute, scale) };
        blas(made, "a product's description")?;
        set_transpose(desc, DescAttribute::CUBLASLT_MATMUL_DESC_TRANSA, gemm.transpose_b)?;
        set_transpose(desc, DescAttribute::CUBLASLT_MATMUL_DESC_TRANSB, gemm.transpose_a)?;
        if let Some(bias) = bias {
            let epilogue = [sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32];
            set_desc(desc, DescAttribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
            set_bias(desc, bias)?;
        }
        let &Gemm { m, n, k, batch, strides, .. } = gemm;
        let b = if gemm.transpose_b { (k, n) } else { (n, k) };
        let a = if gemm.transpose_a { (m, k) } else { (k, m) };
        let layouts = [
            layout(element, b, batch, strides[1])?,
            layout(element, a, batch, strides[0])?,
            layout(element, (n, m), batch, strides[2])?,
        ];
        let algorithm = self.algorithm(desc, &layouts, kind)?;
        Ok(Plan { desc, layouts, algorithm })
    }

    fn algorithm(
        &self,
        desc: cublasLtMatmulDesc_t,
        layouts: &[cublasLtMatrixLayout_t; 3],
        kind: &ProductKind,
    ) -> Result<cublasLtMatmulAlgo_t> {
        let mut preference = std::ptr::null_mut();
        // SAFETY: the library sets `preference`.
        blas(unsafe { sys::cublasLtMatmulPreferenceCreate(&mut preference) }, "a preference")?;
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the value has this size and outlives the call.
            let status = unsafe {
                sys::cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, size)
            };
            blas(status, "a preference")
        };
        let workspace = [WORKSPACE as u64];
        set(
            Preference::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            workspace.as_ptr().cast(),
            size_of::<u64>(),
        )?;
        let sides = [
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind.alignments[0]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind.alignments[1]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind.alignments[2]),
            (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind.alignments[2]),
        ];
        for (attribute, alignment) in sides {
            let value = [alignment];
            set(attribute, value.as_ptr().cast(), size_of::<u32>())?;
        }
        // SAFETY: an algorithm is plain data, for which zero is a valid value.
        let mut found: cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        let mut count = 0;
        // SAFETY: all descriptors are valid, and there is room for one result.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                desc,
                layouts[0],
                layouts[1],
                layouts[2],
                layouts[2],
                preference,
                1,
                &mut found,
                &mut count,
            )
        };
        blas(status, "the choice of an algorithm for a matrix product")?;
        ensure!(
            count > 0,
            Unimplemented,
            "cuBLASLt has no algorithm for a {} product of {} x {} x {}",
            kind.gemm.dtype,
            kind.gemm.m,
            kind.gemm.k,
            kind.gemm.n
        );
        Ok(found.algo)
    }
}

fn set_transpose(
    desc: cublasLtMatmulDesc_t,
    attribute: DescAttribute,
    transpose: bool,
) -> Result<()> {
    // The attribute is a 32-bit operation, of which 0 is none and 1 a transposition.
    set_desc(desc, attribute, &[i32::from(transpose)])
}

fn set_bias(desc: cublasLtMatmulDesc_t, bias: u64) -> Result<()> {
    set_desc(desc, DescAttribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &[bias])
}

/// Sets an attribute, whose type is that of the one value.
fn set_desc<T>(desc: cublasLtMatmulDesc_t, attribute: DescAttribute, value: &[T; 1]) -> Result<()> {
    let (value, size) = (value.as_ptr().cast(), size_of::<T>());
    // SAFETY: the value has this size and outlives the call, which copies it.
    let status = unsafe { sys::cublasLtMatmulDescSetAttribute(desc, attribute, value, size) };
    blas(status, "a product's description")
}

fn layout(
    element: Element,
    (rows, cols): (usize, usize),
    batch: usize,
    stride: usize,
) -> Result<cublasLtMatrixLayout_t> {
    let mut layout = std::ptr::null_mut();
    // SAFETY: the library sets `layout`.
    let made = unsafe {
        sys::cublasLtMatrixLayoutCreate(&mut layout, element, rows as u64, cols as u64, rows as i64)
    };
    blas(made, "a matrix layout")?;
    if batch > 1 {
        let (count, offset) = ([batch as i32], [stride as i64]);
        let pairs: [(_, *const c_void, _); 2] = [
            (
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                count.as_ptr().cast(),
                size_of::<i32>(),
            ),
            (
                LayoutAttribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                offset.as_ptr().cast(),
                size_of::<i64>(),
            ),
        ];
        for (attribute, value, size) in pairs {
            // SAFETY: the value has this size and outlives the call.
            let status =
                unsafe { sys::cublasLtMatrixLayoutSetAttribute(layout, attribute, value, size) };
            blas(status, "a matrix layout")?;
        }
    }
    Ok(layout)
}

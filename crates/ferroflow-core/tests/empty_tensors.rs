//! The rows of tensors without elements.

use ferroflow_core::{Code, DType, Tensor};

#[test]
fn a_tensor_without_elements_has_no_more_rows_than_there_is_memory_for() {
    for dims in [[1000, 0, 3], [0, 1000, 1000]] {
        let empty = Tensor::zeros(DType::Float, dims).unwrap();
        assert!(empty.reshape([0, 7]).is_ok());
        let e = empty.reshape([1 << 40, 0]).err().unwrap();
        assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
    }
    for dims in [[1 << 40, 0, 3], [1 << 30, 0, 1 << 30]] {
        for dtype in [DType::Float, DType::String] {
            let e = Tensor::alloc(dtype, dims).err().unwrap();
            assert_eq!(e.code(), Code::ResourceExhausted, "{e}");
        }
    }
}

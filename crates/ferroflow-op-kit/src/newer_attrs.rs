//! Attributes that TensorFlow has added to several ops since 2.15.

/// What an op does about indices out of range. All values but `IGNORE` mean an error on the CPU.
pub const BAD_INDICES_POLICY: &str = "bad_indices_policy: {'', 'DEFAULT', 'ERROR'} = ''";

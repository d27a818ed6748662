//! Tensors that a session keeps between steps, under handles that clients hold.

use crate::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

struct Kept(Tensor);

impl Resource for Kept {
    fn describe(&self) -> String {
        format!("a tensor {} {}", self.0.dtype(), self.0.shape())
    }
}

/// Stores the input; the output handle is a string or a resource, depending on the op.
fn keep(init: &KernelInit<'_>) -> Result<KernelBox> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let is_resource = init.output_dtype(0)? == DType::Resource;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let value = ctx.take(0)?;
        let dtype_and_shape = (value.dtype(), value.shape().into());
        // The client takes the node's name, a number and the device apart.
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let device = &ctx.node().device.text;
        let handle = format!("{};{number};{device}", ctx.name());
        ctx.resources().create(ctx.session_container(), &handle, Kept(value))?;
        if !is_resource {
            return ctx.set(0, Tensor::string(handle));
        }
        ctx.set(
            0,
            Tensor::handle(ResourceHandle {
                device: device.clone(),
                container: ctx.session_container().into(),
                name: handle,
                hash_code: 0,
                type_name: "tensorflow::SessionTensor".into(),
                dtypes_and_shapes: vec![dtype_and_shape],
            }),
        )
    }))
}

fn handle(ctx: &Ctx<'_>) -> Result<String> {
    Ok(String::from_utf8_lossy(ctx.input(0)?.scalar_string()?).into_owned())
}

fn get(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = handle(ctx)?;
        let Some(kept) = ctx.resources().find::<Kept>(ctx.session_container(), &handle) else {
            bail!(
                InvalidArgument,
                "The tensor with handle '{handle}' is not in the session store."
            );
        };
        ensure!(
            kept.0.dtype() == dtype,
            InvalidArgument,
            "The tensor with handle '{handle}' is of type {}, not {dtype}",
            kept.0.dtype()
        );
        ctx.set(0, kept.0.clone())
    }))
}

fn delete(ctx: &mut Ctx<'_>) -> Result<()> {
    let handle = handle(ctx)?;
    match ctx.resources().remove::<Kept>(ctx.session_container(), &handle) {
        Ok(_) => Ok(()),
        Err(_) => bail!(
            InvalidArgument,
            "Failed to delete a tensor with handle '{handle}' in the session store."
        ),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, handle) in
        [("GetSessionHandle", "handle: string"), ("GetSessionHandleV2", "handle: resource")]
    {
        c.op(name)
            .doc("Keeps a tensor for later steps; the handle names it.")
            .input("value: T")
            .output(handle)
            .attr("T: type")
            .stateful()
            .shape(shape::scalar)
            .cpu(keep);
    }
    c.op("GetSessionTensor")
        .doc("The tensor that a handle names.")
        .input("handle: string")
        .output("value: dtype")
        .attr("dtype: type")
        .stateful()
        .shape(shape::unknown)
        .cpu(get);
    c.op("DeleteSessionTensor")
        .doc("Forgets the tensor that a handle names.")
        .input("handle: string")
        .stateful()
        .shape(shape::unknown)
        .cpu_fn(delete);
    c.no_gradient(&[
        "DeleteSessionTensor",
        "GetSessionHandle",
        "GetSessionHandleV2",
        "GetSessionTensor",
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ferroflow_core::MemoryOwner;

    #[test]
    fn a_tensor_is_kept_until_it_is_deleted() {
        let (resources, session) = (Arc::new(Resources::new()), MemoryOwner::unlimited());
        let check = |op: &str| check(op).session(&session);
        let value = || Tensor::vector(&[1.0f32, 2.0]);
        let kept = check("GetSessionHandle").resources(&resources).input(value()).run().unwrap();
        let on = |op: &str| check(op).resources(&resources).input(kept[0].clone());
        let text = String::from_utf8_lossy(kept[0].scalar_string().unwrap()).into_owned();
        assert!(text.starts_with("node_under_test;") && text.contains(";/job:localhost/"));
        on("GetSessionTensor").attr("dtype", DType::Float).gives(value());
        on("GetSessionTensor").attr("dtype", DType::Int32).fails(Code::InvalidArgument, "float");
        on("DeleteSessionTensor").run().unwrap();
        on("GetSessionTensor")
            .attr("dtype", DType::Float)
            .fails(Code::InvalidArgument, "is not in the session store.");
        on("DeleteSessionTensor").fails(Code::InvalidArgument, "Failed to delete a tensor");
        let v2 = check("GetSessionHandleV2").resources(&resources).input(value()).run().unwrap();
        assert_eq!(v2[0].dtype(), DType::Resource);
    }

    #[test]
    fn another_session_cannot_read_or_delete_a_tensor() {
        let (resources, session) = (Arc::new(Resources::new()), MemoryOwner::unlimited());
        let keep = check("GetSessionHandle").session(&session).resources(&resources);
        let handle = keep.input(Tensor::scalar(7i32)).run().unwrap().remove(0);
        // Every check is a session of its own.
        let on = |op: &str| check(op).resources(&resources).input(handle.clone());
        let missing = "is not in the session store.";
        on("GetSessionTensor").attr("dtype", DType::Int32).fails(Code::InvalidArgument, missing);
        on("DeleteSessionTensor").fails(Code::InvalidArgument, "Failed to delete a tensor");
        on("GetSessionTensor")
            .session(&session)
            .attr("dtype", DType::Int32)
            .gives(Tensor::scalar(7i32));
        resources.clear_container(session.container());
        on("GetSessionTensor")
            .session(&session)
            .attr("dtype", DType::Int32)
            .fails(Code::InvalidArgument, missing);
    }
}

//! GeneratorDataset: a function makes elements from a state until it returns OutOfRange.

use super::dataset::*;
use super::function::Captured;
use super::scope::Scope;
use crate::prelude::*;

struct Generator {
    init: Captured,
    next: Captured,
    finalize: Captured,
}

impl Dataset for Generator {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        Ok(Elements::new(Generating {
            init: self.init.clone(),
            next: self.next.clone(),
            finalize: self.finalize.clone(),
            scope: scope.clone(),
            state: None,
        }))
    }
}

struct Generating {
    init: Captured,
    next: Captured,
    finalize: Captured,
    scope: Scope,
    state: Option<Tuple>,
}

impl Produce for Generating {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let state = match &self.state {
                Some(state) => state.clone(),
                None => {
                    let state = self.init.call(&self.scope, Vec::new()).await?;
                    self.state.insert(state).clone()
                }
            };
            match self.next.call(&self.scope, state.clone()).await {
                Err(e) if e.code() == Code::OutOfRange => {
                    self.finalize.call(&self.scope, state).await?;
                    Ok(None)
                }
                result => result.map(Some),
            }
        })
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("GeneratorDataset")
        .doc("A dataset of what `next_func` gives, until it is out of range.")
        .input("init_func_other_args: Tinit_func_args")
        .input("next_func_other_args: Tnext_func_args")
        .input("finalize_func_other_args: Tfinalize_func_args")
        .makes_dataset()
        .attr("init_func: func")
        .attr("next_func: func")
        .attr("finalize_func: func")
        .attr("Tinit_func_args: list(type) >= 0")
        .attr("Tnext_func_args: list(type) >= 0")
        .attr("Tfinalize_func_args: list(type) >= 0")
        .element_types()
        .metadata_attr()
        .stateful()
        .cpu(|init| {
            let function = |name: &str| Ok::<_, Error>(Arc::new(init.function(name)?));
            let (start, next) = (function("init_func")?, function("next_func")?);
            let finalize = function("finalize_func")?;
            let a = init.dtypes("Tinit_func_args")?.len();
            let b = a + init.dtypes("Tnext_func_args")?.len();
            makes(init, move |ctx| {
                let n = ctx.num_inputs();
                Ok(Generator {
                    init: Captured::from_inputs(&start, ctx, 0..a)?,
                    next: Captured::from_inputs(&next, ctx, a..b)?,
                    finalize: Captured::from_inputs(&finalize, ctx, b..n)?,
                })
            })
        });
}

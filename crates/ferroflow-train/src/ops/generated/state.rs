//! Generated from the catalog by `op_functions`, a test of the crate `ferroflow`.

use crate::graph::Graph;
use crate::ops::attrs::list;
use crate::output::Operation;
use crate::output::Output;
use ferroflow_core::DType;
use ferroflow_core::PartialShape;

/// The attributes of [`apply_ada_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdaMaxOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyAdaMaxOptions {
    fn default() -> Self {
        ApplyAdaMaxOptions { use_locking: false }
    }
}

/// `ApplyAdaMax`: A step of AdaMax.
#[inline]
#[track_caller]
pub fn apply_ada_max(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_ada_max_with(
        var,
        m,
        v,
        beta1_power,
        lr,
        beta1,
        beta2,
        epsilon,
        grad,
        ApplyAdaMaxOptions::default(),
    )
}

/// [`apply_ada_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_ada_max_with(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyAdaMaxOptions,
) -> Output {
    var.graph()
        .op("ApplyAdaMax")
        .input(var)
        .input(m)
        .input(v)
        .input(beta1_power)
        .input(lr)
        .input(beta1)
        .input(beta2)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_adadelta_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdadeltaOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyAdadeltaOptions {
    fn default() -> Self {
        ApplyAdadeltaOptions { use_locking: false }
    }
}

/// `ApplyAdadelta`: A step of Adadelta.
#[inline]
#[track_caller]
pub fn apply_adadelta(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_adadelta_with(
        var,
        accum,
        accum_update,
        lr,
        rho,
        epsilon,
        grad,
        ApplyAdadeltaOptions::default(),
    )
}

/// [`apply_adadelta()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_adadelta_with(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyAdadeltaOptions,
) -> Output {
    var.graph()
        .op("ApplyAdadelta")
        .input(var)
        .input(accum)
        .input(accum_update)
        .input(lr)
        .input(rho)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ApplyAdagradOptions {
    fn default() -> Self {
        ApplyAdagradOptions { use_locking: false, update_slots: true }
    }
}

/// `ApplyAdagrad`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn apply_adagrad(var: &Output, accum: &Output, lr: &Output, grad: &Output) -> Output {
    apply_adagrad_with(var, accum, lr, grad, ApplyAdagradOptions::default())
}

/// [`apply_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    options: ApplyAdagradOptions,
) -> Output {
    var.graph()
        .op("ApplyAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .output()
}

/// The attributes of [`apply_adagrad_da_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdagradDAOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyAdagradDAOptions {
    fn default() -> Self {
        ApplyAdagradDAOptions { use_locking: false }
    }
}

/// `ApplyAdagradDA`: A step of Adagrad with dual averaging.
#[inline]
#[track_caller]
pub fn apply_adagrad_da(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
) -> Output {
    apply_adagrad_da_with(
        var,
        gradient_accumulator,
        gradient_squared_accumulator,
        grad,
        lr,
        l1,
        l2,
        global_step,
        ApplyAdagradDAOptions::default(),
    )
}

/// [`apply_adagrad_da()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_adagrad_da_with(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
    options: ApplyAdagradDAOptions,
) -> Output {
    var.graph()
        .op("ApplyAdagradDA")
        .input(var)
        .input(gradient_accumulator)
        .input(gradient_squared_accumulator)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(global_step)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_adagrad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdagradV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ApplyAdagradV2Options {
    fn default() -> Self {
        ApplyAdagradV2Options { use_locking: false, update_slots: true }
    }
}

/// `ApplyAdagradV2`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn apply_adagrad_v2(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_adagrad_v2_with(var, accum, lr, epsilon, grad, ApplyAdagradV2Options::default())
}

/// [`apply_adagrad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_adagrad_v2_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyAdagradV2Options,
) -> Output {
    var.graph()
        .op("ApplyAdagradV2")
        .input(var)
        .input(accum)
        .input(lr)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .output()
}

/// The attributes of [`apply_adam_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAdamOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ApplyAdamOptions {
    fn default() -> Self {
        ApplyAdamOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ApplyAdam`: A step of Adam.
#[inline]
#[track_caller]
pub fn apply_adam(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_adam_with(
        var,
        m,
        v,
        beta1_power,
        beta2_power,
        lr,
        beta1,
        beta2,
        epsilon,
        grad,
        ApplyAdamOptions::default(),
    )
}

/// [`apply_adam()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_adam_with(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyAdamOptions,
) -> Output {
    var.graph()
        .op("ApplyAdam")
        .input(var)
        .input(m)
        .input(v)
        .input(beta1_power)
        .input(beta2_power)
        .input(lr)
        .input(beta1)
        .input(beta2)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .output()
}

/// The attributes of [`apply_add_sign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyAddSignOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyAddSignOptions {
    fn default() -> Self {
        ApplyAddSignOptions { use_locking: false }
    }
}

/// `ApplyAddSign`: A step of AddSign.
#[inline]
#[track_caller]
pub fn apply_add_sign(
    var: &Output,
    m: &Output,
    lr: &Output,
    alpha: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
) -> Output {
    apply_add_sign_with(var, m, lr, alpha, sign_decay, beta, grad, ApplyAddSignOptions::default())
}

/// [`apply_add_sign()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_add_sign_with(
    var: &Output,
    m: &Output,
    lr: &Output,
    alpha: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
    options: ApplyAddSignOptions,
) -> Output {
    var.graph()
        .op("ApplyAddSign")
        .input(var)
        .input(m)
        .input(lr)
        .input(alpha)
        .input(sign_decay)
        .input(beta)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_centered_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyCenteredRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyCenteredRMSPropOptions {
    fn default() -> Self {
        ApplyCenteredRMSPropOptions { use_locking: false }
    }
}

/// `ApplyCenteredRMSProp`: A step of RMSProp by the variance of the gradient.
#[inline]
#[track_caller]
pub fn apply_centered_rms_prop(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_centered_rms_prop_with(
        var,
        mg,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        ApplyCenteredRMSPropOptions::default(),
    )
}

/// [`apply_centered_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_centered_rms_prop_with(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyCenteredRMSPropOptions,
) -> Output {
    var.graph()
        .op("ApplyCenteredRMSProp")
        .input(var)
        .input(mg)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_ftrl_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyFtrlOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ApplyFtrlOptions {
    fn default() -> Self {
        ApplyFtrlOptions { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ApplyFtrl`: A step of following the regularized leader.
#[inline]
#[track_caller]
pub fn apply_ftrl(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
) -> Output {
    apply_ftrl_with(var, accum, linear, grad, lr, l1, l2, lr_power, ApplyFtrlOptions::default())
}

/// [`apply_ftrl()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_ftrl_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
    options: ApplyFtrlOptions,
) -> Output {
    var.graph()
        .op("ApplyFtrl")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .output()
}

/// The attributes of [`apply_ftrl_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyFtrlV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ApplyFtrlV2Options {
    fn default() -> Self {
        ApplyFtrlV2Options { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ApplyFtrlV2`: A step of following the regularized leader, with shrinkage.
#[inline]
#[track_caller]
pub fn apply_ftrl_v2(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
) -> Output {
    apply_ftrl_v2_with(
        var,
        accum,
        linear,
        grad,
        lr,
        l1,
        l2,
        l2_shrinkage,
        lr_power,
        ApplyFtrlV2Options::default(),
    )
}

/// [`apply_ftrl_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_ftrl_v2_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
    options: ApplyFtrlV2Options,
) -> Output {
    var.graph()
        .op("ApplyFtrlV2")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(l2_shrinkage)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .output()
}

/// The attributes of [`apply_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyGradientDescentOptions {
    fn default() -> Self {
        ApplyGradientDescentOptions { use_locking: false }
    }
}

/// `ApplyGradientDescent`: A step of gradient descent.
#[inline]
#[track_caller]
pub fn apply_gradient_descent(var: &Output, alpha: &Output, delta: &Output) -> Output {
    apply_gradient_descent_with(var, alpha, delta, ApplyGradientDescentOptions::default())
}

/// [`apply_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    delta: &Output,
    options: ApplyGradientDescentOptions,
) -> Output {
    var.graph()
        .op("ApplyGradientDescent")
        .input(var)
        .input(alpha)
        .input(delta)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ApplyMomentumOptions {
    fn default() -> Self {
        ApplyMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ApplyMomentum`: A step of gradient descent with momentum.
#[inline]
#[track_caller]
pub fn apply_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
) -> Output {
    apply_momentum_with(var, accum, lr, grad, momentum, ApplyMomentumOptions::default())
}

/// [`apply_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
    options: ApplyMomentumOptions,
) -> Output {
    var.graph()
        .op("ApplyMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .output()
}

/// The attributes of [`apply_power_sign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyPowerSignOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyPowerSignOptions {
    fn default() -> Self {
        ApplyPowerSignOptions { use_locking: false }
    }
}

/// `ApplyPowerSign`: A step of PowerSign.
#[inline]
#[track_caller]
pub fn apply_power_sign(
    var: &Output,
    m: &Output,
    lr: &Output,
    logbase: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
) -> Output {
    apply_power_sign_with(
        var,
        m,
        lr,
        logbase,
        sign_decay,
        beta,
        grad,
        ApplyPowerSignOptions::default(),
    )
}

/// [`apply_power_sign()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_power_sign_with(
    var: &Output,
    m: &Output,
    lr: &Output,
    logbase: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
    options: ApplyPowerSignOptions,
) -> Output {
    var.graph()
        .op("ApplyPowerSign")
        .input(var)
        .input(m)
        .input(lr)
        .input(logbase)
        .input(sign_decay)
        .input(beta)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_proximal_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyProximalAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyProximalAdagradOptions {
    fn default() -> Self {
        ApplyProximalAdagradOptions { use_locking: false }
    }
}

/// `ApplyProximalAdagrad`: A step of Adagrad that shrinks the variable by L1 and L2 norms.
#[inline]
#[track_caller]
pub fn apply_proximal_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
) -> Output {
    apply_proximal_adagrad_with(
        var,
        accum,
        lr,
        l1,
        l2,
        grad,
        ApplyProximalAdagradOptions::default(),
    )
}

/// [`apply_proximal_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_proximal_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    options: ApplyProximalAdagradOptions,
) -> Output {
    var.graph()
        .op("ApplyProximalAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_proximal_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyProximalGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyProximalGradientDescentOptions {
    fn default() -> Self {
        ApplyProximalGradientDescentOptions { use_locking: false }
    }
}

/// `ApplyProximalGradientDescent`: A step of gradient descent that shrinks the variable by L1 and
/// L2 norms.
#[inline]
#[track_caller]
pub fn apply_proximal_gradient_descent(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    delta: &Output,
) -> Output {
    apply_proximal_gradient_descent_with(
        var,
        alpha,
        l1,
        l2,
        delta,
        ApplyProximalGradientDescentOptions::default(),
    )
}

/// [`apply_proximal_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_proximal_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    delta: &Output,
    options: ApplyProximalGradientDescentOptions,
) -> Output {
    var.graph()
        .op("ApplyProximalGradientDescent")
        .input(var)
        .input(alpha)
        .input(l1)
        .input(l2)
        .input(delta)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`apply_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ApplyRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ApplyRMSPropOptions {
    fn default() -> Self {
        ApplyRMSPropOptions { use_locking: false }
    }
}

/// `ApplyRMSProp`: A step of RMSProp.
#[inline]
#[track_caller]
pub fn apply_rms_prop(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Output {
    apply_rms_prop_with(
        var,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        ApplyRMSPropOptions::default(),
    )
}

/// [`apply_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn apply_rms_prop_with(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ApplyRMSPropOptions,
) -> Output {
    var.graph()
        .op("ApplyRMSProp")
        .input(var)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`assign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AssignOptions {
    /// `validate_shape`: bool, `true` by default.
    pub validate_shape: bool,
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for AssignOptions {
    fn default() -> Self {
        AssignOptions { validate_shape: true, use_locking: true }
    }
}

/// `Assign`: Replaces the value of a variable.
#[inline]
#[track_caller]
pub fn assign(ref_: &Output, value: &Output) -> Output {
    assign_with(ref_, value, AssignOptions::default())
}

/// [`assign()`] with other attributes.
#[inline]
#[track_caller]
pub fn assign_with(ref_: &Output, value: &Output, options: AssignOptions) -> Output {
    ref_.graph()
        .op("Assign")
        .input(ref_)
        .input(value)
        .attr("validate_shape", options.validate_shape)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`assign_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AssignAddOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for AssignAddOptions {
    fn default() -> Self {
        AssignAddOptions { use_locking: false }
    }
}

/// `AssignAdd`: Adds to a variable.
#[inline]
#[track_caller]
pub fn assign_add(ref_: &Output, value: &Output) -> Output {
    assign_add_with(ref_, value, AssignAddOptions::default())
}

/// [`assign_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn assign_add_with(ref_: &Output, value: &Output, options: AssignAddOptions) -> Output {
    ref_.graph()
        .op("AssignAdd")
        .input(ref_)
        .input(value)
        .attr("use_locking", options.use_locking)
        .output()
}

/// `AssignAddVariableOp`: Adds to a variable.
#[inline]
#[track_caller]
pub fn assign_add_variable_op(resource: &Output, value: &Output) -> Operation {
    resource.graph().op("AssignAddVariableOp").input(resource).input(value).operation()
}

/// The attributes of [`assign_sub_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AssignSubOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for AssignSubOptions {
    fn default() -> Self {
        AssignSubOptions { use_locking: false }
    }
}

/// `AssignSub`: Subtracts from a variable.
#[inline]
#[track_caller]
pub fn assign_sub(ref_: &Output, value: &Output) -> Output {
    assign_sub_with(ref_, value, AssignSubOptions::default())
}

/// [`assign_sub()`] with other attributes.
#[inline]
#[track_caller]
pub fn assign_sub_with(ref_: &Output, value: &Output, options: AssignSubOptions) -> Output {
    ref_.graph()
        .op("AssignSub")
        .input(ref_)
        .input(value)
        .attr("use_locking", options.use_locking)
        .output()
}

/// `AssignSubVariableOp`: Subtracts from a variable.
#[inline]
#[track_caller]
pub fn assign_sub_variable_op(resource: &Output, value: &Output) -> Operation {
    resource.graph().op("AssignSubVariableOp").input(resource).input(value).operation()
}

/// The attributes of [`assign_variable_op_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct AssignVariableOpOptions {
    /// `validate_shape`: bool, `false` by default.
    pub validate_shape: bool,
}

impl Default for AssignVariableOpOptions {
    fn default() -> Self {
        AssignVariableOpOptions { validate_shape: false }
    }
}

/// `AssignVariableOp`: Gives a variable a value, and makes it if it is not there.
#[inline]
#[track_caller]
pub fn assign_variable_op(resource: &Output, value: &Output) -> Operation {
    assign_variable_op_with(resource, value, AssignVariableOpOptions::default())
}

/// [`assign_variable_op()`] with other attributes.
#[inline]
#[track_caller]
pub fn assign_variable_op_with(
    resource: &Output,
    value: &Output,
    options: AssignVariableOpOptions,
) -> Operation {
    resource
        .graph()
        .op("AssignVariableOp")
        .input(resource)
        .input(value)
        .attr("validate_shape", options.validate_shape)
        .operation()
}

/// `CountUpTo`: The value of a scalar variable, which is one more then, as long as it is below a
/// limit.
#[inline]
#[track_caller]
pub fn count_up_to(ref_: &Output, limit: i64) -> Output {
    ref_.graph().op("CountUpTo").input(ref_).attr("limit", limit).output()
}

/// `DeleteSessionTensor`: Forgets the tensor that a handle names.
#[inline]
#[track_caller]
pub fn delete_session_tensor(handle: &Output) -> Operation {
    handle.graph().op("DeleteSessionTensor").input(handle).operation()
}

/// The attributes of [`destroy_resource_op_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct DestroyResourceOpOptions {
    /// `ignore_lookup_error`: bool, `true` by default.
    pub ignore_lookup_error: bool,
}

impl Default for DestroyResourceOpOptions {
    fn default() -> Self {
        DestroyResourceOpOptions { ignore_lookup_error: true }
    }
}

/// `DestroyResourceOp`: Deletes a resource.
#[inline]
#[track_caller]
pub fn destroy_resource_op(resource: &Output) -> Operation {
    destroy_resource_op_with(resource, DestroyResourceOpOptions::default())
}

/// [`destroy_resource_op()`] with other attributes.
#[inline]
#[track_caller]
pub fn destroy_resource_op_with(resource: &Output, options: DestroyResourceOpOptions) -> Operation {
    resource
        .graph()
        .op("DestroyResourceOp")
        .input(resource)
        .attr("ignore_lookup_error", options.ignore_lookup_error)
        .operation()
}

/// `DestroyTemporaryVariable`: The last value of a temporary variable, which is gone then.
#[inline]
#[track_caller]
pub fn destroy_temporary_variable(ref_: &Output, var_name: &str) -> Output {
    ref_.graph().op("DestroyTemporaryVariable").input(ref_).attr("var_name", var_name).output()
}

/// `DisableCopyOnRead`: Nothing: reads never copy here.
#[inline]
#[track_caller]
pub fn disable_copy_on_read(resource: &Output) -> Operation {
    resource.graph().op("DisableCopyOnRead").input(resource).operation()
}

/// `GetSessionHandle`: Keeps a tensor for later steps; the handle names it.
#[inline]
#[track_caller]
pub fn get_session_handle(value: &Output) -> Output {
    value.graph().op("GetSessionHandle").input(value).output()
}

/// `GetSessionHandleV2`: Keeps a tensor for later steps; the handle names it.
#[inline]
#[track_caller]
pub fn get_session_handle_v2(value: &Output) -> Output {
    value.graph().op("GetSessionHandleV2").input(value).output()
}

/// `GetSessionTensor`: The tensor that a handle names.
#[inline]
#[track_caller]
pub fn get_session_tensor(handle: &Output, dtype: DType) -> Output {
    handle.graph().op("GetSessionTensor").input(handle).attr("dtype", dtype).output()
}

/// `IsResourceHandleRefCounting`: Whether a handle keeps its resource alive: never here, since
/// handles are names.
#[inline]
#[track_caller]
pub fn is_resource_handle_ref_counting(handle: &Output) -> Output {
    handle.graph().op("IsResourceHandleRefCounting").input(handle).output()
}

/// `IsVariableInitialized`: Whether a variable has a value.
#[inline]
#[track_caller]
pub fn is_variable_initialized(ref_: &Output) -> Output {
    ref_.graph().op("IsVariableInitialized").input(ref_).output()
}

/// `ReadVariableOp`: The value of a variable, which later updates do not change.
#[inline]
#[track_caller]
pub fn read_variable_op(resource: &Output, dtype: DType) -> Output {
    resource.graph().op("ReadVariableOp").input(resource).attr("dtype", dtype).output()
}

/// The attributes of [`resource_apply_ada_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdaMaxOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyAdaMaxOptions {
    fn default() -> Self {
        ResourceApplyAdaMaxOptions { use_locking: false }
    }
}

/// `ResourceApplyAdaMax`: A step of AdaMax.
#[inline]
#[track_caller]
pub fn resource_apply_ada_max(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_ada_max_with(
        var,
        m,
        v,
        beta1_power,
        lr,
        beta1,
        beta2,
        epsilon,
        grad,
        ResourceApplyAdaMaxOptions::default(),
    )
}

/// [`resource_apply_ada_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_ada_max_with(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyAdaMaxOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdaMax")
        .input(var)
        .input(m)
        .input(v)
        .input(beta1_power)
        .input(lr)
        .input(beta1)
        .input(beta2)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_adadelta_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdadeltaOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyAdadeltaOptions {
    fn default() -> Self {
        ResourceApplyAdadeltaOptions { use_locking: false }
    }
}

/// `ResourceApplyAdadelta`: A step of Adadelta.
#[inline]
#[track_caller]
pub fn resource_apply_adadelta(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_adadelta_with(
        var,
        accum,
        accum_update,
        lr,
        rho,
        epsilon,
        grad,
        ResourceApplyAdadeltaOptions::default(),
    )
}

/// [`resource_apply_adadelta()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adadelta_with(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyAdadeltaOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdadelta")
        .input(var)
        .input(accum)
        .input(accum_update)
        .input(lr)
        .input(rho)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ResourceApplyAdagradOptions {
    fn default() -> Self {
        ResourceApplyAdagradOptions { use_locking: false, update_slots: true }
    }
}

/// `ResourceApplyAdagrad`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_adagrad_with(var, accum, lr, grad, ResourceApplyAdagradOptions::default())
}

/// [`resource_apply_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    options: ResourceApplyAdagradOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .operation()
}

/// The attributes of [`resource_apply_adagrad_da_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdagradDAOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyAdagradDAOptions {
    fn default() -> Self {
        ResourceApplyAdagradDAOptions { use_locking: false }
    }
}

/// `ResourceApplyAdagradDA`: A step of Adagrad with dual averaging.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad_da(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
) -> Operation {
    resource_apply_adagrad_da_with(
        var,
        gradient_accumulator,
        gradient_squared_accumulator,
        grad,
        lr,
        l1,
        l2,
        global_step,
        ResourceApplyAdagradDAOptions::default(),
    )
}

/// [`resource_apply_adagrad_da()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad_da_with(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
    options: ResourceApplyAdagradDAOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdagradDA")
        .input(var)
        .input(gradient_accumulator)
        .input(gradient_squared_accumulator)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(global_step)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_adagrad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdagradV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ResourceApplyAdagradV2Options {
    fn default() -> Self {
        ResourceApplyAdagradV2Options { use_locking: false, update_slots: true }
    }
}

/// `ResourceApplyAdagradV2`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad_v2(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_adagrad_v2_with(
        var,
        accum,
        lr,
        epsilon,
        grad,
        ResourceApplyAdagradV2Options::default(),
    )
}

/// [`resource_apply_adagrad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adagrad_v2_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyAdagradV2Options,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdagradV2")
        .input(var)
        .input(accum)
        .input(lr)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .operation()
}

/// The attributes of [`resource_apply_adam_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdamOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ResourceApplyAdamOptions {
    fn default() -> Self {
        ResourceApplyAdamOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ResourceApplyAdam`: A step of Adam.
#[inline]
#[track_caller]
pub fn resource_apply_adam(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_adam_with(
        var,
        m,
        v,
        beta1_power,
        beta2_power,
        lr,
        beta1,
        beta2,
        epsilon,
        grad,
        ResourceApplyAdamOptions::default(),
    )
}

/// [`resource_apply_adam()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adam_with(
    var: &Output,
    m: &Output,
    v: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyAdamOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdam")
        .input(var)
        .input(m)
        .input(v)
        .input(beta1_power)
        .input(beta2_power)
        .input(lr)
        .input(beta1)
        .input(beta2)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .operation()
}

/// The attributes of [`resource_apply_adam_with_amsgrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAdamWithAmsgradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyAdamWithAmsgradOptions {
    fn default() -> Self {
        ResourceApplyAdamWithAmsgradOptions { use_locking: false }
    }
}

/// `ResourceApplyAdamWithAmsgrad`: A step of Adam by the largest second moment there was.
#[inline]
#[track_caller]
pub fn resource_apply_adam_with_amsgrad(
    var: &Output,
    m: &Output,
    v: &Output,
    vhat: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_adam_with_amsgrad_with(
        var,
        m,
        v,
        vhat,
        beta1_power,
        beta2_power,
        lr,
        beta1,
        beta2,
        epsilon,
        grad,
        ResourceApplyAdamWithAmsgradOptions::default(),
    )
}

/// [`resource_apply_adam_with_amsgrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_adam_with_amsgrad_with(
    var: &Output,
    m: &Output,
    v: &Output,
    vhat: &Output,
    beta1_power: &Output,
    beta2_power: &Output,
    lr: &Output,
    beta1: &Output,
    beta2: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyAdamWithAmsgradOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAdamWithAmsgrad")
        .input(var)
        .input(m)
        .input(v)
        .input(vhat)
        .input(beta1_power)
        .input(beta2_power)
        .input(lr)
        .input(beta1)
        .input(beta2)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_add_sign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyAddSignOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyAddSignOptions {
    fn default() -> Self {
        ResourceApplyAddSignOptions { use_locking: false }
    }
}

/// `ResourceApplyAddSign`: A step of AddSign.
#[inline]
#[track_caller]
pub fn resource_apply_add_sign(
    var: &Output,
    m: &Output,
    lr: &Output,
    alpha: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_add_sign_with(
        var,
        m,
        lr,
        alpha,
        sign_decay,
        beta,
        grad,
        ResourceApplyAddSignOptions::default(),
    )
}

/// [`resource_apply_add_sign()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_add_sign_with(
    var: &Output,
    m: &Output,
    lr: &Output,
    alpha: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
    options: ResourceApplyAddSignOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyAddSign")
        .input(var)
        .input(m)
        .input(lr)
        .input(alpha)
        .input(sign_decay)
        .input(beta)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_centered_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyCenteredRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyCenteredRMSPropOptions {
    fn default() -> Self {
        ResourceApplyCenteredRMSPropOptions { use_locking: false }
    }
}

/// `ResourceApplyCenteredRMSProp`: A step of RMSProp by the variance of the gradient.
#[inline]
#[track_caller]
pub fn resource_apply_centered_rms_prop(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_centered_rms_prop_with(
        var,
        mg,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        ResourceApplyCenteredRMSPropOptions::default(),
    )
}

/// [`resource_apply_centered_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_centered_rms_prop_with(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyCenteredRMSPropOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyCenteredRMSProp")
        .input(var)
        .input(mg)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_ftrl_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyFtrlOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ResourceApplyFtrlOptions {
    fn default() -> Self {
        ResourceApplyFtrlOptions { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ResourceApplyFtrl`: A step of following the regularized leader.
#[inline]
#[track_caller]
pub fn resource_apply_ftrl(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
) -> Operation {
    resource_apply_ftrl_with(
        var,
        accum,
        linear,
        grad,
        lr,
        l1,
        l2,
        lr_power,
        ResourceApplyFtrlOptions::default(),
    )
}

/// [`resource_apply_ftrl()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_ftrl_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
    options: ResourceApplyFtrlOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyFtrl")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .operation()
}

/// The attributes of [`resource_apply_ftrl_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyFtrlV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ResourceApplyFtrlV2Options {
    fn default() -> Self {
        ResourceApplyFtrlV2Options { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ResourceApplyFtrlV2`: A step of following the regularized leader, with shrinkage.
#[inline]
#[track_caller]
pub fn resource_apply_ftrl_v2(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
) -> Operation {
    resource_apply_ftrl_v2_with(
        var,
        accum,
        linear,
        grad,
        lr,
        l1,
        l2,
        l2_shrinkage,
        lr_power,
        ResourceApplyFtrlV2Options::default(),
    )
}

/// [`resource_apply_ftrl_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_ftrl_v2_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
    options: ResourceApplyFtrlV2Options,
) -> Operation {
    var.graph()
        .op("ResourceApplyFtrlV2")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(l2_shrinkage)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .operation()
}

/// The attributes of [`resource_apply_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyGradientDescentOptions {
    fn default() -> Self {
        ResourceApplyGradientDescentOptions { use_locking: false }
    }
}

/// `ResourceApplyGradientDescent`: A step of gradient descent.
#[inline]
#[track_caller]
pub fn resource_apply_gradient_descent(var: &Output, alpha: &Output, delta: &Output) -> Operation {
    resource_apply_gradient_descent_with(
        var,
        alpha,
        delta,
        ResourceApplyGradientDescentOptions::default(),
    )
}

/// [`resource_apply_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    delta: &Output,
    options: ResourceApplyGradientDescentOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyGradientDescent")
        .input(var)
        .input(alpha)
        .input(delta)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_keras_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyKerasMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ResourceApplyKerasMomentumOptions {
    fn default() -> Self {
        ResourceApplyKerasMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ResourceApplyKerasMomentum`: A step of gradient descent with momentum, where the accumulator
/// holds steps.
#[inline]
#[track_caller]
pub fn resource_apply_keras_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
) -> Operation {
    resource_apply_keras_momentum_with(
        var,
        accum,
        lr,
        grad,
        momentum,
        ResourceApplyKerasMomentumOptions::default(),
    )
}

/// [`resource_apply_keras_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_keras_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
    options: ResourceApplyKerasMomentumOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyKerasMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .operation()
}

/// The attributes of [`resource_apply_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ResourceApplyMomentumOptions {
    fn default() -> Self {
        ResourceApplyMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ResourceApplyMomentum`: A step of gradient descent with momentum.
#[inline]
#[track_caller]
pub fn resource_apply_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
) -> Operation {
    resource_apply_momentum_with(
        var,
        accum,
        lr,
        grad,
        momentum,
        ResourceApplyMomentumOptions::default(),
    )
}

/// [`resource_apply_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    momentum: &Output,
    options: ResourceApplyMomentumOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .operation()
}

/// The attributes of [`resource_apply_power_sign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyPowerSignOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyPowerSignOptions {
    fn default() -> Self {
        ResourceApplyPowerSignOptions { use_locking: false }
    }
}

/// `ResourceApplyPowerSign`: A step of PowerSign.
#[inline]
#[track_caller]
pub fn resource_apply_power_sign(
    var: &Output,
    m: &Output,
    lr: &Output,
    logbase: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_power_sign_with(
        var,
        m,
        lr,
        logbase,
        sign_decay,
        beta,
        grad,
        ResourceApplyPowerSignOptions::default(),
    )
}

/// [`resource_apply_power_sign()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_power_sign_with(
    var: &Output,
    m: &Output,
    lr: &Output,
    logbase: &Output,
    sign_decay: &Output,
    beta: &Output,
    grad: &Output,
    options: ResourceApplyPowerSignOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyPowerSign")
        .input(var)
        .input(m)
        .input(lr)
        .input(logbase)
        .input(sign_decay)
        .input(beta)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_proximal_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyProximalAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyProximalAdagradOptions {
    fn default() -> Self {
        ResourceApplyProximalAdagradOptions { use_locking: false }
    }
}

/// `ResourceApplyProximalAdagrad`: A step of Adagrad that shrinks the variable by L1 and L2 norms.
#[inline]
#[track_caller]
pub fn resource_apply_proximal_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_proximal_adagrad_with(
        var,
        accum,
        lr,
        l1,
        l2,
        grad,
        ResourceApplyProximalAdagradOptions::default(),
    )
}

/// [`resource_apply_proximal_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_proximal_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    options: ResourceApplyProximalAdagradOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyProximalAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_proximal_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyProximalGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyProximalGradientDescentOptions {
    fn default() -> Self {
        ResourceApplyProximalGradientDescentOptions { use_locking: false }
    }
}

/// `ResourceApplyProximalGradientDescent`: A step of gradient descent that shrinks the variable by
/// L1 and L2 norms.
#[inline]
#[track_caller]
pub fn resource_apply_proximal_gradient_descent(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    delta: &Output,
) -> Operation {
    resource_apply_proximal_gradient_descent_with(
        var,
        alpha,
        l1,
        l2,
        delta,
        ResourceApplyProximalGradientDescentOptions::default(),
    )
}

/// [`resource_apply_proximal_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_proximal_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    delta: &Output,
    options: ResourceApplyProximalGradientDescentOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyProximalGradientDescent")
        .input(var)
        .input(alpha)
        .input(l1)
        .input(l2)
        .input(delta)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_apply_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceApplyRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceApplyRMSPropOptions {
    fn default() -> Self {
        ResourceApplyRMSPropOptions { use_locking: false }
    }
}

/// `ResourceApplyRMSProp`: A step of RMSProp.
#[inline]
#[track_caller]
pub fn resource_apply_rms_prop(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
) -> Operation {
    resource_apply_rms_prop_with(
        var,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        ResourceApplyRMSPropOptions::default(),
    )
}

/// [`resource_apply_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_apply_rms_prop_with(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    options: ResourceApplyRMSPropOptions,
) -> Operation {
    var.graph()
        .op("ResourceApplyRMSProp")
        .input(var)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// `ResourceCountUpTo`: The value of a scalar variable, which is one more then, as long as it is
/// below a limit.
#[inline]
#[track_caller]
pub fn resource_count_up_to(resource: &Output, limit: i64, t: DType) -> Output {
    resource
        .graph()
        .op("ResourceCountUpTo")
        .input(resource)
        .attr("limit", limit)
        .attr("T", t)
        .output()
}

/// The attributes of [`resource_gather_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceGatherOptions {
    /// `batch_dims`: int, `0` by default.
    pub batch_dims: i64,
    /// `validate_indices`: bool, `true` by default.
    pub validate_indices: bool,
}

impl Default for ResourceGatherOptions {
    fn default() -> Self {
        ResourceGatherOptions { batch_dims: 0, validate_indices: true }
    }
}

/// `ResourceGather`: Rows of a variable.
#[inline]
#[track_caller]
pub fn resource_gather(resource: &Output, indices: &Output, dtype: DType) -> Output {
    resource_gather_with(resource, indices, dtype, ResourceGatherOptions::default())
}

/// [`resource_gather()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_gather_with(
    resource: &Output,
    indices: &Output,
    dtype: DType,
    options: ResourceGatherOptions,
) -> Output {
    resource
        .graph()
        .op("ResourceGather")
        .input(resource)
        .input(indices)
        .attr("dtype", dtype)
        .attr("batch_dims", options.batch_dims)
        .attr("validate_indices", options.validate_indices)
        .output()
}

/// `ResourceGatherNd`: Slices of a variable.
#[inline]
#[track_caller]
pub fn resource_gather_nd(resource: &Output, indices: &Output, dtype: DType) -> Output {
    resource
        .graph()
        .op("ResourceGatherNd")
        .input(resource)
        .input(indices)
        .attr("dtype", dtype)
        .output()
}

/// `ResourceScatterAdd`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_add(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterAdd")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// `ResourceScatterDiv`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_div(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterDiv")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// `ResourceScatterMax`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_max(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterMax")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// `ResourceScatterMin`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_min(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterMin")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// `ResourceScatterMul`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_mul(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterMul")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// The attributes of [`resource_scatter_nd_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceScatterNdAddOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ResourceScatterNdAddOptions {
    fn default() -> Self {
        ResourceScatterNdAddOptions { use_locking: true }
    }
}

/// `ResourceScatterNdAdd`: Combines slices of a variable with updates; tuples of indices name the
/// slices.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_add(ref_: &Output, indices: &Output, updates: &Output) -> Operation {
    resource_scatter_nd_add_with(ref_, indices, updates, ResourceScatterNdAddOptions::default())
}

/// [`resource_scatter_nd_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_add_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ResourceScatterNdAddOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceScatterNdAdd")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_scatter_nd_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceScatterNdMaxOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ResourceScatterNdMaxOptions {
    fn default() -> Self {
        ResourceScatterNdMaxOptions { use_locking: true }
    }
}

/// `ResourceScatterNdMax`: Combines slices of a variable with updates; tuples of indices name the
/// slices.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_max(ref_: &Output, indices: &Output, updates: &Output) -> Operation {
    resource_scatter_nd_max_with(ref_, indices, updates, ResourceScatterNdMaxOptions::default())
}

/// [`resource_scatter_nd_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_max_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ResourceScatterNdMaxOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceScatterNdMax")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_scatter_nd_min_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceScatterNdMinOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ResourceScatterNdMinOptions {
    fn default() -> Self {
        ResourceScatterNdMinOptions { use_locking: true }
    }
}

/// `ResourceScatterNdMin`: Combines slices of a variable with updates; tuples of indices name the
/// slices.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_min(ref_: &Output, indices: &Output, updates: &Output) -> Operation {
    resource_scatter_nd_min_with(ref_, indices, updates, ResourceScatterNdMinOptions::default())
}

/// [`resource_scatter_nd_min()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_min_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ResourceScatterNdMinOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceScatterNdMin")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_scatter_nd_sub_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceScatterNdSubOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ResourceScatterNdSubOptions {
    fn default() -> Self {
        ResourceScatterNdSubOptions { use_locking: true }
    }
}

/// `ResourceScatterNdSub`: Combines slices of a variable with updates; tuples of indices name the
/// slices.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_sub(ref_: &Output, indices: &Output, updates: &Output) -> Operation {
    resource_scatter_nd_sub_with(ref_, indices, updates, ResourceScatterNdSubOptions::default())
}

/// [`resource_scatter_nd_sub()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_sub_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ResourceScatterNdSubOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceScatterNdSub")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_scatter_nd_update_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceScatterNdUpdateOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ResourceScatterNdUpdateOptions {
    fn default() -> Self {
        ResourceScatterNdUpdateOptions { use_locking: true }
    }
}

/// `ResourceScatterNdUpdate`: Combines slices of a variable with updates; tuples of indices name
/// the slices.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_update(ref_: &Output, indices: &Output, updates: &Output) -> Operation {
    resource_scatter_nd_update_with(
        ref_,
        indices,
        updates,
        ResourceScatterNdUpdateOptions::default(),
    )
}

/// [`resource_scatter_nd_update()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_scatter_nd_update_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ResourceScatterNdUpdateOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceScatterNdUpdate")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// `ResourceScatterSub`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_sub(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterSub")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// `ResourceScatterUpdate`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn resource_scatter_update(resource: &Output, indices: &Output, updates: &Output) -> Operation {
    resource
        .graph()
        .op("ResourceScatterUpdate")
        .input(resource)
        .input(indices)
        .input(updates)
        .operation()
}

/// The attributes of [`resource_sparse_apply_adadelta_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyAdadeltaOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyAdadeltaOptions {
    fn default() -> Self {
        ResourceSparseApplyAdadeltaOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyAdadelta`: A step of Adadelta.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adadelta(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_adadelta_with(
        var,
        accum,
        accum_update,
        lr,
        rho,
        epsilon,
        grad,
        indices,
        ResourceSparseApplyAdadeltaOptions::default(),
    )
}

/// [`resource_sparse_apply_adadelta()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adadelta_with(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyAdadeltaOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyAdadelta")
        .input(var)
        .input(accum)
        .input(accum_update)
        .input(lr)
        .input(rho)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_sparse_apply_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ResourceSparseApplyAdagradOptions {
    fn default() -> Self {
        ResourceSparseApplyAdagradOptions { use_locking: false, update_slots: true }
    }
}

/// `ResourceSparseApplyAdagrad`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_adagrad_with(
        var,
        accum,
        lr,
        grad,
        indices,
        ResourceSparseApplyAdagradOptions::default(),
    )
}

/// [`resource_sparse_apply_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyAdagradOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .operation()
}

/// The attributes of [`resource_sparse_apply_adagrad_da_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyAdagradDAOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyAdagradDAOptions {
    fn default() -> Self {
        ResourceSparseApplyAdagradDAOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyAdagradDA`: A step of Adagrad with dual averaging.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad_da(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
) -> Operation {
    resource_sparse_apply_adagrad_da_with(
        var,
        gradient_accumulator,
        gradient_squared_accumulator,
        grad,
        indices,
        lr,
        l1,
        l2,
        global_step,
        ResourceSparseApplyAdagradDAOptions::default(),
    )
}

/// [`resource_sparse_apply_adagrad_da()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad_da_with(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
    options: ResourceSparseApplyAdagradDAOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyAdagradDA")
        .input(var)
        .input(gradient_accumulator)
        .input(gradient_squared_accumulator)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(global_step)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_sparse_apply_adagrad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyAdagradV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for ResourceSparseApplyAdagradV2Options {
    fn default() -> Self {
        ResourceSparseApplyAdagradV2Options { use_locking: false, update_slots: true }
    }
}

/// `ResourceSparseApplyAdagradV2`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad_v2(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_adagrad_v2_with(
        var,
        accum,
        lr,
        epsilon,
        grad,
        indices,
        ResourceSparseApplyAdagradV2Options::default(),
    )
}

/// [`resource_sparse_apply_adagrad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_adagrad_v2_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyAdagradV2Options,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyAdagradV2")
        .input(var)
        .input(accum)
        .input(lr)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .operation()
}

/// The attributes of [`resource_sparse_apply_centered_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyCenteredRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyCenteredRMSPropOptions {
    fn default() -> Self {
        ResourceSparseApplyCenteredRMSPropOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyCenteredRMSProp`: A step of RMSProp by the variance of the gradient.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_centered_rms_prop(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_centered_rms_prop_with(
        var,
        mg,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        indices,
        ResourceSparseApplyCenteredRMSPropOptions::default(),
    )
}

/// [`resource_sparse_apply_centered_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_centered_rms_prop_with(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyCenteredRMSPropOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyCenteredRMSProp")
        .input(var)
        .input(mg)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_sparse_apply_ftrl_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyFtrlOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ResourceSparseApplyFtrlOptions {
    fn default() -> Self {
        ResourceSparseApplyFtrlOptions { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ResourceSparseApplyFtrl`: A step of following the regularized leader.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_ftrl(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
) -> Operation {
    resource_sparse_apply_ftrl_with(
        var,
        accum,
        linear,
        grad,
        indices,
        lr,
        l1,
        l2,
        lr_power,
        ResourceSparseApplyFtrlOptions::default(),
    )
}

/// [`resource_sparse_apply_ftrl()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_ftrl_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
    options: ResourceSparseApplyFtrlOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyFtrl")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .operation()
}

/// The attributes of [`resource_sparse_apply_ftrl_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyFtrlV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for ResourceSparseApplyFtrlV2Options {
    fn default() -> Self {
        ResourceSparseApplyFtrlV2Options { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `ResourceSparseApplyFtrlV2`: A step of following the regularized leader, with shrinkage.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_ftrl_v2(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
) -> Operation {
    resource_sparse_apply_ftrl_v2_with(
        var,
        accum,
        linear,
        grad,
        indices,
        lr,
        l1,
        l2,
        l2_shrinkage,
        lr_power,
        ResourceSparseApplyFtrlV2Options::default(),
    )
}

/// [`resource_sparse_apply_ftrl_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_ftrl_v2_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
    options: ResourceSparseApplyFtrlV2Options,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyFtrlV2")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(l2_shrinkage)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .operation()
}

/// The attributes of [`resource_sparse_apply_keras_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyKerasMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ResourceSparseApplyKerasMomentumOptions {
    fn default() -> Self {
        ResourceSparseApplyKerasMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ResourceSparseApplyKerasMomentum`: A step of gradient descent with momentum, where the
/// accumulator holds steps.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_keras_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
) -> Operation {
    resource_sparse_apply_keras_momentum_with(
        var,
        accum,
        lr,
        grad,
        indices,
        momentum,
        ResourceSparseApplyKerasMomentumOptions::default(),
    )
}

/// [`resource_sparse_apply_keras_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_keras_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
    options: ResourceSparseApplyKerasMomentumOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyKerasMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(indices)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .operation()
}

/// The attributes of [`resource_sparse_apply_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for ResourceSparseApplyMomentumOptions {
    fn default() -> Self {
        ResourceSparseApplyMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `ResourceSparseApplyMomentum`: A step of gradient descent with momentum.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
) -> Operation {
    resource_sparse_apply_momentum_with(
        var,
        accum,
        lr,
        grad,
        indices,
        momentum,
        ResourceSparseApplyMomentumOptions::default(),
    )
}

/// [`resource_sparse_apply_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
    options: ResourceSparseApplyMomentumOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(indices)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .operation()
}

/// The attributes of [`resource_sparse_apply_proximal_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyProximalAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyProximalAdagradOptions {
    fn default() -> Self {
        ResourceSparseApplyProximalAdagradOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyProximalAdagrad`: A step of Adagrad that shrinks the variable by L1 and L2
/// norms.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_proximal_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_proximal_adagrad_with(
        var,
        accum,
        lr,
        l1,
        l2,
        grad,
        indices,
        ResourceSparseApplyProximalAdagradOptions::default(),
    )
}

/// [`resource_sparse_apply_proximal_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_proximal_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyProximalAdagradOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyProximalAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_sparse_apply_proximal_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyProximalGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyProximalGradientDescentOptions {
    fn default() -> Self {
        ResourceSparseApplyProximalGradientDescentOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyProximalGradientDescent`: A step of gradient descent that shrinks the
/// variable by L1 and L2 norms.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_proximal_gradient_descent(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_proximal_gradient_descent_with(
        var,
        alpha,
        l1,
        l2,
        grad,
        indices,
        ResourceSparseApplyProximalGradientDescentOptions::default(),
    )
}

/// [`resource_sparse_apply_proximal_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_proximal_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyProximalGradientDescentOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyProximalGradientDescent")
        .input(var)
        .input(alpha)
        .input(l1)
        .input(l2)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_sparse_apply_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceSparseApplyRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ResourceSparseApplyRMSPropOptions {
    fn default() -> Self {
        ResourceSparseApplyRMSPropOptions { use_locking: false }
    }
}

/// `ResourceSparseApplyRMSProp`: A step of RMSProp.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_rms_prop(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Operation {
    resource_sparse_apply_rms_prop_with(
        var,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        indices,
        ResourceSparseApplyRMSPropOptions::default(),
    )
}

/// [`resource_sparse_apply_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_sparse_apply_rms_prop_with(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: ResourceSparseApplyRMSPropOptions,
) -> Operation {
    var.graph()
        .op("ResourceSparseApplyRMSProp")
        .input(var)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .operation()
}

/// The attributes of [`resource_strided_slice_assign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ResourceStridedSliceAssignOptions {
    /// `begin_mask`: int, `0` by default.
    pub begin_mask: i64,
    /// `end_mask`: int, `0` by default.
    pub end_mask: i64,
    /// `ellipsis_mask`: int, `0` by default.
    pub ellipsis_mask: i64,
    /// `new_axis_mask`: int, `0` by default.
    pub new_axis_mask: i64,
    /// `shrink_axis_mask`: int, `0` by default.
    pub shrink_axis_mask: i64,
}

impl Default for ResourceStridedSliceAssignOptions {
    fn default() -> Self {
        ResourceStridedSliceAssignOptions {
            begin_mask: 0,
            end_mask: 0,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
        }
    }
}

/// `ResourceStridedSliceAssign`: Assigns to a strided slice of a variable.
#[inline]
#[track_caller]
pub fn resource_strided_slice_assign(
    ref_: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
) -> Operation {
    resource_strided_slice_assign_with(
        ref_,
        begin,
        end,
        strides,
        value,
        ResourceStridedSliceAssignOptions::default(),
    )
}

/// [`resource_strided_slice_assign()`] with other attributes.
#[inline]
#[track_caller]
pub fn resource_strided_slice_assign_with(
    ref_: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
    options: ResourceStridedSliceAssignOptions,
) -> Operation {
    ref_.graph()
        .op("ResourceStridedSliceAssign")
        .input(ref_)
        .input(begin)
        .input(end)
        .input(strides)
        .input(value)
        .attr("begin_mask", options.begin_mask)
        .attr("end_mask", options.end_mask)
        .attr("ellipsis_mask", options.ellipsis_mask)
        .attr("new_axis_mask", options.new_axis_mask)
        .attr("shrink_axis_mask", options.shrink_axis_mask)
        .operation()
}

/// The attributes of [`scatter_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterAddOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterAddOptions {
    fn default() -> Self {
        ScatterAddOptions { use_locking: false }
    }
}

/// `ScatterAdd`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_add(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_add_with(ref_, indices, updates, ScatterAddOptions::default())
}

/// [`scatter_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_add_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterAddOptions,
) -> Output {
    ref_.graph()
        .op("ScatterAdd")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_div_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterDivOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterDivOptions {
    fn default() -> Self {
        ScatterDivOptions { use_locking: false }
    }
}

/// `ScatterDiv`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_div(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_div_with(ref_, indices, updates, ScatterDivOptions::default())
}

/// [`scatter_div()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_div_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterDivOptions,
) -> Output {
    ref_.graph()
        .op("ScatterDiv")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterMaxOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterMaxOptions {
    fn default() -> Self {
        ScatterMaxOptions { use_locking: false }
    }
}

/// `ScatterMax`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_max(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_max_with(ref_, indices, updates, ScatterMaxOptions::default())
}

/// [`scatter_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_max_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterMaxOptions,
) -> Output {
    ref_.graph()
        .op("ScatterMax")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_min_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterMinOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterMinOptions {
    fn default() -> Self {
        ScatterMinOptions { use_locking: false }
    }
}

/// `ScatterMin`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_min(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_min_with(ref_, indices, updates, ScatterMinOptions::default())
}

/// [`scatter_min()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_min_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterMinOptions,
) -> Output {
    ref_.graph()
        .op("ScatterMin")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_mul_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterMulOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterMulOptions {
    fn default() -> Self {
        ScatterMulOptions { use_locking: false }
    }
}

/// `ScatterMul`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_mul(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_mul_with(ref_, indices, updates, ScatterMulOptions::default())
}

/// [`scatter_mul()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_mul_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterMulOptions,
) -> Output {
    ref_.graph()
        .op("ScatterMul")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_nd_add_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterNdAddOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterNdAddOptions {
    fn default() -> Self {
        ScatterNdAddOptions { use_locking: false }
    }
}

/// `ScatterNdAdd`: Combines slices of a variable with updates; tuples of indices name the slices.
#[inline]
#[track_caller]
pub fn scatter_nd_add(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_nd_add_with(ref_, indices, updates, ScatterNdAddOptions::default())
}

/// [`scatter_nd_add()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_nd_add_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterNdAddOptions,
) -> Output {
    ref_.graph()
        .op("ScatterNdAdd")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_nd_max_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterNdMaxOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterNdMaxOptions {
    fn default() -> Self {
        ScatterNdMaxOptions { use_locking: false }
    }
}

/// `ScatterNdMax`: Combines slices of a variable with updates; tuples of indices name the slices.
#[inline]
#[track_caller]
pub fn scatter_nd_max(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_nd_max_with(ref_, indices, updates, ScatterNdMaxOptions::default())
}

/// [`scatter_nd_max()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_nd_max_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterNdMaxOptions,
) -> Output {
    ref_.graph()
        .op("ScatterNdMax")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_nd_min_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterNdMinOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterNdMinOptions {
    fn default() -> Self {
        ScatterNdMinOptions { use_locking: false }
    }
}

/// `ScatterNdMin`: Combines slices of a variable with updates; tuples of indices name the slices.
#[inline]
#[track_caller]
pub fn scatter_nd_min(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_nd_min_with(ref_, indices, updates, ScatterNdMinOptions::default())
}

/// [`scatter_nd_min()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_nd_min_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterNdMinOptions,
) -> Output {
    ref_.graph()
        .op("ScatterNdMin")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_nd_sub_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterNdSubOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterNdSubOptions {
    fn default() -> Self {
        ScatterNdSubOptions { use_locking: false }
    }
}

/// `ScatterNdSub`: Combines slices of a variable with updates; tuples of indices name the slices.
#[inline]
#[track_caller]
pub fn scatter_nd_sub(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_nd_sub_with(ref_, indices, updates, ScatterNdSubOptions::default())
}

/// [`scatter_nd_sub()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_nd_sub_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterNdSubOptions,
) -> Output {
    ref_.graph()
        .op("ScatterNdSub")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_nd_update_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterNdUpdateOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ScatterNdUpdateOptions {
    fn default() -> Self {
        ScatterNdUpdateOptions { use_locking: true }
    }
}

/// `ScatterNdUpdate`: Combines slices of a variable with updates; tuples of indices name the
/// slices.
#[inline]
#[track_caller]
pub fn scatter_nd_update(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_nd_update_with(ref_, indices, updates, ScatterNdUpdateOptions::default())
}

/// [`scatter_nd_update()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_nd_update_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterNdUpdateOptions,
) -> Output {
    ref_.graph()
        .op("ScatterNdUpdate")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_sub_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterSubOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for ScatterSubOptions {
    fn default() -> Self {
        ScatterSubOptions { use_locking: false }
    }
}

/// `ScatterSub`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_sub(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_sub_with(ref_, indices, updates, ScatterSubOptions::default())
}

/// [`scatter_sub()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_sub_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterSubOptions,
) -> Output {
    ref_.graph()
        .op("ScatterSub")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`scatter_update_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct ScatterUpdateOptions {
    /// `use_locking`: bool, `true` by default.
    pub use_locking: bool,
}

impl Default for ScatterUpdateOptions {
    fn default() -> Self {
        ScatterUpdateOptions { use_locking: true }
    }
}

/// `ScatterUpdate`: Combines rows of a variable with updates; indices name the rows.
#[inline]
#[track_caller]
pub fn scatter_update(ref_: &Output, indices: &Output, updates: &Output) -> Output {
    scatter_update_with(ref_, indices, updates, ScatterUpdateOptions::default())
}

/// [`scatter_update()`] with other attributes.
#[inline]
#[track_caller]
pub fn scatter_update_with(
    ref_: &Output,
    indices: &Output,
    updates: &Output,
    options: ScatterUpdateOptions,
) -> Output {
    ref_.graph()
        .op("ScatterUpdate")
        .input(ref_)
        .input(indices)
        .input(updates)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sdca_optimizer_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SdcaOptimizerOptions {
    /// `adaptative`: bool, `false` by default.
    pub adaptative: bool,
}

impl Default for SdcaOptimizerOptions {
    fn default() -> Self {
        SdcaOptimizerOptions { adaptative: false }
    }
}

/// `SdcaOptimizer`: A step of stochastic dual coordinate ascent for a linear model.
///
/// Returns (`out_example_state_data`, `out_delta_sparse_weights`, `out_delta_dense_weights`).
#[inline]
#[track_caller]
pub fn sdca_optimizer(
    sparse_example_indices: &[Output],
    sparse_feature_indices: &[Output],
    sparse_feature_values: &[Output],
    dense_features: &[Output],
    example_weights: &Output,
    example_labels: &Output,
    sparse_indices: &[Output],
    sparse_weights: &[Output],
    dense_weights: &[Output],
    example_state_data: &Output,
    loss_type: &str,
    l1: f32,
    l2: f32,
    num_loss_partitions: i64,
    num_inner_iterations: i64,
) -> (Output, Vec<Output>, Vec<Output>) {
    sdca_optimizer_with(
        sparse_example_indices,
        sparse_feature_indices,
        sparse_feature_values,
        dense_features,
        example_weights,
        example_labels,
        sparse_indices,
        sparse_weights,
        dense_weights,
        example_state_data,
        loss_type,
        l1,
        l2,
        num_loss_partitions,
        num_inner_iterations,
        SdcaOptimizerOptions::default(),
    )
}

/// [`sdca_optimizer()`] with other attributes.
#[inline]
#[track_caller]
pub fn sdca_optimizer_with(
    sparse_example_indices: &[Output],
    sparse_feature_indices: &[Output],
    sparse_feature_values: &[Output],
    dense_features: &[Output],
    example_weights: &Output,
    example_labels: &Output,
    sparse_indices: &[Output],
    sparse_weights: &[Output],
    dense_weights: &[Output],
    example_state_data: &Output,
    loss_type: &str,
    l1: f32,
    l2: f32,
    num_loss_partitions: i64,
    num_inner_iterations: i64,
    options: SdcaOptimizerOptions,
) -> (Output, Vec<Output>, Vec<Output>) {
    let mut arguments = example_weights
        .graph()
        .op("SdcaOptimizer")
        .list(sparse_example_indices)
        .list(sparse_feature_indices)
        .list(sparse_feature_values)
        .list(dense_features)
        .input(example_weights)
        .input(example_labels)
        .list(sparse_indices)
        .list(sparse_weights)
        .list(dense_weights)
        .input(example_state_data)
        .attr("loss_type", loss_type)
        .attr("l1", l1)
        .attr("l2", l2)
        .attr("num_loss_partitions", num_loss_partitions)
        .attr("num_inner_iterations", num_inner_iterations)
        .attr("adaptative", options.adaptative)
        .outputs_by_argument();
    let out_example_state_data = arguments.next_output();
    let out_delta_sparse_weights = arguments.next_list();
    let out_delta_dense_weights = arguments.next_list();
    (out_example_state_data, out_delta_sparse_weights, out_delta_dense_weights)
}

/// The attributes of [`sdca_optimizer_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SdcaOptimizerV2Options {
    /// `adaptive`: bool, `false` by default.
    pub adaptive: bool,
}

impl Default for SdcaOptimizerV2Options {
    fn default() -> Self {
        SdcaOptimizerV2Options { adaptive: false }
    }
}

/// `SdcaOptimizerV2`: A step of stochastic dual coordinate ascent for a linear model.
///
/// Returns (`out_example_state_data`, `out_delta_sparse_weights`, `out_delta_dense_weights`).
#[inline]
#[track_caller]
pub fn sdca_optimizer_v2(
    sparse_example_indices: &[Output],
    sparse_feature_indices: &[Output],
    sparse_feature_values: &[Output],
    dense_features: &[Output],
    example_weights: &Output,
    example_labels: &Output,
    sparse_indices: &[Output],
    sparse_weights: &[Output],
    dense_weights: &[Output],
    example_state_data: &Output,
    loss_type: &str,
    l1: f32,
    l2: f32,
    num_loss_partitions: i64,
    num_inner_iterations: i64,
) -> (Output, Vec<Output>, Vec<Output>) {
    sdca_optimizer_v2_with(
        sparse_example_indices,
        sparse_feature_indices,
        sparse_feature_values,
        dense_features,
        example_weights,
        example_labels,
        sparse_indices,
        sparse_weights,
        dense_weights,
        example_state_data,
        loss_type,
        l1,
        l2,
        num_loss_partitions,
        num_inner_iterations,
        SdcaOptimizerV2Options::default(),
    )
}

/// [`sdca_optimizer_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn sdca_optimizer_v2_with(
    sparse_example_indices: &[Output],
    sparse_feature_indices: &[Output],
    sparse_feature_values: &[Output],
    dense_features: &[Output],
    example_weights: &Output,
    example_labels: &Output,
    sparse_indices: &[Output],
    sparse_weights: &[Output],
    dense_weights: &[Output],
    example_state_data: &Output,
    loss_type: &str,
    l1: f32,
    l2: f32,
    num_loss_partitions: i64,
    num_inner_iterations: i64,
    options: SdcaOptimizerV2Options,
) -> (Output, Vec<Output>, Vec<Output>) {
    let mut arguments = example_weights
        .graph()
        .op("SdcaOptimizerV2")
        .list(sparse_example_indices)
        .list(sparse_feature_indices)
        .list(sparse_feature_values)
        .list(dense_features)
        .input(example_weights)
        .input(example_labels)
        .list(sparse_indices)
        .list(sparse_weights)
        .list(dense_weights)
        .input(example_state_data)
        .attr("loss_type", loss_type)
        .attr("l1", l1)
        .attr("l2", l2)
        .attr("num_loss_partitions", num_loss_partitions)
        .attr("num_inner_iterations", num_inner_iterations)
        .attr("adaptive", options.adaptive)
        .outputs_by_argument();
    let out_example_state_data = arguments.next_output();
    let out_delta_sparse_weights = arguments.next_list();
    let out_delta_dense_weights = arguments.next_list();
    (out_example_state_data, out_delta_sparse_weights, out_delta_dense_weights)
}

/// `SdcaShrinkL1`: Takes the L1 part of the regularization off weights of stochastic dual
/// coordinate ascent.
#[inline]
#[track_caller]
pub fn sdca_shrink_l1(g: &Graph, weights: &[Output], l1: f32, l2: f32) -> Operation {
    g.op("SdcaShrinkL1").list(weights).attr("l1", l1).attr("l2", l2).operation()
}

/// The attributes of [`sparse_apply_adadelta_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyAdadeltaOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyAdadeltaOptions {
    fn default() -> Self {
        SparseApplyAdadeltaOptions { use_locking: false }
    }
}

/// `SparseApplyAdadelta`: A step of Adadelta.
#[inline]
#[track_caller]
pub fn sparse_apply_adadelta(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_adadelta_with(
        var,
        accum,
        accum_update,
        lr,
        rho,
        epsilon,
        grad,
        indices,
        SparseApplyAdadeltaOptions::default(),
    )
}

/// [`sparse_apply_adadelta()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_adadelta_with(
    var: &Output,
    accum: &Output,
    accum_update: &Output,
    lr: &Output,
    rho: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyAdadeltaOptions,
) -> Output {
    var.graph()
        .op("SparseApplyAdadelta")
        .input(var)
        .input(accum)
        .input(accum_update)
        .input(lr)
        .input(rho)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sparse_apply_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for SparseApplyAdagradOptions {
    fn default() -> Self {
        SparseApplyAdagradOptions { use_locking: false, update_slots: true }
    }
}

/// `SparseApplyAdagrad`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_adagrad_with(var, accum, lr, grad, indices, SparseApplyAdagradOptions::default())
}

/// [`sparse_apply_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyAdagradOptions,
) -> Output {
    var.graph()
        .op("SparseApplyAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .output()
}

/// The attributes of [`sparse_apply_adagrad_da_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyAdagradDAOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyAdagradDAOptions {
    fn default() -> Self {
        SparseApplyAdagradDAOptions { use_locking: false }
    }
}

/// `SparseApplyAdagradDA`: A step of Adagrad with dual averaging.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad_da(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
) -> Output {
    sparse_apply_adagrad_da_with(
        var,
        gradient_accumulator,
        gradient_squared_accumulator,
        grad,
        indices,
        lr,
        l1,
        l2,
        global_step,
        SparseApplyAdagradDAOptions::default(),
    )
}

/// [`sparse_apply_adagrad_da()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad_da_with(
    var: &Output,
    gradient_accumulator: &Output,
    gradient_squared_accumulator: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    global_step: &Output,
    options: SparseApplyAdagradDAOptions,
) -> Output {
    var.graph()
        .op("SparseApplyAdagradDA")
        .input(var)
        .input(gradient_accumulator)
        .input(gradient_squared_accumulator)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(global_step)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sparse_apply_adagrad_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyAdagradV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `update_slots`: bool, `true` by default.
    pub update_slots: bool,
}

impl Default for SparseApplyAdagradV2Options {
    fn default() -> Self {
        SparseApplyAdagradV2Options { use_locking: false, update_slots: true }
    }
}

/// `SparseApplyAdagradV2`: A step of Adagrad.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad_v2(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_adagrad_v2_with(
        var,
        accum,
        lr,
        epsilon,
        grad,
        indices,
        SparseApplyAdagradV2Options::default(),
    )
}

/// [`sparse_apply_adagrad_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_adagrad_v2_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyAdagradV2Options,
) -> Output {
    var.graph()
        .op("SparseApplyAdagradV2")
        .input(var)
        .input(accum)
        .input(lr)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .attr("update_slots", options.update_slots)
        .output()
}

/// The attributes of [`sparse_apply_centered_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyCenteredRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyCenteredRMSPropOptions {
    fn default() -> Self {
        SparseApplyCenteredRMSPropOptions { use_locking: false }
    }
}

/// `SparseApplyCenteredRMSProp`: A step of RMSProp by the variance of the gradient.
#[inline]
#[track_caller]
pub fn sparse_apply_centered_rms_prop(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_centered_rms_prop_with(
        var,
        mg,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        indices,
        SparseApplyCenteredRMSPropOptions::default(),
    )
}

/// [`sparse_apply_centered_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_centered_rms_prop_with(
    var: &Output,
    mg: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyCenteredRMSPropOptions,
) -> Output {
    var.graph()
        .op("SparseApplyCenteredRMSProp")
        .input(var)
        .input(mg)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sparse_apply_ftrl_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyFtrlOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for SparseApplyFtrlOptions {
    fn default() -> Self {
        SparseApplyFtrlOptions { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `SparseApplyFtrl`: A step of following the regularized leader.
#[inline]
#[track_caller]
pub fn sparse_apply_ftrl(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
) -> Output {
    sparse_apply_ftrl_with(
        var,
        accum,
        linear,
        grad,
        indices,
        lr,
        l1,
        l2,
        lr_power,
        SparseApplyFtrlOptions::default(),
    )
}

/// [`sparse_apply_ftrl()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_ftrl_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    lr_power: &Output,
    options: SparseApplyFtrlOptions,
) -> Output {
    var.graph()
        .op("SparseApplyFtrl")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .output()
}

/// The attributes of [`sparse_apply_ftrl_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyFtrlV2Options {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `multiply_linear_by_lr`: bool, `false` by default.
    pub multiply_linear_by_lr: bool,
}

impl Default for SparseApplyFtrlV2Options {
    fn default() -> Self {
        SparseApplyFtrlV2Options { use_locking: false, multiply_linear_by_lr: false }
    }
}

/// `SparseApplyFtrlV2`: A step of following the regularized leader, with shrinkage.
#[inline]
#[track_caller]
pub fn sparse_apply_ftrl_v2(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
) -> Output {
    sparse_apply_ftrl_v2_with(
        var,
        accum,
        linear,
        grad,
        indices,
        lr,
        l1,
        l2,
        l2_shrinkage,
        lr_power,
        SparseApplyFtrlV2Options::default(),
    )
}

/// [`sparse_apply_ftrl_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_ftrl_v2_with(
    var: &Output,
    accum: &Output,
    linear: &Output,
    grad: &Output,
    indices: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    l2_shrinkage: &Output,
    lr_power: &Output,
    options: SparseApplyFtrlV2Options,
) -> Output {
    var.graph()
        .op("SparseApplyFtrlV2")
        .input(var)
        .input(accum)
        .input(linear)
        .input(grad)
        .input(indices)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(l2_shrinkage)
        .input(lr_power)
        .attr("use_locking", options.use_locking)
        .attr("multiply_linear_by_lr", options.multiply_linear_by_lr)
        .output()
}

/// The attributes of [`sparse_apply_momentum_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyMomentumOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
    /// `use_nesterov`: bool, `false` by default.
    pub use_nesterov: bool,
}

impl Default for SparseApplyMomentumOptions {
    fn default() -> Self {
        SparseApplyMomentumOptions { use_locking: false, use_nesterov: false }
    }
}

/// `SparseApplyMomentum`: A step of gradient descent with momentum.
#[inline]
#[track_caller]
pub fn sparse_apply_momentum(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
) -> Output {
    sparse_apply_momentum_with(
        var,
        accum,
        lr,
        grad,
        indices,
        momentum,
        SparseApplyMomentumOptions::default(),
    )
}

/// [`sparse_apply_momentum()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_momentum_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    grad: &Output,
    indices: &Output,
    momentum: &Output,
    options: SparseApplyMomentumOptions,
) -> Output {
    var.graph()
        .op("SparseApplyMomentum")
        .input(var)
        .input(accum)
        .input(lr)
        .input(grad)
        .input(indices)
        .input(momentum)
        .attr("use_locking", options.use_locking)
        .attr("use_nesterov", options.use_nesterov)
        .output()
}

/// The attributes of [`sparse_apply_proximal_adagrad_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyProximalAdagradOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyProximalAdagradOptions {
    fn default() -> Self {
        SparseApplyProximalAdagradOptions { use_locking: false }
    }
}

/// `SparseApplyProximalAdagrad`: A step of Adagrad that shrinks the variable by L1 and L2 norms.
#[inline]
#[track_caller]
pub fn sparse_apply_proximal_adagrad(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_proximal_adagrad_with(
        var,
        accum,
        lr,
        l1,
        l2,
        grad,
        indices,
        SparseApplyProximalAdagradOptions::default(),
    )
}

/// [`sparse_apply_proximal_adagrad()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_proximal_adagrad_with(
    var: &Output,
    accum: &Output,
    lr: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyProximalAdagradOptions,
) -> Output {
    var.graph()
        .op("SparseApplyProximalAdagrad")
        .input(var)
        .input(accum)
        .input(lr)
        .input(l1)
        .input(l2)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sparse_apply_proximal_gradient_descent_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyProximalGradientDescentOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyProximalGradientDescentOptions {
    fn default() -> Self {
        SparseApplyProximalGradientDescentOptions { use_locking: false }
    }
}

/// `SparseApplyProximalGradientDescent`: A step of gradient descent that shrinks the variable by L1
/// and L2 norms.
#[inline]
#[track_caller]
pub fn sparse_apply_proximal_gradient_descent(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_proximal_gradient_descent_with(
        var,
        alpha,
        l1,
        l2,
        grad,
        indices,
        SparseApplyProximalGradientDescentOptions::default(),
    )
}

/// [`sparse_apply_proximal_gradient_descent()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_proximal_gradient_descent_with(
    var: &Output,
    alpha: &Output,
    l1: &Output,
    l2: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyProximalGradientDescentOptions,
) -> Output {
    var.graph()
        .op("SparseApplyProximalGradientDescent")
        .input(var)
        .input(alpha)
        .input(l1)
        .input(l2)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`sparse_apply_rms_prop_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct SparseApplyRMSPropOptions {
    /// `use_locking`: bool, `false` by default.
    pub use_locking: bool,
}

impl Default for SparseApplyRMSPropOptions {
    fn default() -> Self {
        SparseApplyRMSPropOptions { use_locking: false }
    }
}

/// `SparseApplyRMSProp`: A step of RMSProp.
#[inline]
#[track_caller]
pub fn sparse_apply_rms_prop(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
) -> Output {
    sparse_apply_rms_prop_with(
        var,
        ms,
        mom,
        lr,
        rho,
        momentum,
        epsilon,
        grad,
        indices,
        SparseApplyRMSPropOptions::default(),
    )
}

/// [`sparse_apply_rms_prop()`] with other attributes.
#[inline]
#[track_caller]
pub fn sparse_apply_rms_prop_with(
    var: &Output,
    ms: &Output,
    mom: &Output,
    lr: &Output,
    rho: &Output,
    momentum: &Output,
    epsilon: &Output,
    grad: &Output,
    indices: &Output,
    options: SparseApplyRMSPropOptions,
) -> Output {
    var.graph()
        .op("SparseApplyRMSProp")
        .input(var)
        .input(ms)
        .input(mom)
        .input(lr)
        .input(rho)
        .input(momentum)
        .input(epsilon)
        .input(grad)
        .input(indices)
        .attr("use_locking", options.use_locking)
        .output()
}

/// The attributes of [`strided_slice_assign_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct StridedSliceAssignOptions {
    /// `begin_mask`: int, `0` by default.
    pub begin_mask: i64,
    /// `end_mask`: int, `0` by default.
    pub end_mask: i64,
    /// `ellipsis_mask`: int, `0` by default.
    pub ellipsis_mask: i64,
    /// `new_axis_mask`: int, `0` by default.
    pub new_axis_mask: i64,
    /// `shrink_axis_mask`: int, `0` by default.
    pub shrink_axis_mask: i64,
}

impl Default for StridedSliceAssignOptions {
    fn default() -> Self {
        StridedSliceAssignOptions {
            begin_mask: 0,
            end_mask: 0,
            ellipsis_mask: 0,
            new_axis_mask: 0,
            shrink_axis_mask: 0,
        }
    }
}

/// `StridedSliceAssign`: Assigns to a strided slice of a variable.
#[inline]
#[track_caller]
pub fn strided_slice_assign(
    ref_: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
) -> Output {
    strided_slice_assign_with(
        ref_,
        begin,
        end,
        strides,
        value,
        StridedSliceAssignOptions::default(),
    )
}

/// [`strided_slice_assign()`] with other attributes.
#[inline]
#[track_caller]
pub fn strided_slice_assign_with(
    ref_: &Output,
    begin: &Output,
    end: &Output,
    strides: &Output,
    value: &Output,
    options: StridedSliceAssignOptions,
) -> Output {
    ref_.graph()
        .op("StridedSliceAssign")
        .input(ref_)
        .input(begin)
        .input(end)
        .input(strides)
        .input(value)
        .attr("begin_mask", options.begin_mask)
        .attr("end_mask", options.end_mask)
        .attr("ellipsis_mask", options.ellipsis_mask)
        .attr("new_axis_mask", options.new_axis_mask)
        .attr("shrink_axis_mask", options.shrink_axis_mask)
        .output()
}

/// The attributes of [`temporary_variable_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct TemporaryVariableOptions<'a> {
    /// `var_name`: string, empty by default.
    pub var_name: &'a str,
}

impl Default for TemporaryVariableOptions<'_> {
    fn default() -> Self {
        TemporaryVariableOptions { var_name: "" }
    }
}

/// `TemporaryVariable`: A reference to a variable that lasts until it is destroyed, or the step
/// ends.
#[inline]
#[track_caller]
pub fn temporary_variable(g: &Graph, shape: &PartialShape, dtype: DType) -> Output {
    temporary_variable_with(g, shape, dtype, TemporaryVariableOptions::default())
}

/// [`temporary_variable()`] with other attributes.
#[inline]
#[track_caller]
pub fn temporary_variable_with(
    g: &Graph,
    shape: &PartialShape,
    dtype: DType,
    options: TemporaryVariableOptions<'_>,
) -> Output {
    g.op("TemporaryVariable")
        .attr("shape", shape.clone())
        .attr("dtype", dtype)
        .attr("var_name", options.var_name)
        .output()
}

/// The attributes of [`var_handle_op_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct VarHandleOpOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
    /// `debug_name`: string, empty by default.
    pub debug_name: &'a str,
    /// `allowed_devices`: list of strings, empty by default.
    pub allowed_devices: &'a [&'a str],
}

impl Default for VarHandleOpOptions<'_> {
    fn default() -> Self {
        VarHandleOpOptions { container: "", shared_name: "", debug_name: "", allowed_devices: &[] }
    }
}

/// `VarHandleOp`: A handle to a variable.
#[inline]
#[track_caller]
pub fn var_handle_op(g: &Graph, dtype: DType, shape: &PartialShape) -> Output {
    var_handle_op_with(g, dtype, shape, VarHandleOpOptions::default())
}

/// [`var_handle_op()`] with other attributes.
#[inline]
#[track_caller]
pub fn var_handle_op_with(
    g: &Graph,
    dtype: DType,
    shape: &PartialShape,
    options: VarHandleOpOptions<'_>,
) -> Output {
    g.op("VarHandleOp")
        .attr("dtype", dtype)
        .attr("shape", shape.clone())
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .attr("debug_name", options.debug_name)
        .attr("allowed_devices", list(options.allowed_devices))
        .output()
}

/// `VarIsInitializedOp`: Whether a variable is there and has a value.
#[inline]
#[track_caller]
pub fn var_is_initialized_op(resource: &Output) -> Output {
    resource.graph().op("VarIsInitializedOp").input(resource).output()
}

/// The attributes of [`variable_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct VariableOpOptions<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for VariableOpOptions<'_> {
    fn default() -> Self {
        VariableOpOptions { container: "", shared_name: "" }
    }
}

/// `Variable`: A reference to a variable that outlives the step.
#[inline]
#[track_caller]
pub fn variable(g: &Graph, shape: &PartialShape, dtype: DType) -> Output {
    variable_with(g, shape, dtype, VariableOpOptions::default())
}

/// [`variable()`] with other attributes.
#[inline]
#[track_caller]
pub fn variable_with(
    g: &Graph,
    shape: &PartialShape,
    dtype: DType,
    options: VariableOpOptions<'_>,
) -> Output {
    g.op("Variable")
        .attr("shape", shape.clone())
        .attr("dtype", dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

/// The attributes of [`variable_shape_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct VariableShapeOptions {
    /// `out_type`: type, `Int32` by default.
    pub out_type: DType,
}

impl Default for VariableShapeOptions {
    fn default() -> Self {
        VariableShapeOptions { out_type: DType::Int32 }
    }
}

/// `VariableShape`: The shape of a variable's value.
#[inline]
#[track_caller]
pub fn variable_shape(input: &Output) -> Output {
    variable_shape_with(input, VariableShapeOptions::default())
}

/// [`variable_shape()`] with other attributes.
#[inline]
#[track_caller]
pub fn variable_shape_with(input: &Output, options: VariableShapeOptions) -> Output {
    input.graph().op("VariableShape").input(input).attr("out_type", options.out_type).output()
}

/// The attributes of [`variable_v2_with`] that have defaults.
#[derive(Clone, Debug)]
pub struct VariableV2Options<'a> {
    /// `container`: string, empty by default.
    pub container: &'a str,
    /// `shared_name`: string, empty by default.
    pub shared_name: &'a str,
}

impl Default for VariableV2Options<'_> {
    fn default() -> Self {
        VariableV2Options { container: "", shared_name: "" }
    }
}

/// `VariableV2`: A reference to a variable that outlives the step.
#[inline]
#[track_caller]
pub fn variable_v2(g: &Graph, shape: &PartialShape, dtype: DType) -> Output {
    variable_v2_with(g, shape, dtype, VariableV2Options::default())
}

/// [`variable_v2()`] with other attributes.
#[inline]
#[track_caller]
pub fn variable_v2_with(
    g: &Graph,
    shape: &PartialShape,
    dtype: DType,
    options: VariableV2Options<'_>,
) -> Output {
    g.op("VariableV2")
        .attr("shape", shape.clone())
        .attr("dtype", dtype)
        .attr("container", options.container)
        .attr("shared_name", options.shared_name)
        .output()
}

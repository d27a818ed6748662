"""The decorator of public names: here the tables of `compat/v1` list them."""


def tf_export(*names, **options):
    return lambda function: function


keras_export = estimator_export = tf_export


def get_canonical_name_for_symbol(symbol, *args, **kwargs):
    return getattr(symbol, "__name__", None)

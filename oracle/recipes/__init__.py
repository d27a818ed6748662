"""How to call each op: a recipe makes one random call of it.

`RECIPES` maps an op to its recipe. `HOLD` restricts the type attributes of ops whose kernels are registered for more dtypes
than they support.
"""

RECIPES, HOLD = {}, {}


def recipe(*ops, hold=None):
    def add(f):
        for op in ops:
            assert op not in RECIPES, op
            RECIPES[op] = f
            if hold:
                HOLD[op] = hold
        return f
    return add


def load():
    import importlib
    import pkgutil
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"recipes.{module.name}")
    return RECIPES

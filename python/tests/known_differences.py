"""Programs whose graphs differ from TensorFlow's: the first difference and the reason.

The page `docs/src/how-to/tensorflow-1.md` lists them, too.
"""

KNOWN = {
    # TensorFlow runs the kernels of constant parts of a graph while it infers shapes. Here the ids
    # are a constant SparseTensor, from which it learns how many rows a segment sum has.
    "nn_embedding":
        "embedding_lookup_3/Shape_1: op is 'Shape', not 'Const'",
    # The same four numbers: TensorFlow writes this default as `int_val`, Ferroflow as bytes.
    "summaries":
        "s/i: attr bad_color is 420e08041204120208042204ff0000ff, not 421008041204120208043a06",
}

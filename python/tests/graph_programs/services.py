"""Queues, Savers, summaries, synchronous training, supervisors and datasets."""

from graph_programs import program


@program
def queues_of_all_kinds(tf):
    q = tf.FIFOQueue(10, [tf.float32, tf.string], [[2], []], name="q")
    q.enqueue([[1.0, 2.0], "a"])
    q.enqueue_many([[[1.0, 2.0]], ["a"]])
    q.dequeue()
    q.dequeue_many(3)
    q.dequeue_up_to(2)
    q.size()
    q.close()
    q.is_closed()
    q.close(True)
    tf.RandomShuffleQueue(200, 20, tf.int32, [[]], seed=7).dequeue()
    tf.set_random_seed(3)
    tf.RandomShuffleQueue(200, 20, tf.int32, [[]], shared_name="x").dequeue()
    tf.PaddingFIFOQueue(10, [tf.int32], [[None, 2]]).dequeue_many(2)
    tf.PriorityQueue(10, [tf.string], [[]]).dequeue()


@program
def queue_chosen_by_index(tf):
    a = tf.FIFOQueue(5, tf.int32, [[]], name="qa")
    b = tf.FIFOQueue(5, tf.int32, [[]], name="qb")
    tf.QueueBase.from_list(tf.placeholder(tf.int32, []), [a, b]).dequeue()
    tf.train.add_queue_runner(tf.train.QueueRunner(a, [a.enqueue(1)]))


@program
def accumulators(tf):
    dense = tf.ConditionalAccumulator(tf.float32, [2], shared_name="s")
    dense.apply_grad([1.0, 2.0], 3)
    dense.take_grad(2)
    dense.num_accumulated()
    dense.set_global_step(3)
    sparse = tf.SparseConditionalAccumulator(tf.float32, [2, 3])
    sparse.apply_indexed_slices_grad(tf.IndexedSlices(tf.constant([[1.0, 2.0, 3.0]]), tf.constant([0])))
    sparse.take_indexed_slices_grad(2)
    sparse.num_accumulated()


def _variables(tf):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [2, 3], use_resource=False)
    with tf.device("/job:ps/task:1"):
        w = tf.get_variable("w", [3], use_resource=True)
    tf.get_variable("x", shape=[4], dtype=tf.int64)
    return v, w


@program
def saver(tf):
    _variables(tf)
    tf.train.Saver()


@program
def saver_sharded(tf):
    _variables(tf)
    tf.train.Saver(sharded=True)


@program
def saver_of_renamed_variables(tf):
    v, w = _variables(tf)
    tf.train.Saver({"a": v, "b": w}, reshape=True, name="other")


@program
def saver_of_partitioned_variables(tf):
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(3)):
        tf.get_variable("pv", [10, 3])
        tf.get_variable("pr", [10, 3], use_resource=True)
    tf.train.Saver()
    tf.train.Saver(sharded=True)


@program
def saver_of_version_1(tf):
    v, w = _variables(tf)
    tf.train.Saver([v], write_version=tf.train.SaverDef.V1)
    tf.train.Saver([v, w], write_version=tf.train.SaverDef.V1, sharded=True)


@program
def summaries(tf):
    x = tf.constant(1.0)
    tf.summary.scalar("a b", x)
    tf.summary.scalar("a", x, family="fam")
    with tf.name_scope("s"):
        tf.summary.histogram("h", [1.0, 2.0])
        tf.summary.image("i", tf.zeros([1, 2, 2, 3]))
        tf.summary.audio("au", tf.zeros([1, 20]), 44100.0)
        tf.summary.text("t", tf.constant("x"))
        tf.summary.tensor_summary("ts", x, display_name="d", family="f2")
    tf.summary.merge_all()
    tf.summary.merge([tf.summary.scalar("q", x)], name="mm", collections=["zz"])


def _sync(tf, resource):
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:1")):
        step = tf.Variable(0, name="global_step", trainable=False, use_resource=resource)
        w = tf.get_variable("weight", [3], use_resource=resource)
        table = tf.get_variable("table", [10, 2], use_resource=resource)
        loss = tf.reduce_sum(w) + tf.reduce_sum(tf.gather(table, [1, 2]))
        opt = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.05), replicas_to_aggregate=2, total_num_replicas=2
        )
        opt.apply_gradients(opt.compute_gradients(loss), global_step=step)
        opt.get_init_tokens_op()


@program
def sync_replicas_of_references(tf):
    _sync(tf, False)


@program
def sync_replicas_of_resources(tf):
    _sync(tf, True)


@program
def supervisor_defaults(tf):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("weight", [3])
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w), global_step=step)
    tf.summary.scalar("l", tf.reduce_sum(w))
    tf.train.Supervisor()


@program
def scaffold_defaults(tf):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("weight", [3])
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w), global_step=step)
    tf.summary.scalar("l", tf.reduce_sum(w))
    tf.train.Scaffold().finalize()


@program
def datasets_without_functions(tf):
    dataset = tf.data.Dataset
    ds = dataset.range(5).batch(2).shuffle(10, seed=3).repeat().prefetch(1)
    tf.data.make_initializable_iterator(ds).get_next()
    pairs = dataset.zip((dataset.range(3), dataset.range(5, 9)))
    pairs.concatenate(pairs).take(2).skip(1).shard(3, 1).cache().enumerate()
    dataset.from_tensor_slices([1.0, 2.0]).padded_batch(2, [])
    it = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
    it.make_initializer(dataset.range(3))
    it.get_next()
    tf.data.Iterator.from_string_handle(tf.placeholder(tf.string, []), tf.int64, tf.TensorShape([])).get_next()


@program
def lookup_table(tf):
    table = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    del table
    tf.tables_initializer()


@program
def input_queues(tf):
    queue = tf.train.string_input_producer(["a", "b"], num_epochs=2, shuffle=False)
    _, value = tf.TextLineReader().read(queue)
    tf.train.batch([value], 2, num_threads=2)
    tf.train.shuffle_batch([value], 2, 50, 10, seed=1)


@program
def parsed_examples(tf):
    serialized = tf.placeholder(tf.string, [None])
    tf.parse_example(serialized, {
        "i": tf.FixedLenFeature([2], tf.int64),
        "s": tf.VarLenFeature(tf.string),
        "d": tf.FixedLenFeature([], tf.float32, 7.0),
    })


@program
def sparse_batches(tf):
    n = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    row = tf.SparseTensor(tf.expand_dims([tf.cast(n, tf.int64)], 1), [tf.cast(n, tf.float32)], [5])
    table = tf.SparseTensor([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    tf.train.batch({"row": row, "n": n}, 2)
    tf.train.batch([table], 2, enqueue_many=True)
    tf.train.shuffle_batch([row, n], 1, 10, 1, seed=1)
    tf.train.batch_join([[row, n], [row, n]], 1)
    tf.train.maybe_batch([table], tf.constant([True, False, True]), 2, enqueue_many=True)
    tf.train.maybe_batch([row], n > 0, 1)

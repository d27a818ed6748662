"""Data-parallel training with a graph of TensorFlow 1 and a monitored session. Start: ferroflow run
-np 2 -- python graph_mlp.py"""

import shutil
import tempfile

import ferroflow.compat.v1 as tf
import ferroflow.hvd as hvd

hvd.init()

# One GPU for each process.
config = tf.ConfigProto()
config.gpu_options.visible_device_list = str(hvd.local_rank())

tf.set_random_seed(hvd.rank())
x = tf.random_normal([64, 8])
y = tf.tanh(tf.reduce_sum(x, 1, keepdims=True))
hidden = tf.layers.dense(x, 32, activation=tf.tanh)
loss = tf.losses.mean_squared_error(y, tf.layers.dense(hidden, 1))

optimizer = tf.train.AdagradOptimizer(0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer)
train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
average_loss = hvd.allreduce(loss, name="loss")

# All ranks begin with the variables of rank 0, and only rank 0 writes checkpoints.
hooks = [hvd.BroadcastGlobalVariablesHook(0), tf.train.StopAtStepHook(last_step=200)]
folder = tempfile.mkdtemp() if hvd.rank() == 0 else None
with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, config=config,
                                       hooks=hooks) as session:
    while not session.should_stop():
        _, reached = session.run([train_op, average_loss])
if hvd.rank() == 0:
    print(f"loss of {hvd.size()} ranks: {reached:.4f}")
    shutil.rmtree(folder)
assert reached < 0.2, reached

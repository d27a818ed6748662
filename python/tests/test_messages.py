"""Messages without the protobuf package."""

import pickle
import unittest

from ferroflow.core import _text
from ferroflow.core.messages import AttrValue, ConfigProto, Example, GraphDef, NodeDef, RunOptions


class MessagesTest(unittest.TestCase):
    def test_a_message_survives_its_bytes(self):
        config = ConfigProto(allow_soft_placement=True, device_filters=["/job:ps"])
        config.device_count["CPU"] = 2
        config.graph_options.optimizer_options.opt_level = -1
        again = ConfigProto.FromString(config.SerializeToString())
        self.assertEqual(config, again)
        self.assertEqual(again.device_count["CPU"], 2)
        self.assertEqual(again.graph_options.optimizer_options.opt_level, -1)
        self.assertEqual(pickle.loads(pickle.dumps(config)), config)

    def test_a_submessage_is_present_once_it_is_changed(self):
        config = ConfigProto()
        self.assertFalse(config.HasField("gpu_options"))
        self.assertEqual(config.gpu_options.allow_growth, False)
        self.assertFalse(config.HasField("gpu_options"))
        config.gpu_options.allow_growth = True
        self.assertTrue(config.HasField("gpu_options"))

    def test_a_oneof_holds_one_member(self):
        value = AttrValue(i=3)
        value.s = b"x"
        self.assertEqual(value.WhichOneof("value"), "s")
        value.list.i.append(1)
        self.assertEqual(value.WhichOneof("value"), "list")
        self.assertEqual(AttrValue.FromString(AttrValue(b=False).SerializeToString()).WhichOneof("value"), "b")

    def test_wrong_types_are_refused(self):
        with self.assertRaises(TypeError):
            NodeDef().name = 3
        with self.assertRaises(ValueError):
            RunOptions().timeout_in_ms = 1 << 70
        with self.assertRaises(AttributeError):
            NodeDef().nmae = "x"
        with self.assertRaises(AttributeError):
            NodeDef().input = ["x"]

    def test_text_is_read_and_written(self):
        graph = GraphDef()
        node = graph.node.add(name="a", op="Const")
        node.attr["value"].tensor.float_val.append(0.1)
        node.attr["dtype"].type = 1
        text = str(graph)
        self.assertIn("float_val: 0.1\n", text)
        self.assertIn("type: DT_FLOAT\n", text)
        self.assertEqual(_text.Parse(text, GraphDef()), graph)

    def test_maps_of_messages(self):
        example = Example()
        example.features.feature["x"].int64_list.value.extend([1, -2])
        again = Example.FromString(example.SerializeToString())
        self.assertEqual(list(again.features.feature["x"].int64_list.value), [1, -2])

    def test_truncated_bytes_are_refused(self):
        data = NodeDef(name="abc").SerializeToString()
        with self.assertRaises(Exception):
            NodeDef.FromString(data[:-1])


if __name__ == "__main__":
    unittest.main()

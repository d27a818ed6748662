"""A step's trace for chrome://tracing: `Timeline(run_metadata.step_stats).generate_chrome_trace_format()`."""

import collections
import json
import re

AllocationMaximum = collections.namedtuple("AllocationMaximum", ("timestamp", "num_bytes", "tensors"))
StepStatsAnalysis = collections.namedtuple("StepStatsAnalysis", ("chrome_trace", "allocator_maximums"))


class Timeline:
    """The trace of a step."""

    def __init__(self, step_stats, graph=None):
        self._step_stats, self._graph = step_stats, graph
        self._origin = min(
            (n.all_start_micros for d in step_stats.dev_stats for n in d.node_stats), default=0
        )

    def generate_chrome_trace_format(self, show_dataflow=True, show_memory=False, op_time="schedule"):
        return self._trace(show_dataflow, show_memory, op_time)

    def analyze_step_stats(self, show_dataflow=True, show_memory=True, op_time="schedule"):
        return StepStatsAnalysis(chrome_trace=_Trace(self._trace(show_dataflow, show_memory, op_time)), allocator_maximums={})

    def _trace(self, show_dataflow, show_memory, op_time):
        events = []
        producers = {}
        nodes = []
        for pid, device in enumerate(self._step_stats.dev_stats):
            events.append({"ph": "M", "name": "process_name", "pid": 2 * pid, "args": {"name": device.device + " Compute"}})
            lanes = []
            for stats in sorted(device.node_stats, key=lambda n: n.all_start_micros):
                start = stats.all_start_micros
                micros = stats.op_end_rel_micros - stats.op_start_rel_micros if op_time == "gpu" else stats.all_end_rel_micros
                end = start + max(micros, 1)
                tid = next((i for i, free in enumerate(lanes) if free <= start), None)
                if tid is None:
                    tid = len(lanes)
                    lanes.append(end)
                lanes[tid] = end
                name, op, inputs = _parsed(stats.node_name, stats.timeline_label)
                args = {"name": name, "op": op}
                args.update({f"input{i}": text for i, text in enumerate(inputs)})
                events.append(
                    {"ph": "X", "cat": "Op", "name": op, "pid": 2 * pid, "tid": tid, "ts": start, "dur": max(micros, 1), "args": args}
                )
                producers[name] = (2 * pid, tid, end)
                nodes.append((name, inputs, 2 * pid, tid, start))
            if show_memory:
                events += self._memory(device, pid)
        if show_dataflow:
            flow = 0
            for _, inputs, pid, tid, start in nodes:
                for text in inputs:
                    source = producers.get(re.sub(r"^\^|:\d+$", "", text))
                    if source is None:
                        continue
                    flow += 1
                    common = {"cat": "DataFlow", "name": text, "id": flow}
                    events.append({"ph": "s", "pid": source[0], "tid": source[1], "ts": source[2], **common})
                    events.append({"ph": "t", "pid": pid, "tid": tid, "ts": start, **common})
        return json.dumps({"traceEvents": events}, indent=4, separators=(",", ": "))

    @staticmethod
    def _memory(device, pid):
        events = []
        for stats in device.node_stats:
            for memory in stats.memory:
                events.append(
                    {
                        "ph": "C", "cat": "Memory", "name": memory.allocator_name, "pid": 2 * pid + 1, "ts": stats.all_start_micros,
                        "args": {"bytes": memory.total_bytes},
                    }
                )  # fmt: skip
        return events


class _Trace:
    def __init__(self, text):
        self._text = text

    def format_to_string(self, pretty=False):
        del pretty
        return self._text


def _parsed(node_name, label):
    """The name, the op and the inputs in a label `name = Op(input, input)`."""
    found = re.match(r"(.*) = (.*?)\((.*)\)", label)
    if not found:
        return node_name, "unknown", []
    inputs = found.group(3)
    return found.group(1), found.group(2), [] if not inputs else inputs.split(", ")

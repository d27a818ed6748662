/* A client that is written in C: opens a session on a server through TensorFlow's C API and runs
 * graphs there. `programs/t1_c_client.py` compiles and calls it:
 *
 *     c_client TARGET          prints a line for each check, exits with 1 at the first that fails
 */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

#define PS "/job:ps/task:0"
#define WORKER "/job:worker/task:0"

static TF_Status *status;

static void fail(const char *what) {
  fprintf(stderr, "%s: code %d: %s\n", what, TF_GetCode(status), TF_Message(status));
  exit(1);
}

static void check(const char *what) {
  if (TF_GetCode(status) != TF_OK) fail(what);
}

static void expect(int is_true, const char *what) {
  if (!is_true) fail(what);
}

static void passed(const char *what) { printf("ok: %s\n", what); }

/* Tensors. */

static TF_Tensor *tensor(TF_DataType type, const int64_t *dims, int rank, const void *data,
                         size_t bytes) {
  TF_Tensor *made = TF_AllocateTensor(type, dims, rank, bytes);
  if (bytes) memcpy(TF_TensorData(made), data, bytes);
  return made;
}

static TF_Tensor *floats(int64_t rows, int64_t columns, const float *values) {
  int64_t dims[2] = {rows, columns};
  return tensor(TF_FLOAT, dims, 2, values, sizeof(float) * rows * columns);
}

static TF_Tensor *text(const char *value) {
  TF_Tensor *made = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
  TF_TString *cell = TF_TensorData(made);
  TF_StringInit(cell);
  TF_StringCopy(cell, value, strlen(value));
  return made;
}

/* Nodes. */

static TF_Output only(TF_Operation *op) {
  TF_Output output = {op, 0};
  return output;
}

static TF_Output constant(TF_Graph *graph, const char *name, TF_Tensor *value) {
  TF_OperationDescription *node = TF_NewOperation(graph, "Const", name);
  TF_SetAttrType(node, "dtype", TF_TensorType(value));
  TF_SetAttrTensor(node, "value", value, status);
  check(name);
  TF_Operation *op = TF_FinishOperation(node, status);
  check(name);
  TF_DeleteTensor(value);
  return only(op);
}

static TF_Output placeholder(TF_Graph *graph, const char *name, TF_DataType type) {
  TF_OperationDescription *node = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(node, "dtype", type);
  TF_Operation *op = TF_FinishOperation(node, status);
  check(name);
  return only(op);
}

static TF_Output call(TF_Graph *graph, const char *op, const char *name, const char *device,
                      const TF_Output *inputs, int count) {
  TF_OperationDescription *node = TF_NewOperation(graph, op, name);
  for (int i = 0; i < count; i++) TF_AddInput(node, inputs[i]);
  if (device) TF_SetDevice(node, device);
  TF_Operation *made = TF_FinishOperation(node, status);
  check(name);
  return only(made);
}

static TF_Output variable(TF_Graph *graph, const char *name, const char *device, int64_t rows,
                          int64_t columns) {
  int64_t dims[2] = {rows, columns};
  TF_OperationDescription *node = TF_NewOperation(graph, "VarHandleOp", name);
  TF_SetAttrType(node, "dtype", TF_FLOAT);
  TF_SetAttrShape(node, "shape", dims, 2);
  TF_SetAttrString(node, "shared_name", name, strlen(name));
  TF_SetDevice(node, device);
  TF_Operation *op = TF_FinishOperation(node, status);
  check(name);
  return only(op);
}

static TF_Output read_variable(TF_Graph *graph, const char *name, TF_Output handle) {
  TF_OperationDescription *node = TF_NewOperation(graph, "ReadVariableOp", name);
  TF_AddInput(node, handle);
  TF_SetAttrType(node, "dtype", TF_FLOAT);
  TF_Operation *op = TF_FinishOperation(node, status);
  check(name);
  return only(op);
}

static TF_Operation *update(TF_Graph *graph, const char *op, const char *name, TF_Output handle,
                            TF_Output value) {
  TF_OperationDescription *node = TF_NewOperation(graph, op, name);
  TF_AddInput(node, handle);
  TF_AddInput(node, value);
  TF_SetAttrType(node, "dtype", TF_FLOAT);
  TF_Operation *made = TF_FinishOperation(node, status);
  check(name);
  return made;
}

/* Sessions. */

static TF_Session *open_session(TF_Graph *graph, const char *target) {
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_SetTarget(options, target);
  TF_Session *session = TF_NewSession(graph, options, status);
  TF_DeleteSessionOptions(options);
  return session;
}

static void close_session(TF_Session *session) {
  TF_CloseSession(session, status);
  check("close the session");
  TF_DeleteSession(session, status);
  check("delete the session");
}

static TF_Tensor *fetch(TF_Session *session, TF_Output output) {
  TF_Tensor *value = NULL;
  TF_SessionRun(session, NULL, NULL, NULL, 0, &output, &value, 1, NULL, 0, NULL, status);
  return value;
}

static void run(TF_Session *session, const TF_Operation *target, const char *what) {
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1, NULL, status);
  check(what);
}

/* Checks. */

static void products(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, more[] = {1, 0, 0, 1};
  TF_Output inputs[2] = {constant(graph, "a", floats(2, 2, a)), placeholder(graph, "b", TF_FLOAT)};
  TF_Output product = call(graph, "MatMul", "product", WORKER, inputs, 2);
  TF_Session *session = open_session(graph, target);
  check("open a session");
  const float *feeds[] = {b, more};
  const float wanted[2][4] = {{19, 22, 43, 50}, {1, 2, 3, 4}};
  for (int i = 0; i < 2; i++) {
    TF_Tensor *feed = floats(2, 2, feeds[i]), *value = NULL;
    TF_SessionRun(session, NULL, &inputs[1], &feed, 1, &product, &value, 1, NULL, 0, NULL, status);
    check("feed a matrix");
    expect(TF_NumDims(value) == 2 && TF_Dim(value, 1) == 2, "the shape of a product");
    expect(!memcmp(TF_TensorData(value), wanted[i], sizeof wanted[i]), "the values of a product");
    TF_DeleteTensor(feed);
    TF_DeleteTensor(value);
  }
  close_session(session);
  TF_DeleteGraph(graph);
  passed("products of a constant and a feed");
}

static void variables(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  const float start[] = {1, 2}, change[] = {0.5f, -1};
  TF_Output handle = variable(graph, "c_client_weights", PS, 1, 2);
  TF_Output first = constant(graph, "first", floats(1, 2, start));
  TF_Output delta = constant(graph, "delta", floats(1, 2, change));
  TF_Operation *assign = update(graph, "AssignVariableOp", "assign", handle, first);
  TF_Operation *add = update(graph, "AssignAddVariableOp", "add", handle, delta);
  TF_Output value = read_variable(graph, "value", handle);
  TF_Session *session = open_session(graph, target);
  check("open a session");
  fetch(session, value);
  expect(TF_GetCode(status) == TF_FAILED_PRECONDITION, "an uninitialized variable is refused");
  run(session, assign, "assign a variable");
  for (int i = 0; i < 3; i++) run(session, add, "add to a variable");
  TF_Tensor *now = fetch(session, value);
  check("read a variable");
  const float *got = TF_TensorData(now);
  expect(got[0] == 2.5f && got[1] == -1.0f, "the values of a variable on a ps task");
  TF_DeleteTensor(now);

  /* A session extends its graph when it runs a new node. */
  TF_Output square = call(graph, "Square", "square", WORKER, &value, 1);
  now = fetch(session, square);
  check("run a node that was added later");
  expect(((float *)TF_TensorData(now))[0] == 6.25f, "the square of a variable");
  TF_DeleteTensor(now);
  close_session(session);

  /* Another session of the same graph finds the variable: the ps task keeps it. */
  session = open_session(graph, target);
  check("open a second session");
  now = fetch(session, value);
  check("read a variable in a second session");
  expect(((float *)TF_TensorData(now))[0] == 2.5f, "the variable in a second session");
  TF_DeleteTensor(now);
  close_session(session);
  TF_DeleteGraph(graph);
  passed("a variable on a ps task");
}

static void strings(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  TF_Output parts[2] = {constant(graph, "left", text("ferro")), constant(graph, "right", text("flow"))};
  TF_OperationDescription *node = TF_NewOperation(graph, "StringJoin", "joined");
  TF_AddInputList(node, parts, 2);
  TF_Output joined = only(TF_FinishOperation(node, status));
  check("make StringJoin");
  TF_Session *session = open_session(graph, target);
  check("open a session");
  TF_Tensor *value = fetch(session, joined);
  check("fetch a string");
  const TF_TString *cell = TF_TensorData(value);
  expect(TF_StringGetSize(cell) == 9 && !memcmp(TF_StringGetDataPointer(cell), "ferroflow", 9),
         "the text of a string");
  TF_DeleteTensor(value);
  close_session(session);
  TF_DeleteGraph(graph);
  passed("strings");
}

/* A straight line, fitted by gradients that TF_AddGradients builds. */
static void training(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  float x[8], y[8];
  for (int i = 0; i < 8; i++) x[i] = i / 8.0f, y[i] = 3 * x[i];
  const float zero[] = {0}, rate[] = {-0.2f};
  TF_Output handle = variable(graph, "c_client_slope", PS, 1, 1);
  TF_Operation *assign = update(graph, "AssignVariableOp", "assign", handle,
                                constant(graph, "zero", floats(1, 1, zero)));
  TF_Output weights[2] = {constant(graph, "x", floats(8, 1, x)), read_variable(graph, "slope", handle)};
  TF_Output out = call(graph, "MatMul", "out", WORKER, weights, 2);
  TF_Output pair[2] = {out, constant(graph, "y", floats(8, 1, y))};
  TF_Output error = call(graph, "SquaredDifference", "error", WORKER, pair, 2), gradient;
  TF_AddGradients(graph, &error, 1, &weights[1], 1, NULL, status, &gradient);
  check("build a gradient");
  TF_Output scaled[2] = {gradient, constant(graph, "rate", floats(1, 1, rate))};
  TF_Operation *step = update(graph, "AssignAddVariableOp", "step", handle,
                              call(graph, "Mul", "change", NULL, scaled, 2));
  TF_Session *session = open_session(graph, target);
  check("open a session");
  run(session, assign, "assign the slope");
  for (int i = 0; i < 40; i++) run(session, step, "a training step");
  TF_Tensor *value = fetch(session, weights[1]);
  check("read the slope");
  expect(fabsf(((float *)TF_TensorData(value))[0] - 3) < 1e-3f, "the slope after training");
  TF_DeleteTensor(value);
  close_session(session);
  TF_DeleteGraph(graph);
  passed("training by gradients of the C API");
}

static void errors(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  const float a[] = {1, 2}, b[] = {3, 4};
  TF_Output inputs[2] = {placeholder(graph, "a", TF_FLOAT), placeholder(graph, "b", TF_FLOAT)};
  TF_Output product = call(graph, "MatMul", "bad_product", WORKER, inputs, 2);
  TF_Session *session = open_session(graph, target);
  check("open a session");
  fetch(session, product);
  expect(TF_GetCode(status) == TF_INVALID_ARGUMENT, "a missing feed is refused");
  TF_Tensor *feeds[2] = {floats(1, 2, a), floats(1, 2, b)}, *value = NULL;
  TF_SessionRun(session, NULL, inputs, feeds, 2, &product, &value, 1, NULL, 0, NULL, status);
  expect(TF_GetCode(status) == TF_INVALID_ARGUMENT && strstr(TF_Message(status), "bad_product"),
         "shapes that do not fit are refused, and the node is named");
  close_session(session);
  TF_DeleteGraph(graph);
  TF_DeleteTensor(feeds[0]);
  TF_DeleteTensor(feeds[1]);
  passed("errors");
}

static void devices(const char *target) {
  TF_Graph *graph = TF_NewGraph();
  TF_Session *session = open_session(graph, target);
  check("open a session");
  TF_DeviceList *list = TF_SessionListDevices(session, status);
  check("list devices");
  int ps = 0, worker = 0;
  for (int i = 0; i < TF_DeviceListCount(list); i++) {
    const char *name = TF_DeviceListName(list, i, status);
    check("the name of a device");
    ps += strstr(name, PS) != NULL || strstr(name, "/job:ps/replica:0/task:0") != NULL;
    worker += strstr(name, "/job:worker/replica:0/task:0") != NULL;
  }
  expect(ps >= 1 && worker >= 1, "the devices of both tasks are listed");
  TF_DeleteDeviceList(list);
  close_session(session);
  TF_DeleteGraph(graph);
  passed("devices");
}

int main(int count, char **arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: %s TARGET\n", arguments[0]);
    return 2;
  }
  setvbuf(stdout, NULL, _IONBF, 0);
  status = TF_NewStatus();
  printf("TensorFlow %s\n", TF_Version());
  products(arguments[1]);
  variables(arguments[1]);
  strings(arguments[1]);
  training(arguments[1]);
  errors(arguments[1]);
  devices(arguments[1]);
  TF_DeleteStatus(status);
  return 0;
}

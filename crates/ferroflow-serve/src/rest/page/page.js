"use strict";
// Shows the models of this server, writes an example request from the signature, and sends it.
const at = (id) => document.getElementById(id);
let definitions = {};

async function ask(path, body) {
  const answer = await fetch(path, body === undefined ? {} : { method: "POST", body });
  const text = await answer.text();
  return { ok: answer.ok, status: answer.status, text };
}

function options(select, values) {
  const chosen = select.value;
  select.replaceChildren(...values.map((value) => new Option(value, value)));
  if (values.includes(chosen)) select.value = chosen;
}

function rows(table, cells) {
  const row = (values) => {
    const tr = document.createElement("tr");
    tr.append(...values.map((value) => {
      const td = document.createElement("td");
      td.textContent = value;
      return td;
    }));
    return tr;
  };
  table.tBodies[0].replaceChildren(...cells.map(row));
}

function base() {
  const version = at("version").value;
  const model = "/v1/models/" + encodeURIComponent(at("model").value);
  return version === "latest" || version === "" ? model : model + "/versions/" + version;
}

const shapeOf = (info) => info.tensor_shape.unknown_rank ? "any"
  : "[" + info.tensor_shape.dim.map((d) => d.size === "-1" ? "?" : d.size).join(", ") + "]";

function sample(info, skip) {
  const leaf = info.dtype === "DT_STRING" ? "text" : info.dtype === "DT_BOOL" ? true
    : /FLOAT|DOUBLE|HALF|BFLOAT/.test(info.dtype) ? 0.5 : 1;
  const dims = info.tensor_shape.unknown_rank ? [] : info.tensor_shape.dim.slice(skip);
  const sizes = dims.map((d) => d.size === "-1" ? 1 : Math.min(Number(d.size), 1000));
  return sizes.reduceRight((value, size) => Array.from({ length: size }, () => value), leaf);
}

function method() {
  const name = definitions[at("signature").value]?.method_name ?? "";
  return name.endsWith("/classify") ? "classify" : name.endsWith("/regress") ? "regress" : "predict";
}

function showSignature() {
  const name = at("signature").value;
  const signature = definitions[name];
  if (!signature) return;
  const row = ([key, info]) => [key, info.dtype.replace("DT_", "").toLowerCase(), shapeOf(info)];
  rows(at("inputs"), Object.entries(signature.inputs).map(row));
  rows(at("outputs"), Object.entries(signature.outputs).map(row));
  let request;
  if (method() === "predict") {
    const inputs = Object.entries(signature.inputs);
    const hasRows = inputs.every(([, info]) => info.tensor_shape.dim.length > 0);
    const values = Object.fromEntries(inputs.map(([key, info]) => [key, sample(info, hasRows ? 1 : 0)]));
    request = hasRows ? { signature_name: name, instances: [values] } : { signature_name: name, inputs: values };
  } else {
    request = { signature_name: name, examples: [{ feature: [0.5] }] };
  }
  at("request").value = JSON.stringify(request, null, 1);
  showCurl();
}

function showCurl() {
  const url = location.origin + base() + ":" + method();
  at("curl").textContent = "curl -d '" + at("request").value.replaceAll("'", "'\\''") + "' " + url;
}

async function showModel() {
  const model = "/v1/models/" + encodeURIComponent(at("model").value);
  const status = await ask(model);
  const versions = status.ok ? JSON.parse(status.text).model_version_status : [];
  rows(at("versions"), versions.map((v) => [v.version, v.state, v.status.error_message]));
  options(at("version"), ["latest", ...versions.filter((v) => v.state === "AVAILABLE").map((v) => v.version)]);
  await showVersion();
}

async function showVersion() {
  const metadata = await ask(base() + "/metadata");
  definitions = metadata.ok ? JSON.parse(metadata.text).metadata.signature_def.signature_def : {};
  delete definitions.__saved_model_init_op;
  options(at("signature"), Object.keys(definitions));
  if ("serving_default" in definitions) at("signature").value = "serving_default";
  showSignature();
}

async function send() {
  const begin = performance.now();
  const answer = await ask(base() + ":" + method(), at("request").value);
  at("took").textContent = answer.status + ", " + (performance.now() - begin).toFixed(1) + " ms";
  at("answer").className = answer.ok ? "" : "failed";
  at("answer").textContent = answer.text;
}

async function start() {
  const health = await ask("/healthz");
  at("health").textContent = health.ok ? "all models serve" : "a model does not serve";
  at("health").className = health.ok ? "" : "failed";
  options(at("model"), JSON.parse((await ask("/ui/models")).text).models);
  await showModel();
}

at("model").addEventListener("change", showModel);
at("version").addEventListener("change", showVersion);
at("signature").addEventListener("change", showSignature);
at("request").addEventListener("input", showCurl);
at("send").addEventListener("click", send);
start();

// The dashboard. All text of tasks is set as text, never as markup.
'use strict';

const PHASES = ['input', 'compute', 'send', 'wait'];
const COLOURS = ['#1f6feb', '#d9730d', '#1a7f37', '#8250df', '#c4232b', '#0b7285', '#9a6700', '#bf3989'];
const byId = (id) => document.getElementById(id);
const view = { state: null, curves: new Map(), rate: [], graph: null, graphKey: '', logKey: '' };

// ---- elements -------------------------------------------------------------------------------

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  return fill(made, attributes, children);
}

function drawn(name, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  return fill(made, attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  for (const child of children) made.append(child);
  return made;
}

function picture(width, height, label, ...children) {
  return drawn('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, ...children);
}

/** The width of an element in pixels, so that text in pictures keeps its size. */
const widthOf = (id) => Math.max(byId(id).clientWidth, 280);

function table(label, heads, rows) {
  const head = element('tr', {}, ...heads.map(([text, kind]) => element('th', { scope: 'col', class: kind || '' }, text)));
  const body = rows.map(({ cells, kind }) => element('tr', { class: kind || '' },
    ...cells.map((cell, i) => (i === 0 ? element('th', { scope: 'row' }, cell) : element('td', { class: heads[i][1] || '' }, cell)))));
  return element('table', {}, element('caption', { hidden: '' }, label), element('thead', {}, head), element('tbody', {}, ...body));
}

/** Sets a text that screen readers announce, if it is another one. */
function announce(text, id = 'news') {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

// ---- numbers --------------------------------------------------------------------------------

const number = (value) => (Number.isFinite(value) ? value : 0);

function short(value) {
  const v = number(value);
  if (v >= 1e6) return (v / 1e6).toFixed(1) + 'M';
  if (v >= 1e4) return (v / 1e3).toFixed(1) + 'k';
  if (v >= 100 || Number.isInteger(v)) return v.toFixed(0);
  return v >= 1 ? v.toFixed(1) : v.toPrecision(2);
}

function bytes(value) {
  const v = number(value);
  if (v >= 1e9) return (v / 1e9).toFixed(1) + ' GB';
  if (v >= 1e6) return (v / 1e6).toFixed(1) + ' MB';
  if (v >= 1e3) return (v / 1e3).toFixed(1) + ' kB';
  return v.toFixed(0) + ' B';
}

function span(seconds) {
  const s = number(seconds);
  if (s >= 1) return s.toFixed(2) + ' s';
  if (s >= 1e-3) return (s * 1e3).toFixed(2) + ' ms';
  return (s * 1e6).toFixed(0) + ' µs';
}

const clock = (seconds) => new Date(number(seconds) * 1000).toLocaleTimeString();

/** `/job:ps/replica:0/task:1` as `ps 1`. */
function taskName(text) {
  const found = /\/job:([^/]+)\/(?:replica:\d+\/)?task:(\d+)/.exec(String(text));
  return found ? `${found[1]} ${found[2]}` : String(text);
}

const stepRate = (task) => number(task.rates && (task.steps > 0 ? task.rates.steps : task.rates.parts));

// ---- cluster map ----------------------------------------------------------------------------

function drawMap(tasks, stragglers) {
  const slow = new Set(stragglers.map((s) => s.task));
  const shown = tasks.slice(0, 64);
  const ranks = shown.filter((t) => t.job === 'rank');
  const places = new Map();
  const width = widthOf('map');
  const fits = Math.max(Math.floor(width / 106), 2);
  let height = 0;
  if (ranks.length > 0) {
    const radius = Math.min(70 + ranks.length * 12, width / 2 - 55, 240);
    height = 2 * radius + 70;
    ranks.forEach((t, i) => {
      const angle = (2 * Math.PI * i) / ranks.length - Math.PI / 2;
      places.set(t.name, [width / 2 + radius * Math.cos(angle), height / 2 + radius * Math.sin(angle)]);
    });
  }
  const jobs = [...new Set(shown.filter((t) => t.job !== 'rank').map((t) => t.job))];
  jobs.sort((a, b) => (a === 'ps' ? -1 : b === 'ps' ? 1 : a < b ? -1 : 1));
  for (const job of jobs) {
    const row = shown.filter((t) => t.job === job);
    for (let at = 0; at < row.length; at += fits) {
      const line = row.slice(at, at + fits);
      height += at === 0 ? 40 : 62;
      line.forEach((t, i) => places.set(t.name, [(width * (i + 0.5)) / line.length, height]));
    }
    height += 110;
  }
  if (jobs.length > 0) height -= 80;
  const links = [];
  let most = 1;
  const join = (from, to, rate) => { links.push([from, to, rate]); most = Math.max(most, rate); };
  for (const task of shown) {
    for (const [peer, sent, received] of (task.rates && task.rates.peers) || []) {
      const other = taskName(peer);
      if (places.has(other) && other !== task.name) join(task.name, other, number(sent) + number(received));
    }
  }
  ranks.forEach((t, i) => {
    const next = ranks[(i + 1) % ranks.length];
    if (next !== t) join(t.name, next.name, number(t.rates && t.rates.sent));
  });
  const parts = [];
  const seen = new Map();
  for (const [from, to, rate] of links) {
    const key = [from, to].sort().join('|');
    if (number(seen.get(key)) >= rate && seen.has(key)) continue;
    seen.set(key, rate);
  }
  for (const [from, to, rate] of links) {
    if (seen.get([from, to].sort().join('|')) !== rate) continue;
    seen.delete([from, to].sort().join('|'));
    const [x1, y1] = places.get(from);
    const [x2, y2] = places.get(to);
    const thick = rate > 0 ? 1.5 + 6 * Math.sqrt(rate / most) : 1;
    const line = { x1, y1, x2, y2, class: rate > 0 ? 'link' : 'link idle', 'stroke-width': thick.toFixed(1) };
    parts.push(drawn('line', line, drawn('title', {}, `${from} – ${to}: ${bytes(rate)}/s`)));
    if (rate > 0) {
      parts.push(drawn('line', { x1, y1, x2, y2, class: 'link flow', 'stroke-width': Math.max(2, thick / 2).toFixed(1) }));
    }
  }
  for (const task of shown) {
    const [x, y] = places.get(task.name);
    const kind = task.lost ? 'node lost' : slow.has(task.name) ? 'node slow' : 'node';
    const what = task.lost ? 'lost' : `${short(stepRate(task))} steps/s`;
    parts.push(drawn('g', { class: kind },
      drawn('title', {}, `${task.name} at ${task.address}: ${what}`),
      drawn('rect', { x: x - 47, y: y - 19, width: 94, height: 38, rx: 8 }),
      drawn('text', { x, y: y - 3, 'text-anchor': 'middle' }, task.name.slice(0, 16)),
      drawn('text', { x, y: y + 12, 'text-anchor': 'middle', class: 'soft' }, what)));
  }
  const lost = tasks.filter((t) => t.lost).length;
  const label = `${tasks.length} tasks, ${lost} lost, ${links.length} links`;
  byId('map').replaceChildren(picture(width, Math.max(height, 60), label, ...parts));
}

// ---- curves ---------------------------------------------------------------------------------

function drawCurves(target, curves, label, xText) {
  const all = curves.filter((c) => c.points.length > 0);
  if (all.length === 0) {
    byId(target).replaceChildren(element('p', { class: 'hint' }, 'No values yet.'));
    return;
  }
  const [width, height, left, bottom, top] = [widthOf(target), 170, 44, 22, 8];
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const curve of all) {
    for (const [x, y] of curve.points) {
      x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y);
    }
  }
  y0 = Math.min(0, y0);
  if (y1 <= y0) y1 = y0 + 1;
  if (x1 <= x0) x1 = x0 + 1;
  const px = (x) => left + ((x - x0) / (x1 - x0)) * (width - left - 8);
  const py = (y) => height - bottom - ((y - y0) / (y1 - y0)) * (height - bottom - top);
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    const value = y0 + ((y1 - y0) * i) / 4;
    parts.push(drawn('line', { x1: left, x2: width - 8, y1: py(value), y2: py(value), class: i ? 'grid' : 'axis' }));
    parts.push(drawn('text', { x: left - 6, y: py(value) + 4, 'text-anchor': 'end', class: 'soft' }, short(value)));
  }
  parts.push(drawn('text', { x: left, y: height - 6, class: 'soft' }, xText(x0)));
  parts.push(drawn('text', { x: width - 8, y: height - 6, 'text-anchor': 'end', class: 'soft' }, xText(x1)));
  all.forEach((curve, i) => {
    const points = curve.points.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(' ');
    const line = drawn('polyline', { points, class: 'curve' }, drawn('title', {}, curve.name));
    line.style.stroke = COLOURS[i % COLOURS.length];
    parts.push(line);
  });
  const last = all.map((c) => `${c.name} ${short(c.points[c.points.length - 1][1])}`).join(', ');
  const shown = [picture(width, height, `${label}: now ${last}`, ...parts)];
  if (all.length > 1) {
    const items = all.slice(0, 16).map((curve, i) => {
      const item = element('li', {}, `${curve.name} ${short(curve.points[curve.points.length - 1][1])}`);
      item.style.setProperty('--swatch', COLOURS[i % COLOURS.length]);
      return item;
    });
    shown.push(element('ul', { class: 'legend' }, ...items));
  }
  byId(target).replaceChildren(...shown);
}

function showCurves() {
  drawCurves('rate', [{ name: 'steps/s', points: view.rate }], 'Steps per second', clock);
  const names = [...new Set([...view.curves.values()].map((c) => c.name))];
  const name = names.includes('loss') ? 'loss' : names[0];
  byId('loss-title').textContent = name && name !== 'loss' ? `${name} by step` : 'Loss by step';
  const chosen = [...view.curves.values()].filter((c) => c.name === name);
  drawCurves('loss', chosen.map((c) => ({ name: c.task, points: c.points })), name || 'loss', (x) => `step ${short(x)}`);
}

function addPoint(points, x, y) {
  // A job that was restored starts again at an earlier step.
  while (points.length && points[points.length - 1][0] > x) points.pop();
  if (points.length && points[points.length - 1][0] === x) return;
  points.push([x, y]);
  if (points.length > 900) points.splice(0, points.length, ...points.filter((_, i) => i % 2 === 0 || i > 800));
}

// ---- timeline -------------------------------------------------------------------------------

function drawTimeline(tasks) {
  const rows = tasks.filter((t) => !t.lost && (t.recent || []).length > 0).slice(0, 32);
  if (rows.length === 0) {
    byId('steps').replaceChildren(element('p', { class: 'hint' }, 'No steps of several tasks or ranks yet.'));
    return;
  }
  // The last few steps of the task with the longest ones, and what the others did meanwhile.
  const length = (r) => r[2] + r[3] + r[4] + r[5];
  const median = (t) => t.recent.map(length).sort((a, b) => a - b)[Math.floor(t.recent.length / 2)];
  const window = Math.max(...rows.map(median)) * 4 || 1;
  const ends = rows.map((t) => Math.max(...t.recent.map((r) => r[1] + length(r))));
  const end = Math.max(...ends);
  const [width, left, high] = [widthOf('steps'), 84, 22];
  const height = rows.length * (high + 8) + 26;
  const px = (t) => left + ((t - (end - window)) / window) * (width - left - 10);
  const parts = [];
  rows.forEach((task, i) => {
    const y = i * (high + 8) + 4;
    parts.push(drawn('text', { x: left - 8, y: y + 16, 'text-anchor': 'end' }, task.name.slice(0, 14)));
    parts.push(drawn('line', { x1: left, x2: width - 10, y1: y + high + 2, y2: y + high + 2, class: 'grid' }));
    // Snapshots of tasks are of different moments: show each with its own end.
    const shift = end - ends[i];
    for (const record of task.recent) {
      let at = record[1] + shift;
      [[2, 'input'], [3, 'compute'], [4, 'send'], [5, 'wait']].forEach(([index, phase]) => {
        const [from, to] = [Math.max(px(at), left), px(at + record[index])];
        at += record[index];
        if (to <= left || to - from < 0.2) return;
        const text = `${task.name}, step ${record[0]}: ${phase} ${span(record[index] / 1e6)}`;
        parts.push(drawn('rect', { x: from.toFixed(1), y, width: (to - from).toFixed(1), height: high, class: phase },
          drawn('title', {}, text)));
      });
    }
  });
  parts.push(drawn('text', { x: left, y: height - 6, class: 'soft' }, `${span(window / 1e6)} ago`));
  parts.push(drawn('text', { x: width - 10, y: height - 6, 'text-anchor': 'end', class: 'soft' }, 'last reading'));
  const label = rows.map((t) => `${t.name}: ${span(median(t) / 1e6)} a step`).join('; ');
  byId('steps').replaceChildren(picture(width, height, label, ...parts));
}

// ---- tables ---------------------------------------------------------------------------------

function phaseBar(task) {
  const phases = ((task.rates && task.rates.phases) || [0, 0, 0, 0]).map(number);
  const sum = phases.reduce((a, b) => a + b, 0);
  const text = PHASES.map((p, i) => `${p} ${sum ? Math.round((100 * phases[i]) / sum) : 0}%`).join(', ');
  const bar = element('span', { class: 'bar', role: 'img', 'aria-label': text, title: text });
  PHASES.forEach((phase, i) => {
    const part = element('i', { class: phase });
    part.style.width = sum ? `${(100 * phases[i]) / sum}%` : '0';
    bar.append(part);
  });
  return bar;
}

function showTasks(tasks) {
  const heads = [['task'], ['steps'], ['steps/s'], ['phases', 'text'], ['sent/s'], ['received/s'], ['RPCs/s'],
    ['collectives/s'], ['sessions'], ['tensors'], ['memory'], ['GPU'], ['cpu'], ['failed'], ['address', 'text']];
  const rows = tasks.map((t) => {
    if (t.lost) return { kind: 'lost', cells: [t.name, 'lost', '', '', '', '', '', '', '', '', '', '', '', '', t.address] };
    const r = t.rates || {};
    const gpu = (t.gpus || []).map((g) => bytes(g.used)).join(' ');
    return { cells: [t.name, short(t.steps || t.parts), short(stepRate(t)), phaseBar(t), bytes(r.sent), t.job === 'rank' && !r.received ? '–' : bytes(r.received),
      short(r.rpcs), short(r.collectives), String(t.sessions), bytes(t.memory), bytes(t.resident), gpu || '–',
      `${Math.round(100 * number(r.cpu))}%`, String(t.failed_steps), t.address] };
  });
  byId('task-table').replaceChildren(table('Tasks', heads, rows));
}

function showWaits(tasks, stragglers) {
  const notes = stragglers.map((s) => element('p', { class: 'alarm' },
    `${s.task} is slow in ${s.phase}${s.waits_for ? ` for values of ${s.waits_for}` : ''} since ${clock(s.since)}: ${span(s.seconds)} of each step, the others ${span(s.others)}.`));
  for (const task of tasks) {
    const late = (task.late || [])[0];
    if (late && number(late.seconds) > 0.5) {
      notes.push(element('p', { class: 'alarm' },
        `The ranks have waited ${span(late.seconds)} for rank ${late.rank}, which was last for ${late.times} tensors.`));
    }
  }
  // Screen readers hear of a change once, not of every reading.
  announce(stragglers.map((s) => `${s.task} is slow in ${s.phase}.`).join(' ') || 'No straggler.');
  if (notes.length === 0) notes.push(element('p', { class: 'calm' }, 'No straggler.'));
  byId('slow').replaceChildren(...notes);
  const rows = [];
  for (const task of tasks.filter((t) => !t.lost)) {
    for (const [peer, , , waited] of (task.rates && task.rates.peers) || []) {
      if (waited > 0) rows.push([waited, task.name, `values of ${taskName(peer)}`]);
    }
    const causes = { ranks: 'other ranks', queue: 'its queue of collectives' };
    for (const [cause, text] of Object.entries(causes)) {
      const waiting = number(task.rates && task.rates.waits && task.rates.waits[cause]);
      if (waiting > 0.001) rows.push([waiting, task.name, text]);
    }
  }
  rows.sort((a, b) => b[0] - a[0]);
  const heads = [['task'], ['waits for', 'text'], ['waiting at a time']];
  const cells = rows.slice(0, 40).map(([rate, task, cause]) => ({ cells: [task, cause, rate.toFixed(2)] }));
  byId('waits').hidden = cells.length === 0;
  byId('waits').replaceChildren(cells.length ? table('Waits by cause', heads, cells) : '');
}

function showShards(tasks) {
  const nodes = (view.graph && view.graph.nodes) || [];
  const shards = nodes.filter((n) => /^(Variable|VariableV2|VarHandleOp)$/.test(n.op));
  if (shards.length === 0) {
    byId('shard-list').replaceChildren(element('p', { class: 'hint' }, 'No variables of a placed graph yet.'));
    return;
  }
  const rows = shards.map((node) => {
    const task = tasks.find((t) => t.name === taskName(node.task));
    const rates = (task && task.rates) || {};
    return { cells: [node.name, taskName(node.task), node.shape || '?', bytes(number(rates.sent) + number(rates.received)) + '/s'] };
  });
  rows.sort((a, b) => (a.cells[1] < b.cells[1] ? -1 : 1));
  const heads = [['variable'], ['task', 'text'], ['shape', 'text'], ['traffic of the task']];
  byId('shard-list').replaceChildren(table('Parameter shards', heads, rows));
}

// ---- graph ----------------------------------------------------------------------------------

function showGraph() {
  const graph = view.graph;
  if (!graph || !graph.nodes) return;
  const nodes = graph.nodes;
  const at = new Map(nodes.map((n, i) => [n.name, i]));
  const source = (input) => at.get(String(input).replace(/^\^/, '').replace(/:\d+$/, ''));
  // A node's column is one after its last input's. Loops end the search.
  const depth = new Array(nodes.length).fill(-1);
  const place = (i, path) => {
    if (depth[i] >= 0) return depth[i];
    if (path > 300) return 0;
    depth[i] = 0;
    for (const input of nodes[i].inputs) {
      const from = source(input);
      if (from !== undefined && from !== i) depth[i] = Math.max(depth[i], place(from, path + 1) + 1);
    }
    return depth[i];
  };
  nodes.forEach((_, i) => place(i, 0));
  const tasks = [...new Set(nodes.map((n) => taskName(n.task)))];
  const filled = new Map();
  const where = nodes.map((_, i) => {
    const row = number(filled.get(depth[i]));
    filled.set(depth[i], row + 1);
    return [10 + depth[i] * 180, 10 + row * 40];
  });
  const width = 200 + Math.max(...where.map((w) => w[0]));
  const height = 50 + Math.max(...where.map((w) => w[1]));
  const parts = [];
  nodes.forEach((node, i) => {
    for (const input of node.inputs) {
      const from = source(input);
      if (from === undefined) continue;
      const [x1, y1, x2, y2] = [where[from][0] + 160, where[from][1] + 16, where[i][0], where[i][1] + 16];
      parts.push(drawn('path', { d: `M${x1},${y1} C${x1 + 30},${y1} ${x2 - 30},${y2} ${x2},${y2}`, class: 'link idle', 'stroke-width': 1 }));
    }
  });
  nodes.forEach((node, i) => {
    const [x, y] = where[i];
    const box = drawn('rect', { x, y, width: 160, height: 32, rx: 5 });
    box.style.stroke = COLOURS[tasks.indexOf(taskName(node.task)) % COLOURS.length];
    const name = node.name.length > 22 ? '…' + node.name.slice(-21) : node.name;
    parts.push(drawn('g', { class: 'node' }, box,
      drawn('text', { x: x + 7, y: y + 13 }, node.op.length > 20 ? node.op.slice(0, 19) + '…' : node.op),
      drawn('text', { x: x + 7, y: y + 26, class: 'soft' }, name),
      drawn('title', {}, `${node.name} (${node.op}) on ${taskName(node.task)}`)));
  });
  const label = `Graph of ${graph.total} nodes on ${tasks.length} tasks`;
  const svg = picture(width, height, label, ...parts);
  svg.setAttribute('width', width);
  svg.setAttribute('height', height);
  const items = tasks.map((task, i) => {
    const item = element('li', {}, task || 'any device');
    item.style.setProperty('--swatch', COLOURS[i % COLOURS.length]);
    return item;
  });
  const cut = graph.total > nodes.length ? ` The first ${nodes.length} of ${graph.total} nodes.` : '';
  byId('graph-hint').textContent = ['As the client sent it.', 'A step as it was placed.', 'The step that is run again and again, as it was placed.'][number(graph.stage ?? (graph.placed ? 1 : 0))] + cut;
  byId('graph-view').replaceChildren(element('ul', { class: 'legend' }, ...items), svg);
  const heads = [['node'], ['op', 'text'], ['task', 'text'], ['inputs', 'text']];
  const rows = nodes.map((n) => ({ cells: [n.name, n.op, taskName(n.task), n.inputs.join(', ')] }));
  byId('graph-list').replaceChildren(table('Nodes', heads, rows));
}

/** The value of the one event that such an address answers with. */
async function once(address) {
  try {
    const answer = await fetch(address);
    const found = /^data: (.*)$/m.exec(await answer.text());
    return found ? JSON.parse(found[1]) : null;
  } catch {
    // The job has ended; the status line says so.
    return null;
  }
}

async function refreshGraph(tasks) {
  const chief = tasks.find((t) => t.steps > 0 && !t.lost);
  const key = chief ? `${chief.pid} ${chief.sessions} ${Math.floor(Math.log2(number(chief.parts) + 1))}` : '';
  if (!chief || key === view.graphKey) return;
  view.graphKey = key;
  const graph = await once('/api/job/graph');
  if (graph) {
    view.graph = graph;
    showGraph();
    showShards(tasks);
  }
}

// ---- logs, events ---------------------------------------------------------------------------

function lines(list, items) {
  byId(list).replaceChildren(...items.map(([time, text]) =>
    element('li', {}, element('time', { datetime: new Date(number(time) * 1000).toISOString() }, clock(time)), String(text))));
}

async function refreshLogs() {
  const task = byId('log-task').value;
  if (!task) return;
  const found = await once('/api/job/logs?task=' + encodeURIComponent(task));
  if (found === null) return;
  byId('log-lines').textContent = found.join('\n') || 'This task has logged nothing yet.';
}

function showLogTasks(tasks, printed) {
  const names = [...new Set([...tasks.map((t) => t.name), ...printed])];
  const key = names.join('\n');
  if (key === view.logKey) return;
  view.logKey = key;
  const chosen = byId('log-task').value;
  byId('log-task').replaceChildren(...names.map((name) => element('option', { value: name }, name)));
  if (names.includes(chosen)) byId('log-task').value = chosen;
  refreshLogs();
}

// ---- state ----------------------------------------------------------------------------------

function show(state) {
  view.state = state;
  const tasks = state.tasks;
  const lost = tasks.filter((t) => t.lost).length;
  const silent = tasks.length ? [] : Object.keys(state.silent);
  const said = lost ? `${lost} of ${tasks.length} tasks do not answer` : `${tasks.length} tasks, live`;
  announce(silent.length ? `no answer from ${silent.slice(0, 3).join(', ')}` : said, 'status');
  byId('status').className = lost || silent.length ? 'lost' : '';
  const { kind, count, rate } = state.steps;
  const sent = tasks.reduce((sum, t) => sum + number(t.rates && t.rates.sent), 0);
  const figures = [['steps/s', short(rate)], [kind === 'global' ? 'global step' : 'steps', short(count)], ['sent', bytes(sent) + '/s']];
  if (state.epoch > 0) figures.push(['epoch', String(state.epoch)]);
  byId('rate-title').textContent = kind === 'client' ? 'Steps per second of all clients' : kind === 'rank' ? 'Steps per second of each rank' : 'Global steps per second';
  byId('figures').replaceChildren(...figures.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
  if (state.rate) addPoint(view.rate, state.rate[0], state.rate[1]);
  for (const task of tasks) {
    for (const [name, step, value] of task.scalars || []) {
      const key = name + '\n' + task.name;
      if (!view.curves.has(key)) view.curves.set(key, { name, task: task.name, points: [] });
      if (Number.isFinite(value)) addPoint(view.curves.get(key).points, step, value);
    }
  }
  // Ranks have no graph, no variables and mostly no loss: leave out what would stay empty.
  const isRing = tasks.length > 0 && tasks.every((t) => t.job === 'rank');
  for (const part of ['shards', 'graph']) {
    byId(part).hidden = isRing;
    document.querySelector(`nav a[href="#${part}"]`).hidden = isRing;
  }
  byId('stragglers').classList.toggle('wide', isRing);
  for (const part of ['loss', 'loss-title']) byId(part).hidden = isRing && view.curves.size === 0;
  const noCheckpoints = (state.checkpoints || []).length === 0;
  for (const part of ['checkpoint-title', 'checkpoint-list']) byId(part).hidden = noCheckpoints;
  drawMap(tasks, state.stragglers);
  showCurves();
  drawTimeline(tasks);
  showTasks(tasks);
  showWaits(tasks, state.stragglers);
  showShards(tasks);
  lines('event-list', [...state.events].reverse());
  lines('checkpoint-list', state.checkpoints || []);
  showLogTasks(tasks, state.logs || []);
  refreshGraph(tasks);
}

async function start() {
  const history = await (await fetch('/api/history')).json();
  view.rate = history.rate;
  for (const curve of history.curves) view.curves.set(curve.name + '\n' + curve.task, curve);
  const events = new EventSource('/api/events');
  events.addEventListener('state', (event) => show(JSON.parse(event.data)));
  events.addEventListener('error', () => {
    announce('the job has ended, or its dashboard cannot be reached', 'status');
    byId('status').className = 'lost';
  });
  setInterval(refreshLogs, 5000);
}

byId('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
byId('log-task').addEventListener('change', refreshLogs);
start();

// SPDX-License-Identifier: Apache-2.0
//
// A small server with the interface of src/stepwell/board/openapi.yaml and invented data, so that the page can be tested alone. A
// test changes the data and sends events itself. `node mock_server.mjs [SCENE]` serves a scene for a browser.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { deflateSync } from 'node:zlib';

const pageFolder = new URL('../../src/stepwell/board/page/', import.meta.url);

/** Returns the page in one file and its policy, made as the build of the C++ server makes them. */
export function assemblePage() {
  const hashes = { script: [], style: [] };
  const inline = (kind, name) => {
    const content = `\n${readFileSync(new URL(name, pageFolder), 'utf8')}`;
    hashes[kind].push(`'sha256-${createHash('sha256').update(content).digest('base64')}'`);
    return `<${kind}>${content}</${kind}>`;
  };
  const html = readFileSync(new URL('index.html', pageFolder), 'utf8')
    .replace(/<link rel="stylesheet" href="([^"]+)">/g, (_, name) => inline('style', name))
    .replace(/<script src="([^"]+)"><\/script>/g, (_, name) => inline('script', name));
  const policy =
    `default-src 'none'; script-src ${hashes.script.join(' ')}; style-src ${hashes.style.join(' ')}; connect-src 'self'; ` +
    `img-src 'self' blob: data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;
  return { html, policy };
}

/** Returns the bytes of a PNG of gray pixels. */
export function png(width, height, gray) {
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const frame = Buffer.alloc(body.length + 8);
    frame.writeUInt32BE(data.length, 0);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), body.length + 4);
    return frame;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 0, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; ++y) for (let x = 0; x < width; ++x) rows[y * (width + 1) + 1 + x] = gray(x, y);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10]),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; ++i) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}

/** A scalar curve: its steps, times and values. */
export class Scalars {
  step = [];
  time = [];
  value = [];

  add(step, time, value) {
    this.step.push(step);
    this.time.push(time);
    this.value.push(value);
  }

  /** Changes when points are removed. */
  revision = 1;

  /** Returns the body of /api/curve. `since`: the number of points that the page knows. */
  reduce(buckets, axis, from, to, since = 0) {
    const key = axis === 'time' ? this.time : this.step;
    const isWhole = from === -Infinity && to === Infinity;
    let first = isWhole ? since : key.findIndex((x) => x >= from);
    if (first < 0) first = key.length;
    let last = first;
    while (last < key.length && key[last] <= to) ++last;
    if (!isWhole) first = Math.max(0, first - 1);
    last = Math.min(key.length, last + 1);
    const points = last - first;
    const count = Math.min(buckets, points);
    const bytes = Buffer.alloc(32 + 96 * count);
    bytes.write('SWC1', 0, 'latin1');
    bytes.writeUInt32LE(count, 4);
    bytes.writeDoubleLE(isWhole ? key.length : points, 8);
    bytes.writeDoubleLE(this.revision, 16);
    bytes.writeUInt32LE(isWhole ? key.length : 0, 24);
    bytes.writeUInt32LE(isWhole ? count : 0, 28);
    for (let i = 0; i < count; ++i) {
      const begin = first + Math.floor((i * points) / count);
      const end = first + Math.floor(((i + 1) * points) / count);
      const bucket = { min: Infinity, max: -Infinity, sum: 0, finite: 0, nan: 0, above: 0, below: 0 };
      for (let j = begin; j < end; ++j) {
        const y = this.value[j];
        if (Number.isNaN(y)) ++bucket.nan;
        else if (y === Infinity) ++bucket.above;
        else if (y === -Infinity) ++bucket.below;
        else {
          ++bucket.finite;
          bucket.sum += y;
          bucket.min = Math.min(bucket.min, y);
          bucket.max = Math.max(bucket.max, y);
        }
      }
      const none = bucket.finite === 0;
      const row = [
        this.step[begin],
        this.step[end - 1],
        this.time[begin],
        this.time[end - 1],
        none ? NaN : bucket.min,
        none ? NaN : bucket.max,
      ];
      row.push(none ? NaN : bucket.sum / bucket.finite, this.value[end - 1], bucket.finite, bucket.nan, bucket.above, bucket.below);
      row.forEach((value, column) => bytes.writeDoubleLE(value, 32 + 8 * (column * count + i)));
    }
    return bytes;
  }

  /** Returns the entry of /api/tags. */
  summary(tag) {
    const finite = this.value.filter(Number.isFinite);
    const fold = (better) => finite.reduce((a, b) => (better(a, b) ? a : b), finite[0]);
    const last = this.value.at(-1);
    return {
      tag,
      kind: 'scalar',
      points: this.step.length,
      revision: this.revision,
      first_step: this.step[0],
      last_step: this.step.at(-1),
      min: fold((a, b) => a <= b) ?? null,
      max: fold((a, b) => a >= b) ?? null,
      min_step: this.step[this.value.indexOf(fold((a, b) => a <= b))] ?? null,
      max_step: this.step[this.value.indexOf(fold((a, b) => a >= b))] ?? null,
      last: Number.isFinite(last) ? last : Number.isNaN(last) ? 'nan' : last > 0 ? 'inf' : '-inf',
      non_finite: this.step.length - finite.length,
    };
  }
}

/** A run: its curves, and lists as the server would send them. */
export class MockRun {
  scalars = new Map();
  histograms = new Map();
  images = new Map();
  texts = new Map();
  marks = [];
  checkpoints = [];
  hparams = {};
  error = null;
  changed = Date.now() / 1000;
  bytes = 1000;
  ending = null;

  constructor(name, isLive = false) {
    this.name = name;
    this.isLive = isLive;
  }

  curve(tag) {
    if (!this.scalars.has(tag)) this.scalars.set(tag, new Scalars());
    return this.scalars.get(tag);
  }

  tags() {
    const made = [...this.scalars].map(([tag, curve]) => curve.summary(tag));
    for (const [kind, map] of [
      ['histogram', this.histograms],
      ['image', this.images],
      ['text', this.texts],
    ]) {
      for (const [tag, list] of map) made.push({ tag, kind, points: list.length, first_step: list[0].step, last_step: list.at(-1).step });
    }
    const times = [...this.scalars.values()].flatMap((curve) => [curve.time[0], curve.time.at(-1)]);
    const steps = [...this.scalars.values()].map((curve) => curve.step.at(-1));
    const known = times.length > 0;
    return {
      run: this.name,
      error: this.error,
      is_cut: false,
      first_time: known ? Math.min(...times) : null,
      last_time: known ? Math.max(...times) : null,
      last_step: known ? Math.max(...steps) : null,
      tags: made.sort((a, b) => (a.tag < b.tag ? -1 : 1)),
    };
  }
}

/** The server. Public members may be changed by a test at any time. */
export class MockServer {
  token = '0123456789abcdef';
  runs = [];
  session = null;
  log = [];
  ranks = [];
  actions = new Map();
  requests = [];
  streams = new Set();
  traces = new Map();
  fails = false;
  info = {
    api: 1,
    mode: 'session',
    title: 'mnist',
    directory: 'runs/mnist-3',
    live_run: null,
    needs_token_to_read: false,
    actions: ['checkpoint', 'stop', 'trace'],
  };
  nextId = 1;

  async listen(port = 0) {
    this.server = createServer((request, reply) => this.answer(request, reply));
    await new Promise((done) => this.server.listen(port, '127.0.0.1', done));
    this.port = this.server.address().port;
    this.address = `http://127.0.0.1:${this.port}/`;
    return this;
  }

  async close() {
    for (const stream of this.streams) stream.destroy();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  run(name) {
    return this.runs.find((run) => run.name === name);
  }

  send(event, data) {
    const text = `id: ${this.nextId++}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const stream of this.streams) stream.write(text);
  }

  sendState() {
    this.session.time = Date.now() / 1000;
    this.send('state', this.stateObject());
  }

  stateObject() {
    return { ...this.session, actions: [...this.actions.values()].sort((a, b) => b.id - a.id) };
  }

  finishAction(id, state, text, more = {}) {
    const action = Object.assign(this.actions.get(id), { state, text, finished: Date.now() / 1000 }, more);
    this.send('action', action);
  }

  answer(request, reply) {
    const url = new URL(request.url, this.address);
    const { headers } = request;
    this.requests.push({ method: request.method, path: url.pathname, url: request.url, headers });
    const json = (status, body) => {
      reply.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
      reply.end(JSON.stringify(body));
    };
    if (url.pathname === '/') {
      const { html, policy } = assemblePage();
      reply.writeHead(200, {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': policy,
        'X-Content-Type-Options': 'nosniff',
      });
      return void reply.end(html);
    }
    if (this.fails) return void json(500, { error: 'The disk with the runs cannot be read.' });
    const hasToken = headers.authorization === `Bearer ${this.token}`;
    const action = /^\/api\/actions\/([a-z]+)$/.exec(url.pathname);
    if (action && request.method === 'POST') return void this.startAction(action[1], hasToken, request, json);
    if (this.info.needs_token_to_read && !hasToken) return void json(401, { error: 'The token is missing or wrong.' });
    if (url.pathname === '/api/live') return void this.startStream(request, reply);
    const found = this.read(url);
    if (found === undefined) return void json(404, { error: 'There is no such thing here.' });
    if (!Buffer.isBuffer(found)) return void json(200, found);
    reply.writeHead(200, {
      'Content-Type': url.pathname === '/api/image' ? 'image/png' : 'application/octet-stream',
      'Cache-Control': 'no-store',
    });
    reply.end(found);
  }

  startAction(name, hasToken, request, json) {
    if (!hasToken) return json(401, { error: 'The token is missing or wrong.' });
    if (request.headers['content-type'] !== 'application/json') return json(415, { error: 'Send JSON.' });
    const made = {
      id: this.actions.size + 1,
      action: name,
      state: 'pending',
      requested: Date.now() / 1000,
      finished: null,
      step: null,
      text: 'waiting for the end of the step',
      download: null,
    };
    this.actions.set(made.id, made);
    json(202, made);
    this.onAction?.(made);
  }

  startStream(request, reply) {
    reply.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    reply.write(': hello\n\n');
    this.streams.add(reply);
    reply.on('close', () => this.streams.delete(reply));
    if (this.session && !request.headers['last-event-id'])
      reply.write(`id: ${this.nextId++}\nevent: state\ndata: ${JSON.stringify(this.stateObject())}\n\n`);
  }

  read(url) {
    const get = (name) => url.searchParams.get(name);
    const run = this.run(get('run'));
    const wanted = url.searchParams
      .getAll('run')
      .map((name) => this.run(name))
      .filter((one) => one);
    const of = (map) => run && [...(run[map].get(get('tag')) ?? [])].reverse();
    switch (url.pathname) {
      case '/api/board':
        return { ...this.info, now: Date.now() / 1000 };
      case '/api/session':
        return this.session ? this.stateObject() : undefined;
      case '/api/runs':
        return {
          runs: this.runs.map((one) => ({
            run: one.name,
            is_live: one.isLive,
            changed: one.changed,
            bytes: one.bytes,
            files: 1,
            ending: one.ending,
          })),
          is_cut: false,
        };
      case '/api/tags':
        return { runs: wanted.map((one) => one.tags()) };
      case '/api/marks':
        return run && { marks: run.marks };
      case '/api/checkpoints':
        return run && { checkpoints: run.checkpoints };
      case '/api/hparams':
        return { runs: wanted.map((one) => ({ run: one.name, hparams: one.hparams })) };
      case '/api/log':
        return { lines: this.log };
      case '/api/ranks':
        return { ranks: this.ranks };
      case '/api/histograms':
        return run && { histograms: of('histograms').reverse() };
      case '/api/texts':
        return run && { texts: of('texts') };
      case '/api/images':
        return run && { images: of('images').map(({ content, ...image }) => ({ ...image, bytes: content.length })) };
      case '/api/image':
        return of('images')?.find((image) => image.step === Number(get('step')))?.content;
      case '/api/curve': {
        const curve = run?.scalars.get(get('tag'));
        const since = Number(get('revision')) === curve?.revision ? Number(get('since')) : 0;
        const range = [Number(get('from') ?? -Infinity), Number(get('to') ?? Infinity)];
        return curve?.reduce(Number(get('buckets') ?? 1024), get('axis') ?? 'step', ...range, since);
      }
      default: {
        const trace = /^\/api\/trace\/(\d+)$/.exec(url.pathname);
        if (trace) return this.traces.get(Number(trace[1]));
        const id = /^\/api\/actions\/(\d+)$/.exec(url.pathname);
        return id ? this.actions.get(Number(id[1])) : undefined;
      }
    }
  }
}

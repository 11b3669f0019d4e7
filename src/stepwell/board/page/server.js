// SPDX-License-Identifier: Apache-2.0
//
// The server's interface (openapi.yaml): requests with the token, binary curves, and the stream of events.
'use strict';

/**
 * @typedef {number | 'nan' | 'inf' | '-inf'} JsonNumber
 * @typedef {{api: number, mode: 'session' | 'directory', title: string, directory: string, is_missing?: boolean,
 *   live_run: string | null,
 *   needs_token_to_read: boolean, actions: string[], now: number}} BoardInfo
 * @typedef {{name: string, step: number, time: number, bytes: number | null, is_verified: boolean | null}} Checkpoint
 * @typedef {{id: number, action: string, state: 'pending' | 'done' | 'failed', requested: number, finished: number | null,
 *   step: number | null, text: string, download: string | null}} Action
 * @typedef {{samples: number, step_seconds: number, model_seconds: number, data_seconds: number, io_seconds: number,
 *   other_seconds: number, hooks: {name: string, seconds: number}[]}} StepTime
 * @typedef {{directory: string | null, newest: Checkpoint | null, age_seconds: number | null, saves: number, saves_failed: number,
 *   saves_skipped: number, saves_postponed: number, last_save_seconds: number | null,
 *   backlog: {writing_bytes: number, writing_seconds: number, waiting_bytes: number} | null, lost_steps: number | null, lost_seconds: number | null}} CheckpointState
 * @typedef {{name: string, text: string, distance: number | null, unit: string, fraction: number | null}} StopCondition
 * @typedef {{time: number, phase: 'starting' | 'running' | 'recovering' | 'stopping' | 'ended' | 'failed', started: number, first_step: number,
 *   step: number, last_step: number | null, steps_per_second: number | null, remaining_seconds: number | null,
 *   stopping_because: string | null, epoch: {number: number, is_last_batch: boolean} | null, restored_from: string | null,
 *   watched: {name: string, value: JsonNumber, step: number}[], stop_conditions: StopCondition[],
 *   notes: {name: string, text: string}[], step_time: StepTime | null, checkpoints: CheckpointState, recoveries: number,
 *   creations: number, rollbacks: number, group: {generation: number, rank: number, size: number} | null, actions: Action[]}} Session
 * @typedef {{how: 'finished' | 'interrupted' | 'failed', cause: string, text: string, step: number}} Ending
 * @typedef {{run: string, is_live: boolean, changed: number, bytes: number, files: number, ending?: Ending | null}} Run
 * @typedef {{tag: string, kind: 'scalar' | 'histogram' | 'image' | 'text', points: number, revision?: number, first_step: number, last_step: number,
 *   min?: JsonNumber | null, max?: JsonNumber | null, min_step?: number | undefined, max_step?: number | undefined, last?: JsonNumber | null,
 *   non_finite?: number}} Tag
 * @typedef {{run: string, error: string | null, is_cut: boolean, first_time: number | null, last_time: number | null,
 *   last_step: number | null, tags: Tag[], curves?: Map<string, Tag>}} RunTags
 * @typedef {{kind: string, step: number, time: number, text: string}} Mark
 * @typedef {{number: number, time: number, level: string, text: string}} LogLine
 * @typedef {{step: number, time: number, min: number, max: number, count: number, sum: number, limits: number[],
 *   counts: number[]}} Histogram
 */

/** A request that the server refused, or that did not reach it (status 0). */
class RequestError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Returns the result of a function; null if it throws, such as an access to a storage that the browser does not permit. @template T @param {() => T} access */
function attempt(access) {
  try {
    return access();
  } catch {
    return null;
  }
}

const token = {
  value: '',

  /** Takes the token out of the address, so that it does not stay in the history, and keeps it while this tab lives. */
  take() {
    const found = /[#&]token=([^&]+)/.exec(location.hash);
    if (found) {
      this.keep(attempt(() => decodeURIComponent(found[1])) ?? found[1]);
      history.replaceState(null, '', location.pathname + location.search);
    } else {
      this.value = attempt(() => sessionStorage.getItem(`stepwell-token ${home}`)) ?? '';
    }
  },

  /** @param {string} value */
  keep(value) {
    this.value = value;
    attempt(() => sessionStorage.setItem(`stepwell-token ${home}`, value));
  },

  /** @returns {Record<string, string>} */
  headers() {
    return this.value ? { Authorization: `Bearer ${this.value}` } : {};
  },
};

/**
 * The address of the page, with a slash at its end. All requests are below it: a proxy may serve the board at a path of its own.
 */
const home = location.pathname.replace(/\/?$/, '/');

/**
 * Sends a request.
 * @param {string} path below the address of the page, without a slash at its beginning
 * @param {RequestInit} [options]
 * @throws {RequestError}
 */
async function request(path, options = {}) {
  /** @type {Response} */
  let reply;
  try {
    reply = await fetch(home + path, { cache: 'no-store', ...options, headers: { ...token.headers(), ...options.headers } });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new RequestError(0, 'The server does not answer.');
  }
  if (reply.ok) return reply;
  const body = await reply.json().catch(() => ({}));
  throw new RequestError(reply.status, body.error ? String(body.error) : `The server answered with status ${reply.status}.`);
}

/**
 * Returns the JSON of a path. A parameter that is a list is repeated.
 * @param {string} path
 * @param {Record<string, string | number | string[]>} [parameters]
 * @returns {Promise<any>}
 */
async function getJson(path, parameters = {}) {
  return (await request(path + query(parameters))).json();
}

/** @param {Record<string, string | number | string[]>} parameters */
function query(parameters) {
  const list = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) list.append(name, String(one));
  }
  return list.size > 0 ? `?${list}` : '';
}

/**
 * Requests an action of the session. The result follows as events.
 * @param {string} action
 * @param {object} body
 * @returns {Promise<Action>}
 */
async function postAction(action, body) {
  const reply = await request(`api/actions/${action}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return reply.json();
}

const curveColumns = /** @type {const} */ ([
  'step_first',
  'step_last',
  'time_first',
  'time_last',
  'min',
  'max',
  'mean',
  'last',
  'finite',
  'nan',
  'pos_inf',
  'neg_inf',
]);

/** @typedef {Record<typeof curveColumns[number], Float64Array> & {count: number, points: number, revision: number,
 *   fixedPoints: number, fixedBuckets: number}} Curve the first `fixedBuckets` stay as they are while the revision is the same */

/**
 * Returns the columns of a binary curve.
 * @param {ArrayBuffer} bytes
 * @returns {Curve}
 */
function decodeCurve(bytes) {
  const view = new DataView(bytes);
  const count = bytes.byteLength >= 32 ? view.getUint32(4, true) : -1;
  if (count < 0 || view.getUint32(0, true) !== 0x31435753 || bytes.byteLength !== 32 + count * 8 * curveColumns.length) {
    throw new RequestError(0, 'The server sent a curve that this page cannot read.');
  }
  const columns = Object.fromEntries(curveColumns.map((name, i) => [name, new Float64Array(bytes, 32 + i * 8 * count, count)]));
  const made = {
    count,
    points: view.getFloat64(8, true),
    revision: view.getFloat64(16, true),
    fixedPoints: view.getUint32(24, true),
    fixedBuckets: Math.min(count, view.getUint32(28, true)),
    ...columns,
  };
  return /** @type {Curve} */ (made);
}

/**
 * @param {Record<string, string | number>} parameters
 * @param {AbortSignal} signal
 * @returns {Promise<Curve>}
 */
async function getCurve(parameters, signal) {
  const reply = await request(`api/curve${query(parameters)}`, { signal });
  return decodeCurve(await reply.arrayBuffer());
}

/**
 * The stream of events. It is open while the tab is visible, and opens again after it broke.
 */
class LiveStream {
  /**
   * @param {(kind: string, data: any) => void} onEvent
   * @param {(state: 'open' | 'closed' | 'refused', error: RequestError | null, retrySeconds: number) => void} onState
   */
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.lastId = '';
    this.failures = 0;
    /** @type {AbortController | null} */
    this.open = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    document.addEventListener('visibilitychange', () => (document.hidden ? this.close() : this.start()));
  }

  /** Opens the stream now. */
  start() {
    clearTimeout(this.timer);
    if (this.open || document.hidden) return;
    this.open = new AbortController();
    void this.read(this.open);
  }

  close() {
    clearTimeout(this.timer);
    this.open?.abort();
    this.open = null;
  }

  /** @param {AbortController} controller */
  async read(controller) {
    /** @type {RequestError} */
    let error;
    try {
      const headers = this.lastId ? { 'Last-Event-ID': this.lastId } : undefined;
      const reply = await request('api/live', { signal: controller.signal, headers });
      this.failures = 0;
      this.onState('open', null, 0);
      await this.readEvents(/** @type {ReadableStream<Uint8Array>} */ (reply.body));
      error = new RequestError(0, 'The server closed the connection.');
    } catch (caught) {
      error = caught instanceof RequestError ? caught : new RequestError(0, 'The connection to the server broke.');
    }
    if (this.open !== controller) return; // closed by this page
    this.open = null;
    const seconds = Math.min(10, 2 ** this.failures++);
    this.onState(error.status === 401 ? 'refused' : 'closed', error, seconds);
    if (error.status !== 401) this.timer = setTimeout(() => this.start(), seconds * 1000);
  }

  /** @param {ReadableStream<Uint8Array>} body */
  async readEvents(body) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true }).replace(/\r/g, '');
      const events = text.split('\n\n');
      text = /** @type {string} */ (events.pop());
      for (const event of events) this.dispatch(event);
    }
  }

  /** @param {string} event */
  dispatch(event) {
    let kind = 'message';
    let data = '';
    for (const line of event.split('\n')) {
      const [, name, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
      if (name === 'id') this.lastId = value;
      else if (name === 'event') kind = value;
      else if (name === 'data') data += value;
    }
    if (data) this.onEvent(kind, JSON.parse(data));
  }
}

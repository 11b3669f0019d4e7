// SPDX-License-Identifier: Apache-2.0
//
// What the page knows, and who is called when it changes.
'use strict';

/** @typedef {'info' | 'session' | 'runs' | 'tags' | 'marks' | 'shown' | 'values' | 'log' | 'connection' | 'theme' | 'second'} Topic */

const board = {
  /** @type {BoardInfo | null} */
  info: null,
  /** @type {Session | null} */
  session: null,
  /** @type {Run[] | null} */
  runs: null,
  /** @type {Map<string, RunTags>} */
  tags: new Map(),
  /** @type {Map<string, Mark[]>} */
  marks: new Map(),
  /** Sizes of the event files of a run when its tags were read. @type {Map<string, number>} */
  tagBytes: new Map(),
  /** Runs whose curves are shown; the place in the list is the colour. @type {(string | null)[]} */
  shown: [],
  /** The run whose checkpoints, pictures and texts are shown. @type {string | null} */
  detail: null,
  /** Values from memory that the event files may not have yet, for each tag of the live run. @type {Map<string, Point[]>} */
  points: new Map(),
  /** @type {{state: 'connecting' | 'open' | 'closed' | 'refused' | 'ended', since: number, text: string, retryAt: number}} */
  connection: { state: 'connecting', since: 0, text: '', retryAt: 0 },
  /** Seconds that the clock of the server is ahead of the clock here. */
  clockShift: 0,

  /** @type {Map<Topic, (() => void)[]>} */
  listeners: new Map(),

  /** @param {Topic[]} topics @param {() => void} listener */
  on(topics, listener) {
    for (const topic of topics) this.listeners.set(topic, [...(this.listeners.get(topic) ?? []), listener]);
  },

  /** @param {Topic} topic */
  changed(topic) {
    for (const listener of this.listeners.get(topic) ?? []) listener();
  },

  /** The server's time of day. */
  now() {
    return Date.now() / 1000 + this.clockShift;
  },

  /** @param {string} run @param {string} tag @returns {Tag | undefined} the curve of this tag */
  curveTag(run, tag) {
    const of = this.tags.get(run);
    if (!of) return undefined;
    of.curves ??= new Map(of.tags.filter((one) => one.kind === 'scalar').map((one) => [one.tag, one]));
    return of.curves.get(tag);
  },

  /** @returns {string[]} */
  shownRuns() {
    return this.shown.filter((run) => run !== null);
  },
};

/** @type {{theme: string, axis: Axis, isLog: boolean, smoothing: number, pinned: string[]}} */
const settings = { theme: 'system', axis: 'step', isLog: false, smoothing: 0, pinned: [] };
const smoothingScales = [0, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
const mostPinned = 1000;
/** Values of settings that are possible. Others are ignored: they may be those of another version. @type {Record<string, unknown[]>} */
const possible = {
  theme: ['system', 'light', 'dark', 'contrast'],
  axis: ['step', 'time', 'relative'],
  isLog: [true, false],
  smoothing: smoothingScales,
};

function loadSettings() {
  const known = attempt(() => JSON.parse(localStorage.getItem('stepwell-board') ?? '{}'));
  for (const [name, values] of Object.entries(possible)) {
    if (values.includes(known?.[name])) Object.assign(settings, { [name]: known[name] });
  }
  const pinned = Array.isArray(known?.pinned) ? known.pinned.slice(0, mostPinned) : [];
  settings.pinned = pinned.filter((/** @type {unknown} */ tag) => typeof tag === 'string');
}

function saveSettings() {
  attempt(() => localStorage.setItem('stepwell-board', JSON.stringify(settings)));
}

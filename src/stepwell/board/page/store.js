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

  /** @returns {string[]} */
  shownRuns() {
    return this.shown.filter((run) => run !== null);
  },
};

/** @type {{theme: string, axis: Axis, isLog: boolean, smoothing: number, pinned: string[]}} */
const settings = { theme: 'system', axis: 'step', isLog: false, smoothing: 0, pinned: [] };

function loadSettings() {
  try {
    const known = JSON.parse(localStorage.getItem('stepwell-board') ?? '{}');
    for (const [name, value] of Object.entries(settings)) {
      if (typeof known[name] === typeof value && Array.isArray(known[name]) === Array.isArray(value))
        Object.assign(settings, { [name]: known[name] });
    }
    settings.pinned = settings.pinned.filter((tag) => typeof tag === 'string');
  } catch {
    // settings that cannot be read are those of the first visit
  }
}

function saveSettings() {
  try {
    localStorage.setItem('stepwell-board', JSON.stringify(settings));
  } catch {
    // a browser without storage forgets them
  }
}

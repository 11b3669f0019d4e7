// SPDX-License-Identifier: Apache-2.0
//
// Starts the page: reads everything once, then follows the stream of events.
'use strict';

/** @param {string} theme */
function showTheme(theme) {
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  const isContrast = matchMedia('(prefers-contrast: more)').matches;
  const system = isContrast ? 'contrast' : isDark ? 'dark' : 'light';
  document.documentElement.dataset.theme = theme === 'system' ? system : theme;
  palette.clear();
  board.changed('theme');
}

function bindTheme() {
  const select = /** @type {HTMLSelectElement} */ (byId('theme'));
  select.value = settings.theme;
  select.addEventListener('change', () => {
    settings.theme = select.value;
    saveSettings();
    showTheme(settings.theme);
  });
  for (const query of ['(prefers-color-scheme: dark)', '(prefers-contrast: more)']) {
    matchMedia(query).addEventListener('change', () => showTheme(settings.theme));
  }
  showTheme(settings.theme);
}

/** Reads what the server has: at the start, and again after the connection broke. */
async function readAll() {
  await readState();
  await readCurves();
}

async function readState() {
  board.info = /** @type {BoardInfo} */ (await getJson('api/board'));
  board.clockShift = board.info.now - Date.now() / 1000;
  const isSession = board.info.mode === 'session';
  const [session, runs, lines] = await Promise.all([
    isSession ? getJson('api/session') : null,
    getJson('api/runs'),
    isSession ? getJson('api/log') : { lines: [] },
    readRanks(),
  ]);
  board.session = session;
  board.runs = runs.runs;
  log.replace(lines.lines);
  byId('log-card').hidden = !isSession;
  board.changed('info');
  board.changed('session');
  board.changed('runs');
}

async function readCurves() {
  await readTags(board.shownRuns());
  await readMarks();
  void readOthers();
}

/** @param {string[]} runs */
async function readTags(runs) {
  const sizes = new Map((board.runs ?? []).map((run) => [run.run, run.bytes]));
  if (runs.length > 0) {
    const read = /** @type {RunTags[]} */ ((await getJson('api/tags', { run: runs })).runs);
    for (const one of read) {
      board.tags.set(one.run, one);
      board.tagBytes.set(one.run, sizes.get(one.run) ?? 0);
    }
  }
  const broken = board.shownRuns().filter((run) => board.tags.get(run)?.error);
  byId('run-errors').hidden = broken.length === 0;
  fill(
    byId('run-errors'),
    el(
      'div',
      null,
      broken.map((run) => el('p', null, icon('warn'), ` ${shorten(run, 100)}: ${shorten(board.tags.get(run)?.error ?? '', 400)}`)),
    ),
  );
  board.changed('tags');
}

const runsAtOnce = 8;
const mostOthers = 500;
let isReadingOthers = false;

/** Reads the tags of the newest runs that are not shown, a few at a time: the best value of all runs may be in one of them. */
async function readOthers() {
  if (isReadingOthers) return;
  isReadingOthers = true;
  try {
    for (;;) {
      const newest = [...(board.runs ?? [])].sort((a, b) => b.changed - a.changed).slice(0, mostOthers);
      const isUnknown = (/** @type {Run} */ run) => board.tagBytes.get(run.run) !== run.bytes && !board.shown.includes(run.run);
      const next = newest.filter(isUnknown).slice(0, runsAtOnce);
      if (next.length === 0 || document.hidden) return;
      const read = /** @type {RunTags[]} */ ((await getJson('api/tags', { run: next.map((run) => run.run) })).runs);
      for (const one of read) board.tags.set(one.run, { ...one, tags: one.tags.filter((tag) => tag.kind === 'scalar') });
      for (const run of next) board.tagBytes.set(run.run, run.bytes);
      runList.showSoon();
      showSession();
    }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error; // the next refresh tries again
  } finally {
    isReadingOthers = false;
  }
}

async function readMarks() {
  const runs = board.shownRuns();
  const replies = await Promise.all(runs.map((run) => getJson('api/marks', { run })));
  runs.forEach((run, i) => board.marks.set(run, replies[i].marks));
  board.changed('marks');
}

async function readCheckpoints() {
  const run = board.detail ?? board.info?.live_run;
  panels.checkpoints = run ? (await getJson('api/checkpoints', { run })).checkpoints : [];
  panels.showCheckpoints();
}

const mostPoints = 4000;

/** Runs a request whose failure the stream or the next refresh reports. @param {() => Promise<unknown>} work */
function quietly(work) {
  work().catch((error) => {
    if (!(error instanceof RequestError)) throw error;
  });
}

/** @param {Record<string, JsonNumber>} values @param {number} step @param {number} time */
function takeValues(values, step, time) {
  const live = board.info?.live_run;
  const known = new Set((live && board.tags.get(live)?.tags.map((tag) => tag.tag)) || []);
  let isNew = false;
  for (const [name, value] of Object.entries(values)) {
    isNew ||= !known.has(name);
    const number = typeof value === 'number' ? value : value === 'nan' ? NaN : value === 'inf' ? Infinity : -Infinity;
    const points = (board.points.get(name) ?? []).filter((point) => point.step < step); // a rollback takes points back
    const isFull = points.length >= mostPoints; // the server is asked for the older half
    isNew ||= isFull;
    board.points.set(name, [...(isFull ? points.slice(-mostPoints / 2) : points), { step, time, value: number }]);
  }
  if (isNew && live) refreshTagsOf([live]);
  board.changed('values');
}

/** Shown runs whose event files have grown. @type {Set<string>} */
const grown = new Set();
const refreshTags = atMostEvery(2000, () =>
  quietly(async () => {
    const runs = board.shownRuns().filter((run) => grown.has(run));
    grown.clear();
    await readTags(runs);
  }),
);

/** @param {string[]} runs */
function refreshTagsOf(runs) {
  for (const run of runs) if (board.shown.includes(run)) grown.add(run);
  if (grown.size > 0) refreshTags();
}

const refreshRuns = atMostEvery(5000, () =>
  quietly(async () => {
    const runs = /** @type {Run[]} */ ((await getJson('api/runs')).runs);
    board.runs = runs;
    if (runs.length > 0 && board.info) board.info.is_missing = false;
    board.changed('runs');
    refreshTagsOf(runs.filter((one) => board.tagBytes.get(one.run) !== one.bytes).map((one) => one.run));
    await readOthers();
  }),
);
const refreshCheckpoints = atMostEvery(2000, () => quietly(readCheckpoints));
const showSession = atMostEvery(200, () => {
  showHeader();
  showTiles();
  panels.show();
});

/** @param {string} kind @param {any} data */
function onEvent(kind, data) {
  if (kind === 'state') {
    const before = board.session;
    board.session = data;
    board.clockShift = Math.max(board.clockShift, data.time - Date.now() / 1000);
    if (before?.checkpoints.newest?.name !== data.checkpoints?.newest?.name) refreshCheckpoints();
    board.changed('session');
  } else if (kind === 'values') {
    if (data.run === board.info?.live_run) takeValues(data.values, data.step, data.time);
  } else if (kind === 'log') {
    log.add([data]);
  } else if (kind === 'mark') {
    const run = data.run ?? board.info?.live_run;
    if (run) board.marks.set(run, [...(board.marks.get(run) ?? []), data]);
    if (data.kind === 'checkpoint') refreshCheckpoints();
    board.changed('marks');
  } else if (kind === 'action') {
    actions.take([data]);
  } else if (kind === 'changed') {
    onChangedRuns(data.runs);
  } else if (kind === 'skipped') {
    quietly(readAll);
  } else if (kind === 'end') {
    if (board.session && board.session.phase !== 'failed') board.session.phase = data.phase;
    setConnection('ended', '', 0);
    board.changed('session');
  }
}

/** @param {string[]} names */
function onChangedRuns(names) {
  const known = new Map((board.runs ?? []).map((run) => [run.run, run]));
  for (const name of names) {
    const run = known.get(name);
    if (run) run.changed = board.now();
    else refreshRuns();
  }
  refreshTagsOf(names);
}

/** @param {typeof board.connection.state} state @param {string} text @param {number} retrySeconds */
function setConnection(state, text, retrySeconds) {
  const wasOpen = board.connection.state !== 'closed';
  if (state === 'closed' && board.connection.state === 'ended') return; // the program said goodbye
  const since = state === 'closed' && !wasOpen ? board.connection.since : Date.now();
  board.connection = { state, since, text, retryAt: Date.now() + retrySeconds * 1000 };
  board.changed('connection');
  showConnection();
  showSession();
}

function showConnection() {
  const { state, since, text, retryAt } = board.connection;
  const seconds = Math.max(0, Math.round((retryAt - Date.now()) / 1000));
  byId('lost').hidden = state !== 'closed';
  byId('token-wanted').hidden = state !== 'refused';
  byId('over').hidden = state !== 'ended';
  if (!board.info && state !== 'connecting') fill(byId('skeleton'), el('strong', null, 'Nothing could be read from the server yet'));
  if (state === 'closed') {
    const shown = board.info ? ` What you see is ${durationText(Math.round((Date.now() - since) / 1000))} old.` : '';
    fill(byId('lost-text'), `${text}${shown} ${seconds > 0 ? `Next attempt in ${seconds} s.` : 'Trying …'}`);
  }
}

/** Reads the state, opens the stream, and reads the curves. Tries again after an error. */
async function connect() {
  try {
    await readState();
    stream.lastId = '';
    stream.start();
    await readCurves();
    if (stream.open && board.connection.state === 'closed') setConnection('open', '', 0);
  } catch (error) {
    const known = error instanceof RequestError ? error : new RequestError(0, String(error));
    if (known.status === 401) {
      fill(byId('token-text'), known.message);
      setConnection('refused', known.message, 0);
    } else {
      failures = Math.min(5, failures + 1);
      const seconds = Math.min(10, 2 ** (failures - 1));
      setConnection('closed', known.message, seconds);
      retry = setTimeout(() => void connect(), seconds * 1000);
    }
    if (!(error instanceof RequestError)) throw error;
  }
}

let failures = 0;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let retry;

function connectNow() {
  clearTimeout(retry);
  stream.close();
  void connect();
}

const stream = new LiveStream(onEvent, (state, error, seconds) => {
  if (state === 'open') {
    const isAgain = board.connection.state === 'closed' || board.connection.state === 'ended';
    failures = 0;
    setConnection('open', '', 0);
    if (isAgain) quietly(readAll);
  } else if (state === 'refused') {
    setConnection('refused', error?.message ?? '', 0);
  } else {
    setConnection('closed', error?.message ?? '', seconds);
  }
});

loadSettings();
token.take();
bindTheme();
const curves = new Curves();
const runList = new RunList();
const actions = new Actions();
const lazy = [
  new LazySection('histograms', readHistograms, 'histogram'),
  new LazySection('images', readImages, 'image'),
  new LazySection('texts', readTexts, 'text'),
];

board.on(['session', 'info', 'runs', 'tags', 'shown'], showSession);
board.on(['marks', 'shown'], () => panels.showMarks());
board.on(['shown'], () => {
  const sizes = new Map((board.runs ?? []).map((run) => [run.run, run.bytes]));
  const missing = board.shownRuns().filter((run) => !board.tags.has(run) || board.tagBytes.get(run) !== sizes.get(run));
  if (missing.length > 0) quietly(() => readTags(missing));
  quietly(readMarks);
  refreshCheckpoints();
});
board.on(['tags', 'shown', 'theme'], () => lazy.forEach((section) => section.again()));
board.on(['shown'], () => quietly(readHparams));
board.on(['info'], () => {
  byId('skeleton').hidden = true;
  byId('columns').hidden = false;
});
byId('retry').addEventListener('click', connectNow);
byId('token-use').addEventListener('click', () => {
  token.keep(/** @type {HTMLInputElement} */ (byId('token')).value.trim().replace(/^.*token=/, ''));
  connectNow();
});
byId('log-level').addEventListener('change', () => log.show());
byId('log-search').addEventListener('input', () => log.show());
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && board.info) quietly(readAll);
});
setInterval(() => {
  if (document.hidden) return;
  showConnection();
  showSession();
  board.changed('second');
}, 1000);
setInterval(() => {
  if (!document.hidden && board.info && board.connection.state === 'open') refreshRuns();
}, 5000);
showHeader();
void connect();

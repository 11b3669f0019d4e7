// SPDX-License-Identifier: Apache-2.0
//
// The section of curves: which runs and tags are shown, and how. All charts share the axis, the zoom and the cursor.
'use strict';

const mostRuns = 24;
const chartsAtOnce = 60;

/** @implements {ChartOwner} */
class Curves {
  constructor() {
    /** @type {View} */
    this.view = { axis: settings.axis, isLog: settings.isLog, smoothing: settings.smoothing, zoom: null, cursor: null };
    /** @type {Map<string, Chart>} */
    this.charts = new Map();
    /** @type {Map<string, number>} the number of charts shown of each group, and 0 if the group is closed */
    this.groups = new Map();
    this.layout = '';
    this.search = /** @type {HTMLInputElement} */ (byId('tag-search'));
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) this.chartOf(entry.target)?.setVisible(entry.isIntersecting);
      },
      { rootMargin: '200px' },
    );
    new ResizeObserver(() => this.each((chart) => chart.resize())).observe(byId('charts'));
    this.bindToolbar();
    const arrange = atMostEvery(100, () => this.arrange());
    board.on(['tags', 'shown'], arrange);
    board.on(['shown', 'tags'], () => this.each((chart) => chart.reload(false)));
    board.on(['marks'], () => this.each((chart) => chart.isVisible && chart.plot && chart.draw()));
    board.on(['values'], () => this.each((chart) => chart.isVisible && chart.plot && board.points.has(chart.tag) && chart.draw()));
    board.on(['theme'], () => this.each((chart) => chart.restyle()));
    board.on(['info'], () => this.each((chart) => chart.forget()));
    this.updateCursor = false;
  }

  bindToolbar() {
    const axis = /** @type {HTMLSelectElement} */ (byId('axis'));
    const scale = /** @type {HTMLSelectElement} */ (byId('scale'));
    const smoothing = /** @type {HTMLInputElement} */ (byId('smoothing'));
    axis.value = this.view.axis;
    scale.value = this.view.isLog ? 'log' : 'linear';
    smoothing.max = String(smoothingScales.length - 1);
    smoothing.value = String(Math.max(0, smoothingScales.indexOf(this.view.smoothing)));
    axis.addEventListener('change', () => this.setView({ axis: /** @type {Axis} */ (axis.value), zoom: null, cursor: null }));
    scale.addEventListener('change', () => this.setView({ isLog: scale.value === 'log' }));
    smoothing.addEventListener('input', () => this.setView({ smoothing: smoothingScales[Number(smoothing.value)] }));
    byId('zoom-out').addEventListener('click', () => this.setZoom(null));
    this.search.addEventListener('input', () => this.arrange());
    this.showView();
  }

  /** @param {Partial<View>} change */
  setView(change) {
    const wantsData = 'zoom' in change || (this.view.zoom !== null && 'smoothing' in change);
    Object.assign(this.view, change);
    Object.assign(settings, { axis: this.view.axis, isLog: this.view.isLog, smoothing: this.view.smoothing });
    saveSettings();
    this.showView();
    this.each((chart) => {
      if (chart.plot && chart.isVisible) chart.draw();
      if (wantsData) chart.reload();
    });
  }

  showView() {
    const { smoothing, zoom, axis } = this.view;
    const text = smoothing === 0 ? 'off' : `${countText(smoothing)} steps`;
    fill(byId('smoothing-text'), text);
    byId('smoothing').setAttribute('aria-valuetext', text);
    byId('zoom-out').hidden = zoom === null;
    if (zoom) fill(byId('zoom-text'), `${positionText(Math.round(zoom.from), axis)} to ${positionText(Math.round(zoom.to), axis)}`);
    else fill(byId('zoom-text'), '');
  }

  /** Zooms as far as positions differ; a range that is wider than any curve shows all. @param {View['zoom']} zoom */
  setZoom(zoom) {
    if (zoom === null && this.view.zoom === null) return;
    const range = zoom && soundRange(zoom.from, zoom.to, leastWidth(this.view.axis));
    this.setView({ zoom: range && sizeOf(range) < largestPosition ? { from: range[0], to: range[1] } : null });
  }

  /** @param {number | null} x */
  setCursor(x) {
    this.view.cursor = x;
    if (this.updateCursor) return;
    this.updateCursor = true;
    requestAnimationFrame(() => {
      this.updateCursor = false;
      this.each((chart) => chart.isVisible && chart.followCursor());
    });
  }

  /** Shows the neighbourhood of a step in all charts. @param {Mark} mark @param {string} run */
  showMark(mark, run) {
    const tags = board.tags.get(run);
    const { axis } = this.view;
    const start = tags?.first_time ?? 0;
    const at = axis === 'step' ? mark.step : axis === 'time' ? mark.time : mark.time - start;
    const length = axis === 'step' ? (tags?.last_step ?? mark.step * 2) : (tags?.last_time ?? mark.time) - start;
    const half = Math.max(10, length * 0.05);
    this.setZoom({ from: at - half, to: at + half });
    byId('curves').scrollIntoView();
  }

  /** @param {string} tag @returns {ChartRun[]} */
  runsOf(tag) {
    return board.shown.flatMap((run, place) => {
      if (run === null) return [];
      const tags = board.tags.get(run);
      const known = board.curveTag(run, tag);
      if (!tags || !known) return [];
      const seconds = (tags.last_time ?? 0) - (tags.first_time ?? 0);
      const points = run === board.info?.live_run ? (board.points.get(tag) ?? []) : [];
      const perStep = seconds / Math.max(1, known.last_step - known.first_step);
      return [{ run, place, start: tags.first_time ?? 0, perStep, tag: known, marks: board.marks.get(run) ?? [], points }];
    });
  }

  /** @param {string} tag */
  isPinned(tag) {
    return settings.pinned.includes(tag);
  }

  /** @param {string} tag */
  togglePin(tag) {
    settings.pinned = this.isPinned(tag) ? settings.pinned.filter((one) => one !== tag) : [...settings.pinned, tag];
    saveSettings();
    const button = this.charts.get(tag)?.pinButton;
    this.arrange();
    button?.setAttribute('aria-pressed', String(this.isPinned(tag)));
    button?.focus();
    board.changed('session');
  }

  /** @param {(chart: Chart) => void} work */
  each(work) {
    for (const chart of this.charts.values()) work(chart);
  }

  /** @param {Element} element */
  chartOf(element) {
    return [...this.charts.values()].find((chart) => chart.element === element);
  }

  /** Returns the regular expression of the search field, null if it is not a valid one. */
  pattern() {
    try {
      const pattern = new RegExp(this.search.value, 'i');
      this.search.removeAttribute('aria-invalid');
      byId('tag-search-error').hidden = true;
      return pattern;
    } catch {
      this.search.setAttribute('aria-invalid', 'true');
      byId('tag-search-error').hidden = false;
      return null;
    }
  }

  /** Puts the charts in their groups. Nothing is done if they are there already. */
  arrange() {
    const pattern = this.pattern();
    if (!pattern) return;
    const all = new Set(
      board.shownRuns().flatMap((run) => (board.tags.get(run)?.tags ?? []).filter((tag) => tag.kind === 'scalar').map((tag) => tag.tag)),
    );
    const tags = [...all].filter((tag) => pattern.test(tag)).sort();
    /** @type {Map<string, string[]>} */
    const groups = new Map();
    const add = (/** @type {string} */ group, /** @type {string} */ tag) => groups.set(group, [...(groups.get(group) ?? []), tag]);
    for (const tag of tags.filter((one) => this.isPinned(one))) add('Pinned', tag);
    for (const tag of tags.filter((one) => !this.isPinned(one) && !one.includes('/'))) add('', tag);
    for (const tag of tags.filter((one) => !this.isPinned(one) && one.includes('/'))) add(tag.slice(0, tag.indexOf('/') + 1), tag);
    this.showEmpty(all.size, tags.length);
    const layout = JSON.stringify([[...groups], [...this.groups]]);
    if (layout === this.layout) return;
    this.layout = layout;
    const kept = new Set();
    const isAlone = groups.size === 1;
    fill(
      byId('charts'),
      [...groups].map(([group, names]) => this.groupElement(group, names, kept, isAlone)),
    );
    for (const [tag, chart] of this.charts) {
      if (kept.has(tag)) continue;
      this.observer.unobserve(chart.element);
      chart.remove();
      this.charts.delete(tag);
    }
  }

  /** @param {string} group @param {string[]} names @param {Set<string>} kept @param {boolean} isAlone */
  groupElement(group, names, kept, isAlone) {
    const limit = this.groups.get(group) ?? chartsAtOnce;
    const visibleNames = names.slice(0, limit);
    const grid = el('div', { class: 'charts' });
    for (const tag of visibleNames) {
      kept.add(tag);
      let chart = this.charts.get(tag);
      if (!chart) {
        chart = new Chart(tag, this);
        this.charts.set(tag, chart);
        this.observer.observe(chart.element);
      }
      grid.append(chart.element);
    }
    const setLimit = (/** @type {number} */ count) => {
      this.groups.set(group, count);
      this.arrange();
    };
    const title = `${group === '' ? 'Curves without a group' : shorten(group, 100)} (${names.length})`;
    const toggle = el(
      'button',
      { class: 'quiet', type: 'button', 'aria-expanded': String(limit > 0), onclick: () => setLimit(limit > 0 ? 0 : chartsAtOnce) },
      limit > 0 ? '▾ ' : '▸ ',
      title,
    );
    const more =
      names.length > limit &&
      limit > 0 &&
      el(
        'button',
        { type: 'button', onclick: () => setLimit(limit + chartsAtOnce) },
        `Show ${Math.min(chartsAtOnce, names.length - limit)} more`,
      );
    return el('div', { class: 'group' }, !isAlone && el('h3', null, toggle), grid, more);
  }

  /** @param {number} all @param {number} found */
  showEmpty(all, found) {
    const box = byId('charts-empty');
    box.hidden = found > 0;
    if (found > 0) return;
    const isLoading = board.runs === null || board.shownRuns().some((run) => !board.tags.has(run));
    if (isLoading) fill(box, el('strong', null, 'Loading …'));
    else if (all > 0)
      fill(
        box,
        el('strong', null, 'No curve matches the search'),
        el('span', null, `${plural(all, 'curve is', 'curves are')} hidden by it.`),
      );
    else if (board.runs?.length === 0)
      fill(
        box,
        el('strong', null, 'No runs here yet'),
        el(
          'span',
          null,
          board.info?.is_missing ? `The directory ${shorten(board.info.directory, 200)} does not exist yet. ` : '',
          'A run appears when a training writes its first event file into this directory.',
        ),
      );
    else if (board.shownRuns().length === 0)
      fill(box, el('strong', null, 'No run is selected'), el('span', null, 'Select runs in the list above.'));
    else
      fill(box, el('strong', null, 'No values yet'), el('span', null, 'Curves appear with the first value that a hook watches or writes.'));
  }
}

/** The list of runs, with which runs are compared. */
class RunList {
  constructor() {
    this.search = /** @type {HTMLInputElement} */ (byId('run-search'));
    this.search.addEventListener('input', () => this.show());
    this.wasChosen = false;
    this.showSoon = atMostEvery(300, () => this.show());
    board.on(['runs', 'tags', 'shown', 'session'], this.showSoon);
    board.on(['runs'], () => this.choose());
  }

  /** Shows the live run and the newest others, until the reader chooses. */
  choose() {
    const runs = [...(board.runs ?? [])].sort((a, b) => Number(b.is_live) - Number(a.is_live) || b.changed - a.changed);
    if (this.wasChosen || runs.length === 0) return;
    const count = board.info?.live_run ? 3 : seriesColours;
    const chosen = board.shownRuns();
    for (const { run } of runs) if (chosen.length < count && !chosen.includes(run)) chosen.push(run);
    if (chosen.length === board.shownRuns().length) return;
    board.shown = chosen;
    board.detail ??= runs[0].run;
    board.changed('shown');
  }

  /** @param {string} run @param {boolean} isShown */
  setShown(run, isShown) {
    this.wasChosen = true;
    const place = board.shown.indexOf(isShown ? null : run);
    if (!isShown) board.shown[place] = null;
    else if (place >= 0) board.shown[place] = run;
    else board.shown.push(run);
    board.changed('shown');
  }

  show() {
    const runs = board.runs ?? [];
    byId('runs').hidden = runs.length < 2;
    if (runs.length < 2) return;
    let pattern = /(?:)/;
    try {
      pattern = new RegExp(this.search.value, 'i');
      this.search.removeAttribute('aria-invalid');
    } catch {
      this.search.setAttribute('aria-invalid', 'true');
    }
    const rank = (/** @type {Run} */ run) => (run.is_live ? 2 : 0) + (board.shown.includes(run.run) ? 1 : 0);
    const found = runs.filter((run) => pattern.test(run.run)).sort((a, b) => rank(b) - rank(a) || b.changed - a.changed);
    const fastest = Math.max(...found.map((run) => rateOf(run.run) ?? 0));
    fill(byId('runs-count'), `${board.shownRuns().length} of ${plural(runs.length, 'run')} shown`);
    const focused =
      document.activeElement instanceof HTMLElement && byId('runs-rows').contains(document.activeElement) ? document.activeElement.id : '';
    fill(
      byId('runs-rows'),
      found.slice(0, 500).map((run) => this.row(run, fastest)),
      found.length > 500 && el('tr', null, el('td', { colspan: 5 }, `${countText(found.length - 500)} more; search to find them`)),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @param {Run} run @param {number} fastest */
  row(run, fastest) {
    const place = board.shown.indexOf(run.run);
    const isFull = place < 0 && board.shownRuns().length >= mostRuns;
    const tags = board.tags.get(run.run);
    const rate = rateOf(run.run);
    const index = board.runs?.indexOf(run);
    const isDetail = run.run === board.detail;
    const choose = () => {
      board.detail = run.run;
      if (place < 0 && !isFull) this.setShown(run.run, true);
      board.changed('shown');
    };
    const box = el('input', {
      type: 'checkbox',
      id: `run-box-${index}`,
      'aria-label': `Show ${shorten(run.run, 100)}`,
      checked: place >= 0,
      disabled: isFull,
      onchange: (/** @type {Event} */ event) => this.setShown(run.run, /** @type {HTMLInputElement} */ (event.target).checked),
    });
    const name = el(
      'button',
      {
        class: 'quiet',
        type: 'button',
        id: `run-name-${index}`,
        'aria-pressed': String(isDetail),
        title: 'Show checkpoints, pictures and texts of this run',
        onclick: choose,
      },
      shorten(run.run, 120),
    );
    const bar = rate !== null && fastest > 0 ? meter(rate / fastest) : null;
    return el(
      'tr',
      null,
      el('th', { scope: 'row' }, box, ' ', place >= 0 && swatch(place), name),
      el('td', { title: run.ending ? visible(shorten(run.ending.text, 300)) : null }, runState(run)),
      el('td', { class: 'number less' }, countText(run.is_live ? (board.session?.step ?? tags?.last_step) : tags?.last_step)),
      el(
        'td',
        { class: rate !== null && rate === fastest ? 'number best' : 'number' },
        rate !== null && rate === fastest && el('small', null, 'fastest '),
        rate === null ? '–' : valueText(Number(rate.toPrecision(3))),
      ),
      el('td', { class: 'rate' }, bar),
    );
  }
}

/** Returns the steps per second of a run: of the session, or as the run wrote it, or on average. @param {string} run @returns {number | null} */
function rateOf(run) {
  if (run === board.info?.live_run && board.session?.steps_per_second) return board.session.steps_per_second;
  const tags = board.tags.get(run);
  if (!tags) return null;
  const written = tags.tags.find((tag) => tag.tag === 'global_step/sec')?.last;
  if (typeof written === 'number') return written;
  const first = Math.min(...tags.tags.map((tag) => tag.first_step));
  const seconds = (tags.last_time ?? 0) - (tags.first_time ?? 0);
  return tags.last_step !== null && seconds > 0 ? (tags.last_step - first) / seconds : null;
}

/** Returns true if a run seems to be written by a process that lives. @param {Run} run */
function isWritten(run) {
  return !run.ending && board.now() - run.changed < 60;
}

/** @param {Run} run @returns {Child} */
function runState(run) {
  if (run.is_live && board.connection.state === 'closed') return 'not connected';
  if (run.is_live && board.session) return phaseText(board.session.phase);
  if (run.ending?.how === 'failed') return el('span', { class: 'pill bad' }, 'failed');
  if (run.ending) return run.ending.how;
  const age = board.now() - run.changed;
  return age < 60
    ? 'being written'
    : `written ${age < 3600 ? agoText(age) : age < 86_400 ? `${Math.round(age / 3600)} h ago` : `${Math.round(age / 86_400)} d ago`}`;
}

/** A bar that is full at 1. @param {number} share @returns {SVGElement} */
function meter(share) {
  const width = Math.max(0, Math.min(100, share * 100));
  return svg(
    'svg',
    { class: 'meter', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'back', width: 100, height: 10 }),
    svg('rect', { class: 'full', width, height: 10 }),
  );
}

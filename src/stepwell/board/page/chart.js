// SPDX-License-Identifier: Apache-2.0
//
// One chart: the curves of one tag in several runs, with a table of values below it.
'use strict';

/**
 * @typedef {{axis: Axis, isLog: boolean, smoothing: number, zoom: {from: number, to: number} | null, cursor: number | null}} View
 * @typedef {{run: string, place: number, start: number, perStep: number, tag: Tag, marks: Mark[], points: Point[]}} ChartRun
 * @typedef {{view: View, setZoom: (zoom: View['zoom']) => void, setCursor: (x: number | null) => void,
 *   runsOf: (tag: string) => ChartRun[], isPinned: (tag: string) => boolean, togglePin: (tag: string) => void}} ChartOwner
 */

const seriesColours = 6;
/** Kinds of marks that are drawn as lines; others are listed only. */
const quietMarks = new Set(['start', 'checkpoint']);

/** The colours of the theme that were used already. @type {Map<string, string>} */
const palette = new Map();

/** Returns a colour of the theme. @param {string} name */
function colour(name) {
  const known = palette.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  palette.set(name, known);
  return known;
}

/** A sample of a run's line, for tables. @param {number} place */
function swatch(place) {
  const dash = place >= seriesColours ? '5 3' : null;
  const line = svg('path', { d: 'M0 4h18', stroke: 'currentColor', 'stroke-width': 4, 'stroke-dasharray': dash });
  return svg('svg', { class: `swatch s${(place % seriesColours) + 1}`, viewBox: '0 0 18 8', 'aria-hidden': 'true' }, line);
}

/** @param {number} x @param {Axis} axis */
function positionText(x, axis) {
  if (axis === 'step') return `step ${countText(x)}`;
  return axis === 'time' ? clockText(x) : `after ${durationText(x)}`;
}

/**
 * Returns the lowest and the highest value of a curve, also of the points that the server has not counted yet.
 * @param {Tag} tag @param {Point[]} points
 */
function extremes(tag, points) {
  const known = (/** @type {Tag['min']} */ value, /** @type {number | undefined} */ step) => ({ value: value ?? null, step });
  const all = [known(tag.min, tag.min_step), known(tag.max, tag.max_step), ...points].filter((one) => Number.isFinite(one.value));
  const sorted = all.sort((a, b) => Number(a.value) - Number(b.value));
  return [sorted[0] ?? known(tag.min, undefined), sorted.at(-1) ?? known(tag.max, undefined)];
}

class Chart {
  /** @param {string} tag @param {ChartOwner} owner */
  constructor(tag, owner) {
    this.tag = tag;
    this.owner = owner;
    /** @type {Map<string, Curve>} the curves as the server sent them */
    this.curves = new Map();
    /** What was known of a run when its curve was read. @type {Map<string, {range: string, tag: Tag}>} */
    this.asked = new Map();
    /** @type {{run: ChartRun, curve: Curve, data: Drawable}[]} the curves in the units of the chart */
    this.drawn = [];
    /** @type {Drawable[]} their parts in view */
    this.parts = [];
    /** @type {Span} */
    this.xRange = [0, 1];
    /** @type {Span} */
    this.yRange = [0, 1];
    this.unit = 1;
    /** @type {uPlot | null} */
    this.plot = null;
    /** @type {MouseEvent | undefined} the last event that has moved the cursor */
    this.mouseEvent = undefined;
    this.isVisible = false;
    this.isWide = false;
    this.wantsData = true;
    /** @type {AbortController | null} */
    this.loading = null;
    const button = (
      /** @type {keyof typeof iconPaths} */ name,
      /** @type {string} */ text,
      /** @type {() => void} */ onclick,
      /** @type {object} */ more = {},
    ) =>
      el(
        'button',
        { class: 'quiet', type: 'button', 'aria-label': `${text}: ${shorten(this.tag, 80)}`, title: text, onclick, ...more },
        icon(name),
      );
    this.pinButton = button('pin', 'Pin to the top', () => this.owner.togglePin(this.tag), {
      'aria-pressed': String(this.owner.isPinned(this.tag)),
    });
    this.wideButton = button('wide', 'Wide', () => this.setWide(!this.isWide), { 'aria-pressed': 'false' });
    const save = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ onclick) =>
      el('button', { class: 'quiet', type: 'button', 'aria-label': `Download as ${text}: ${shorten(this.tag, 80)}`, title, onclick }, text);
    this.area = el('div', {
      class: 'plot',
      tabindex: 0,
      role: 'slider',
      'aria-label': `Curve ${shorten(this.tag, 80)}. Arrow keys move along it, plus and minus zoom, 0 shows all.`,
      'aria-valuemin': 0,
      'aria-valuemax': 100,
      'aria-valuenow': 100,
      'aria-valuetext': 'loading',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
    });
    this.note = el('div', { class: 'note' }, 'Loading …');
    this.area.append(this.note);
    this.head = el('th', { class: 'number', scope: 'col' }, 'now');
    this.rows = el('tbody');
    const header = (/** @type {string} */ text) => el('th', { class: 'number', scope: 'col' }, text);
    const table = el(
      'table',
      null,
      el('thead', null, el('tr', null, el('th', { scope: 'col' }, 'run'), this.head, header('lowest'), header('highest'))),
      this.rows,
    );
    this.element = el(
      'article',
      { class: 'card chart', 'aria-label': shorten(this.tag, 200) },
      el(
        'header',
        null,
        el('h3', { class: 'clamp', title: visible(shorten(this.tag, 1000)) }, shorten(this.tag, 300)),
        el(
          'div',
          { class: 'tools' },
          this.pinButton,
          this.wideButton,
          save('CSV', 'The values in view as CSV', () => this.saveCsv()),
          save('SVG', 'The chart as SVG', () => this.saveSvg()),
        ),
      ),
      this.area,
      el('div', { class: 'scroll short', tabindex: 0, role: 'region', 'aria-label': `Values of ${shorten(this.tag, 80)}` }, table),
    );
  }

  /** @param {boolean} isWide */
  setWide(isWide) {
    this.isWide = isWide;
    this.element.classList.toggle('wide', isWide);
    this.wideButton?.setAttribute('aria-pressed', String(isWide));
    this.resize();
    this.reload();
  }

  /** Called when the chart comes into view or leaves it. @param {boolean} isVisible */
  setVisible(isVisible) {
    this.isVisible = isVisible;
    if (isVisible) this.show();
  }

  /** Reads the curves again, now or when the chart comes into view. @param {boolean} [atOnce] ends a request that is under way */
  reload(atOnce = true) {
    this.wantsData = true;
    if (atOnce) this.loading?.abort();
    if (atOnce) this.loading = null;
    if (this.isVisible) this.show();
  }

  /** Draws, and reads the curves if they are wanted. */
  show() {
    if (this.wantsData && !this.loading) void this.load();
    else if (!this.plot) this.draw();
  }

  /** Forgets the curves, because they may be those of another server. */
  forget() {
    this.asked.clear();
  }

  async load() {
    const controller = new AbortController();
    this.loading = controller;
    this.wantsData = false;
    const runs = this.owner.runsOf(this.tag);
    try {
      const curves = await Promise.all(runs.map((run) => this.read(run, controller.signal)));
      if (this.loading !== controller) return;
      this.curves = new Map(runs.map((run, i) => [run.run, curves[i]]));
      this.draw();
    } catch (error) {
      if (this.loading !== controller) return;
      if (!this.plot) this.say(error instanceof Error ? error.message : String(error), true);
    }
    this.loading = null;
    if (this.wantsData && this.isVisible) void this.load();
  }

  /** Returns the curve of a run. Asks the server for what is new only. @param {ChartRun} run @param {AbortSignal} signal */
  async read(run, signal) {
    const wanted = this.range(run);
    const range = JSON.stringify(wanted);
    const { tag } = run;
    const known = this.curves.get(run.run);
    const before = this.asked.get(run.run);
    const isSame = before !== undefined && before.range === range && before.tag.revision === tag.revision;
    if (known && isSame) {
      const isPast = wanted.axis === 'step' && Number(wanted.to) < before.tag.last_step;
      if (isPast || (before.tag.points === tag.points && before.tag.last_step === tag.last_step)) return known;
    }
    const isPart = known && isSame && wanted.axis === undefined && known.fixedPoints > 0 && known.count < 2 * Number(wanted.buckets);
    const news = await getCurve(isPart ? { ...wanted, since: known.fixedPoints, revision: known.revision } : wanted, signal);
    this.asked.set(run.run, { range, tag });
    return isPart && news.revision === known.revision ? withNews(known, news) : news;
  }

  /** Returns the parameters of a request: the range in view, and before it as much as the smoothing needs. @param {ChartRun} run */
  range(run) {
    const { axis, zoom, smoothing } = this.owner.view;
    const buckets = Math.min(2048, Math.max(256, Math.ceil(this.area.clientWidth / 128) * 128));
    /** @type {Record<string, string | number>} */
    const range = { run: run.run, tag: this.tag, buckets };
    if (!zoom) return range;
    const shift = axis === 'relative' ? run.start : 0;
    const margin = Math.min(zoom.to - zoom.from, 6 * smoothing * (axis === 'step' ? 1 : run.perStep));
    range.axis = axis === 'step' ? 'step' : 'time';
    range.from = zoom.from + shift - margin;
    range.to = zoom.to + shift;
    range.buckets = Math.min(8192, Math.ceil(buckets * (1 + margin / (zoom.to - zoom.from || 1))));
    return range;
  }

  /** Draws the curves and their table. What cannot be drawn is reported in the chart, and does not disturb the page. */
  draw() {
    try {
      this.tryToDraw();
    } catch (error) {
      this.plot?.destroy();
      this.plot = null;
      this.say(`This curve cannot be drawn: ${error instanceof Error ? error.message : error}`, true);
    }
  }

  tryToDraw() {
    const { view } = this.owner;
    const known = this.owner.runsOf(this.tag).flatMap((run) => {
      const curve = this.curves.get(run.run);
      return curve ? [{ run, curve: view.zoom ? curve : withPoints(curve, run.points) }] : [];
    });
    this.unit = view.isLog ? 1 : unitOf(Math.max(0, ...known.map(({ curve }) => sizeOfCurve(curve))));
    this.drawn = known.map(({ run, curve }) => ({ run, curve, data: drawable(curve, view, run.start, this.unit) }));
    const ends = this.drawn.flatMap(({ data }) => (data.x.length > 0 ? [data.x[0], data.x[data.x.length - 1]] : []));
    const { from, to } = view.zoom ?? (ends.length > 0 ? { from: Math.min(...ends), to: Math.max(...ends) } : { from: 0, to: 1 });
    this.xRange = soundRange(from, to, leastWidth(view.axis));
    this.parts = this.drawn.map(({ data }) => clipped(data, this.xRange, view.isLog));
    const shown = extent(this.parts, this.xRange, view.isLog);
    this.yRange = shown ? valueRange(...shown, view.isLog) : view.isLog ? [1, 10] : [0, 1];
    for (const part of this.parts) limitValues(part, this.yRange, view.isLog);
    this.shape = this.drawn.map(({ run }) => run.run).join('\n') + view.axis + view.isLog;
    if (this.plot && this.plotShape === this.shape) this.plot.setData(this.columns());
    else this.makePlot();
    const isEmpty = shown === null && this.parts.every((part) => part.bad.length === 0);
    const hides = view.isLog && isEmpty && this.drawn.some(({ curve }) => curve.count > 0);
    this.say(isEmpty ? (hides ? 'No positive value, so nothing to show on a logarithmic axis' : 'No value in this range') : '');
    this.showValues();
  }

  /** @param {string} text @param {boolean} [isError] */
  say(text, isError = false) {
    this.note.hidden = text === '';
    if (isError) fill(this.note, el('span', { class: 'hint error' }, text, ' ', 'It is tried again with the next change.'));
    else fill(this.note, text);
  }

  /** @returns {uPlot.AlignedData} */
  columns() {
    const tables = this.parts.map((part) => /** @type {uPlot.AlignedData} */ ([part.x, part.high, part.low, part.line]));
    if (tables.length === 0) return [[]];
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  makePlot() {
    this.plot?.destroy();
    const { view } = this.owner;
    const text = colour('soft');
    const axis = { stroke: text, font: '12px system-ui, sans-serif', grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false } };
    // Both axes have ranges and ticks of their own: those of uPlot have no bounds. It skips an axis whose increment it finds unfit; 5 is fit.
    const own = { ...axis, incrs: () => [5], space: 0, filter: (/** @type {uPlot} */ _, /** @type {number[]} */ splits) => splits };
    /** @type {{at: number[], texts: string[]}} */
    let xTicks = { at: [], texts: [] };
    /** @type {{at: number[], texts: string[]}} */
    let yTicks = { at: [], texts: [] };
    /** @type {uPlot.Series[]} */
    const series = [{}];
    /** @type {uPlot.Band[]} */
    const bands = [];
    for (const { run } of this.drawn) {
      const stroke = colour(`series-${(run.place % seriesColours) + 1}`);
      const high = series.length;
      const points = { show: false };
      series.push({ width: 0, points }, { width: 0, points });
      series.push({
        stroke,
        width: 1.75,
        dash: run.place >= seriesColours ? [6, 4] : undefined,
        points: {
          show: this.drawn.every((one) => one.curve.count < 40),
          filter: (plot, series, isShown) => {
            const [xs, values] = [plot.data[0], plot.data[series]];
            if (isShown) return Array.from(xs, (_, i) => i); // uPlot leaves out positions that occur twice
            return narrowIslands(values, xs, this.xRange, plot.posToVal(1.5, 'x') - plot.posToVal(0, 'x'));
          },
          size: 5,
          fill: stroke,
        },
      });
      bands.push({ series: [high, high + 1], fill: `${stroke}38` });
    }
    this.plotShape = this.shape;
    this.plot = new uPlot(
      {
        ...this.size(),
        legend: { show: false },
        padding: [16, 12, 0, 0],
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: true, y: false, setScale: false },
          bind: { dblclick: () => () => (this.owner.setZoom(null), null) },
        },
        scales: {
          x: { time: view.axis === 'time', range: () => this.xRange },
          y: { distr: view.isLog ? 3 : 1, range: () => this.yRange },
        },
        axes: [
          {
            ...own,
            size: 24,
            splits: (plot) => (xTicks = positionTicks(this.xRange, view.axis, Math.max(2, plot.width / 110))).at,
            values: () => xTicks.texts,
          },
          {
            ...own,
            size: (_, texts) => Math.max(64, 16 + 7 * Math.max(0, ...(texts ?? []).map((text) => text.length))),
            splits: (plot) => (yTicks = valueTicks(this.yRange, view.isLog, this.unit, Math.max(2, plot.height / 32))).at,
            values: () => yTicks.texts,
          },
        ],
        series,
        bands,
        hooks: {
          draw: [(plot) => this.drawMarks(plot), (plot) => this.placeCursor(plot)],
          setSelect: [(plot) => this.onSelect(plot)],
          setCursor: [(plot) => this.onCursor(plot)],
        },
      },
      this.columns(),
      this.area,
    );
  }

  size() {
    return { width: Math.max(160, this.area.clientWidth), height: this.isWide ? 400 : 220 };
  }

  resize() {
    const size = this.size();
    if (this.plot && (this.plot.width !== size.width || this.plot.height !== size.height)) this.plot.setSize(size);
  }

  /** Marks what happened to the runs, and NaN and infinity. @param {uPlot} plot */
  drawMarks(plot) {
    const { ctx, bbox } = plot;
    const scale = uPlot.pxRatio;
    ctx.save();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'alphabetic';
    const right = bbox.left + bbox.width;
    const marks = this.marks()
      .map((one) => ({ ...one, left: Math.round(plot.valToPos(one.x, 'x', true)) }))
      .filter(({ left }) => left >= bbox.left && left <= right);
    let free = bbox.left;
    marks.forEach(({ run, mark, left }, i) => {
      ctx.strokeStyle = ctx.fillStyle = colour(markLook(mark.kind) === 'bad' ? 'bad' : 'warn');
      ctx.lineWidth = scale * 1.5;
      ctx.setLineDash([4 * scale, 3 * scale]);
      ctx.beginPath();
      ctx.moveTo(left, bbox.top - 4 * scale);
      ctx.lineTo(left, bbox.top + bbox.height);
      ctx.stroke();
      const kind = visible(this.drawn.length > 1 ? `${shorten(mark.kind, 16)} (${shorten(run, 12)})` : shorten(mark.kind, 16));
      const width = ctx.measureText(kind).width;
      const start = Math.min(left - 2 * scale, right - width);
      if (start < free) return;
      const room = (marks[i + 1]?.left ?? right) - start - 12 * scale;
      const text = room > 2 * width ? shorten(`${kind}: ${visible(mark.text)}`, Math.floor((room / width) * kind.length * 0.95)) : kind;
      ctx.fillText(text, start, bbox.top - 6 * scale);
      free = start + ctx.measureText(text).width + 6 * scale;
    });
    ctx.setLineDash([]);
    ctx.fillStyle = colour('bad');
    for (const part of this.parts) {
      let before = -Infinity;
      for (const x of part.bad) {
        const left = plot.valToPos(x, 'x', true);
        if (left < bbox.left || left > right || left - before < 3 * scale) continue;
        const bottom = bbox.top + bbox.height;
        ctx.beginPath();
        ctx.moveTo(left, bottom - 9 * scale);
        ctx.lineTo(left + 5 * scale, bottom);
        ctx.lineTo(left - 5 * scale, bottom);
        ctx.fill();
        if (left - before > 40 * scale) ctx.fillText('NaN/∞', Math.min(left + 7 * scale, right - 34 * scale), bottom - 4 * scale);
        before = left;
      }
    }
    ctx.restore();
  }

  /** @returns {{run: string, x: number, mark: Mark}[]} */
  marks() {
    const { axis } = this.owner.view;
    return this.drawn
      .flatMap(({ run }) =>
        run.marks
          .filter((mark) => !quietMarks.has(mark.kind))
          .map((mark) => ({ run: run.run, mark, x: axis === 'step' ? mark.step : axis === 'time' ? mark.time : mark.time - run.start })),
      )
      .sort((a, b) => a.x - b.x);
  }

  /** @param {uPlot} plot */
  onSelect(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const zoom = { from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') };
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.owner.setZoom(zoom);
  }

  /** @param {uPlot} plot */
  onCursor(plot) {
    const { left, event } = plot.cursor;
    if (!event || event === this.mouseEvent) return; // the plot was drawn, or follows the position that all charts share
    this.mouseEvent = event;
    this.owner.setCursor(left === undefined || left < 0 ? null : plot.posToVal(left, 'x'));
  }

  /** Moves the cursor to the position that all charts share. @param {uPlot} plot */
  placeCursor(plot) {
    const { cursor } = this.owner.view;
    plot.setCursor(cursor === null ? { left: -10, top: -10 } : { left: plot.valToPos(cursor, 'x'), top: 10 });
  }

  followCursor() {
    if (this.plot) this.placeCursor(this.plot);
    this.showValues();
  }

  /** Fills the table: the values at the cursor, or the newest ones. */
  showValues() {
    const { cursor, axis } = this.owner.view;
    const rows = this.drawn.map(({ run, curve, data }) => {
      const i = cursor === null ? curve.count - 1 : nearest(data.x, cursor);
      return { run, curve, i, data };
    });
    const first = rows.find(({ i }) => i >= 0);
    const near = cursor === null ? undefined : this.markNear(cursor);
    fill(this.head, cursor === null ? 'now' : positionText(first ? first.data.x[first.i] : cursor, axis));
    fill(
      this.rows,
      rows.map(({ run, curve, i }) => {
        const isNew = cursor === null && run.points.length > 0;
        const value = i < 0 ? '–' : bucketText(curve, i, cursor === null);
        const [lowest, highest] = extremes(run.tag, run.points);
        return el(
          'tr',
          null,
          el('th', { scope: 'row' }, swatch(run.place), shorten(run.run, 60)),
          el('td', { class: isNew ? 'number best' : 'number' }, value),
          el('td', { class: 'number', title: atStep(lowest.step) }, valueText(lowest.value)),
          el('td', { class: 'number', title: atStep(highest.step) }, valueText(highest.value)),
        );
      }),
      near &&
        el(
          'tr',
          null,
          el('td', { colspan: 4 }, el('span', { class: `pill ${markLook(near.kind)}` }, near.kind), ' ', shorten(near.text, 300)),
        ),
    );
    this.describe(
      rows.map(({ run, curve, i }) => `${shorten(run.run, 40)} ${i < 0 ? 'no value' : bucketText(curve, i, cursor === null)}`).join(', '),
    );
  }

  /** @param {number} x @returns {Mark | undefined} */
  markNear(x) {
    const { plot } = this;
    if (!plot) return undefined;
    return this.marks().find((one) => Math.abs(plot.valToPos(one.x, 'x') - plot.valToPos(x, 'x')) < 8)?.mark;
  }

  /** Says the values to screen readers. @param {string} values */
  describe(values) {
    const { cursor, axis } = this.owner.view;
    const { min, max } = this.plot?.scales.x ?? {};
    const share = cursor === null || min == null || max == null ? 1 : (cursor - min) / (max - min || 1);
    this.area.setAttribute('aria-valuenow', String(Math.round(Math.min(1, Math.max(0, share)) * 100)));
    this.area.setAttribute('aria-valuetext', `${cursor === null ? 'now' : positionText(cursor, axis)}: ${values || 'no values'}`);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { min, max } = this.plot?.scales.x ?? {};
    if (min == null || max == null || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.owner.view.cursor ?? max;
    const step = (max - min) * (event.shiftKey ? 0.1 : 0.01);
    const zoomBy = (/** @type {number} */ factor) =>
      this.owner.setZoom({ from: Math.max(at - (at - min) * factor, at - (max - min) * factor), to: at + (max - at) * factor });
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => this.owner.setCursor(Math.max(min, at - step)),
      ArrowRight: () => this.owner.setCursor(Math.min(max, at + step)),
      Home: () => this.owner.setCursor(min),
      End: () => this.owner.setCursor(max),
      '+': () => zoomBy(0.5),
      '=': () => zoomBy(0.5),
      '-': () => zoomBy(2),
      0: () => this.owner.setZoom(null),
      Escape: () => (this.owner.view.cursor === null ? this.owner.setZoom(null) : this.owner.setCursor(null)),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  saveCsv() {
    const curves = this.drawn.map(({ run, curve }) => ({ run: run.run, curve }));
    download(`${shorten(this.tag, 60)}.csv`, curvesToCsv(this.tag, curves), 'text/csv');
  }

  saveSvg() {
    const { axis, isLog } = this.owner.view;
    const content = chartToSvg({
      title: shorten(this.tag, 100),
      isLog,
      x: this.xRange,
      y: this.yRange,
      xTicks: positionTicks(this.xRange, axis, 6),
      yTicks: valueTicks(this.yRange, isLog, this.unit, 5),
      colours: { text: colour('text'), line: colour('grid'), back: colour('card') },
      runs: this.drawn.map(({ run }, i) => ({
        name: run.run,
        colour: colour(`series-${(run.place % seriesColours) + 1}`),
        dash: run.place >= seriesColours ? '6 4' : '',
        data: this.parts[i],
      })),
    });
    download(`${shorten(this.tag, 60)}.svg`, content, 'image/svg+xml');
  }

  /** Draws again with other colours. */
  restyle() {
    if (!this.plot) return;
    this.plotShape = '';
    this.draw();
  }

  remove() {
    this.loading?.abort();
    this.loading = null;
    this.plot?.destroy();
    this.element.remove();
  }
}

/** @param {string} kind */
function markLook(kind) {
  if (kind === 'checkpoint') return 'good';
  if (['recovery', 'rollback', 'nan', 'retry', 'failure'].includes(kind)) return 'bad';
  return kind === 'start' ? 'neutral' : 'warn';
}

/** @param {number | undefined} step */
function atStep(step) {
  return step == null ? null : `at step ${countText(step)}`;
}

/** Writes a bucket: its only value, or its mean and its range. @param {Curve} curve @param {number} i @param {boolean} isNewest */
function bucketText(curve, i, isNewest) {
  const bad = curve.nan[i] + curve.pos_inf[i] + curve.neg_inf[i];
  if (isNewest || curve.finite[i] + bad === 1) return valueText(curve.last[i]);
  if (curve.finite[i] === 0) return valueText(curve.last[i]);
  const range =
    curve.min[i] === curve.max[i]
      ? valueText(curve.mean[i])
      : `${valueText(curve.mean[i])} (${valueText(curve.min[i])} to ${valueText(curve.max[i])})`;
  return bad > 0 ? `${range}, NaN/∞ ${countText(bad)}×` : range;
}

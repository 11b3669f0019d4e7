// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on curves: live points, positions on the axis, smoothing, and the formats of downloads. Knows no element of the page.
'use strict';

/** @typedef {'step' | 'time' | 'relative'} Axis */
/** @typedef {{step: number, time: number, value: number}} Point */
/** @typedef {{x: number[], low: (number | null)[], high: (number | null)[], line: (number | null)[], bad: number[]}} Drawable */

/**
 * Returns the curve with points after its end, each in a bucket of its own. Points that the curve has already are left out.
 * @param {Curve} curve
 * @param {Point[]} points
 * @returns {Curve}
 */
function withPoints(curve, points) {
  const last = curve.count > 0 ? curve.step_last[curve.count - 1] : -Infinity;
  const added = points.filter((point) => point.step > last);
  if (added.length === 0) return curve;
  /** @type {Record<string, (point: Point) => number>} */
  const column = {
    step_first: (point) => point.step,
    step_last: (point) => point.step,
    time_first: (point) => point.time,
    time_last: (point) => point.time,
    finite: (point) => Number(Number.isFinite(point.value)),
    nan: (point) => Number(Number.isNaN(point.value)),
    pos_inf: (point) => Number(point.value === Infinity),
    neg_inf: (point) => Number(point.value === -Infinity),
    last: (point) => point.value,
  };
  const finite = (/** @type {Point} */ point) => (Number.isFinite(point.value) ? point.value : NaN);
  const made = { ...curve, count: curve.count + added.length, points: curve.points + added.length };
  for (const name of curveColumns) made[name] = Float64Array.from([...curve[name], ...added.map(column[name] ?? finite)]);
  return made;
}

/**
 * Returns the exponential mean of a curve at the end of each bucket. `scale` is the distance in steps after which a value counts 1/e.
 * Because it is a distance in steps and not in buckets, the same step has the same smoothed value at each zoom.
 * @param {Curve} curve
 * @param {number} scale
 * @returns {(number | null)[]}
 */
function smoothed(curve, scale) {
  /** @type {(number | null)[]} */
  const result = new Array(curve.count).fill(null);
  let sum = 0;
  let weight = 0;
  let before = curve.count > 0 ? curve.step_first[0] - 1 : 0;
  for (let i = 0; i < curve.count; ++i) {
    if (curve.finite[i] === 0) continue;
    const keep = Math.exp(-Math.max(1, curve.step_last[i] - before) / scale);
    sum = sum * keep + curve.mean[i] * (1 - keep);
    weight = weight * keep + (1 - keep);
    before = curve.step_last[i];
    result[i] = sum / weight;
  }
  return result;
}

/**
 * @param {Curve} curve
 * @param {number} i
 * @param {Axis} axis
 * @param {number} start time of the first point of the run
 */
function xOf(curve, i, axis, start) {
  if (axis === 'step') return curve.step_last[i];
  return axis === 'time' ? curve.time_last[i] : curve.time_last[i] - start;
}

/**
 * Returns the columns that a chart draws: the band from the lowest to the highest value, the line, and the positions of NaN and infinity.
 * @param {Curve} curve
 * @param {{axis: Axis, isLog: boolean, smoothing: number}} view
 * @param {number} start
 * @returns {Drawable}
 */
function drawable(curve, view, start) {
  const line = view.smoothing > 0 ? smoothed(curve, view.smoothing) : null;
  /** @type {Drawable} */
  const made = { x: [], low: [], high: [], line: [], bad: [] };
  let previous = -Infinity;
  const shown = (/** @type {number | null} */ value) =>
    value === null || Number.isNaN(value) || (view.isLog && value <= 0) ? null : value;
  for (let i = 0; i < curve.count; ++i) {
    const x = Math.max(previous, xOf(curve, i, view.axis, start)); // a clock that was set back does not turn the curve back
    previous = x;
    made.x.push(x);
    made.low.push(shown(curve.min[i]));
    made.high.push(shown(curve.max[i]));
    made.line.push(shown(line ? line[i] : curve.mean[i]));
    if (curve.nan[i] + curve.pos_inf[i] + curve.neg_inf[i] > 0) made.bad.push(x);
  }
  return made;
}

/**
 * Returns the index of the value nearest to x in an ascending list, -1 if the list is empty.
 * @param {ArrayLike<number>} list
 * @param {number} x
 */
function nearest(list, x) {
  let low = 0;
  let high = list.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - list[low - 1] < list[low] - x ? low - 1 : Math.min(low, list.length - 1);
}

/** @param {string} text */
function csvField(text) {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text; // a spreadsheet must not run a tag as a formula
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/**
 * Returns the buckets of curves as CSV.
 * @param {string} tag
 * @param {{run: string, curve: Curve}[]} curves
 */
function curvesToCsv(tag, curves) {
  const rows = [`run,tag,${curveColumns.join(',')}`];
  for (const { run, curve } of curves) {
    for (let i = 0; i < curve.count; ++i) {
      rows.push([csvField(run), csvField(tag), ...curveColumns.map((name) => curve[name][i])].join(','));
    }
  }
  return `${rows.join('\n')}\n`;
}

/** Returns about `count` round numbers between two values. @param {number} from @param {number} to @param {number} count */
function roundNumbers(from, to, count) {
  const rough = (to - from) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const list = [];
  for (let i = Math.ceil(from / step); i * step <= to; ++i) list.push(i * step);
  return list;
}

/**
 * Returns a chart as the text of an SVG file.
 * @param {{title: string, isLog: boolean, x: [number, number], y: [number, number], xText: (x: number) => string, colours: {text: string,
 *   line: string, back: string}, runs: {name: string, colour: string, dash: string, data: Drawable}[]}} chart
 */
function chartToSvg(chart) {
  const [width, height, left, top, right, bottom] = [800, 420, 72, 40, 784, 340];
  const scaled = (/** @type {number} */ y) => (chart.isLog ? Math.log10(y) : y);
  const [low, high] = chart.y.map(scaled);
  const toX = (/** @type {number} */ x) => left + ((x - chart.x[0]) / (chart.x[1] - chart.x[0] || 1)) * (right - left);
  const toY = (/** @type {number} */ y) => bottom - ((scaled(y) - low) / (high - low || 1)) * (bottom - top);
  const root = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height });
  const text = (/** @type {number} */ x, /** @type {number} */ y, /** @type {string} */ anchor, /** @type {string} */ content) =>
    svg('text', { x, y, fill: chart.colours.text, 'text-anchor': anchor, 'font-family': 'sans-serif', 'font-size': 12 }, content);
  const area = svg('svg', {
    x: left,
    y: top,
    width: right - left,
    height: bottom - top,
    viewBox: `${left} ${top} ${right - left} ${bottom - top}`,
  });
  root.append(svg('rect', { width, height, fill: chart.colours.back }), text(left, 24, 'start', chart.title));
  for (const value of roundNumbers(low, high, 5)) {
    const y = bottom - ((value - low) / (high - low || 1)) * (bottom - top);
    root.append(svg('path', { d: `M${left} ${y.toFixed(1)}H${right}`, stroke: chart.colours.line }));
    root.append(text(left - 8, y + 4, 'end', valueText(chart.isLog ? 10 ** value : value)));
  }
  for (const value of roundNumbers(...chart.x, 6)) root.append(text(toX(value), bottom + 18, 'middle', chart.xText(value)));
  chart.runs.forEach((run, index) => {
    const at = (/** @type {(number | null)[]} */ column, /** @type {number} */ i) =>
      `${toX(run.data.x[i]).toFixed(1)} ${toY(/** @type {number} */ (column[i])).toFixed(1)}`;
    const all = run.data.x.map((_, i) => i);
    const band = all.filter((i) => run.data.low[i] !== null && run.data.high[i] !== null);
    const outline = [...band.map((i) => at(run.data.high, i)), ...band.reverse().map((i) => at(run.data.low, i))];
    if (outline.length > 2) area.append(svg('path', { d: `M${outline.join('L')}Z`, fill: run.colour, 'fill-opacity': 0.2 }));
    let path = '';
    for (const i of all)
      path += run.data.line[i] === null ? '' : `${i > 0 && run.data.line[i - 1] !== null ? 'L' : 'M'}${at(run.data.line, i)}`;
    if (path)
      area.append(svg('path', { d: path, fill: 'none', stroke: run.colour, 'stroke-width': 1.5, 'stroke-dasharray': run.dash || null }));
    const x = left + (index % 4) * 180;
    const y = bottom + 42 + Math.floor(index / 4) * 18;
    root.append(
      svg('path', { d: `M${x} ${y - 4}h20`, stroke: run.colour, 'stroke-width': 3 }),
      text(x + 26, y, 'start', shorten(run.name, 24)),
    );
  });
  root.append(area);
  return new XMLSerializer().serializeToString(root);
}

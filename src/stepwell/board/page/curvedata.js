// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on curves: live points, positions on the axis, smoothing, and the formats of downloads. Knows no element of the page.
'use strict';

/** @typedef {'step' | 'time' | 'relative'} Axis */
/** @typedef {{step: number, time: number, value: number}} Point */
/** @typedef {(number | null)[]} Column */
/** @typedef {{x: number[], low: Column, high: Column, line: Column, bad: number[]}} Drawable */
const largestPosition = 1e19; // above all steps and times
const columnNames = /** @type {const} */ (['low', 'high', 'line']);

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
 * Returns a curve that the page knows, with the points that the server has sent since. Those that were not in the event files yet are
 * sent again.
 * @param {Curve} known
 * @param {Curve} news
 * @returns {Curve}
 */
function withNews(known, news) {
  const count = known.fixedBuckets;
  const made = { ...news, count: count + news.count, fixedBuckets: count + news.fixedBuckets };
  for (const name of curveColumns) {
    made[name] = new Float64Array(made.count);
    made[name].set(known[name].subarray(0, count));
    made[name].set(news[name], count);
  }
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

/** Returns the largest distance of a curve from 0. @param {Curve} curve */
function sizeOfCurve(curve) {
  let size = 0;
  for (let i = 0; i < curve.count; ++i) if (curve.finite[i] > 0) size = Math.max(size, sizeOf([curve.min[i], curve.max[i]]));
  return size;
}

/**
 * Returns the columns that a chart draws: the band from the lowest to the highest value, the line, and the positions of NaN and infinity.
 * @param {Curve} curve
 * @param {{axis: Axis, isLog: boolean, smoothing: number}} view
 * @param {number} start
 * @param {number} [unit] factor of all values
 * @returns {Drawable}
 */
function drawable(curve, view, start, unit = 1) {
  const line = view.smoothing > 0 ? smoothed(curve, view.smoothing) : null;
  /** @type {Drawable} */
  const made = { x: [], low: [], high: [], line: [], bad: [] };
  let previous = -Infinity;
  const shown = (/** @type {number | null} */ value) =>
    value === null || !Number.isFinite(value) || (view.isLog && value <= 0) ? null : value * unit;
  for (let i = 0; i < curve.count; ++i) {
    const position = xOf(curve, i, view.axis, start);
    // A clock that was set back does not turn the curve back, and one that was never set does not move it.
    const x = Math.abs(position) < largestPosition ? Math.max(previous, position) : Math.max(previous, 0);
    previous = x;
    made.x.push(x);
    const high = shown(curve.max[i]);
    made.low.push(shown(curve.min[i]) ?? (high === null ? null : 0)); // 0 on a logarithmic axis: down to its end
    made.high.push(high);
    made.line.push(line ? shown(line[i]) : (shown(curve.mean[i]) ?? high));
    if (curve.nan[i] + curve.pos_inf[i] + curve.neg_inf[i] > 0) made.bad.push(x);
  }
  return made;
}

/** Returns the number of positions below x in an ascending list. @param {number[]} list @param {number} x @param {boolean} [orEqual] */
function countBelow(list, x, orEqual = false) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < x || (orEqual && list[middle] === x)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns what lies in a range, with the nearest position on each side, so that lines reach the edges. Positions far outside are moved along
 * the line, because a canvas does not draw lines that are very long.
 * @param {Drawable} data
 * @param {Span} range
 * @param {boolean} isLog
 * @returns {Drawable}
 */
function clipped(data, range, isLog) {
  const begin = Math.max(0, countBelow(data.x, range[0]) - 1);
  const end = Math.min(data.x.length, countBelow(data.x, range[1], true) + 1);
  /** @type {Drawable} */
  const made = { x: data.x.slice(begin, end), low: [], high: [], line: [], bad: data.bad.filter((x) => x >= range[0] && x <= range[1]) };
  for (const name of columnNames) made[name] = data[name].slice(begin, end);
  const margin = range[1] - range[0];
  const last = made.x.length - 1;
  const original = { x: [...made.x], low: [...made.low], high: [...made.high], line: [...made.line] };
  const move = (/** @type {number} */ i, /** @type {number} */ neighbour, /** @type {number} */ x) => {
    const share = (x - original.x[i]) / (original.x[neighbour] - original.x[i]);
    made.x[i] = x;
    for (const name of columnNames) {
      const [from, to] = [original[name][i], original[name][neighbour]];
      if (from !== null && to !== null) made[name][i] = isLog ? from * (to / from) ** share || from : from + (to - from) * share;
    }
  };
  if (last > 0 && made.x[0] < range[0] - margin) move(0, 1, range[0] - margin);
  if (last > 0 && made.x[last] > range[1] + margin) move(last, last - 1, range[1] + margin);
  return made;
}

/**
 * Returns the lowest and the highest value in a range of positions; those of the lines that cross it, if no value is in it. Null if there
 * is nothing to draw.
 * @param {Drawable[]} parts results of clipped()
 * @param {Span} range
 * @param {boolean} isLog
 * @returns {Span | null}
 */
function extent(parts, range, isLog) {
  let low = Infinity;
  let high = -Infinity;
  const add = (/** @type {Drawable} */ part, /** @type {number} */ i) => {
    for (const name of columnNames) {
      const y = part[name][i];
      if (y === null || (isLog && y <= 0)) continue;
      low = Math.min(low, y);
      high = Math.max(high, y);
    }
  };
  for (const part of parts) part.x.forEach((x, i) => x >= range[0] && x <= range[1] && add(part, i));
  if (low <= high) return [low, high];
  for (const part of parts) {
    if (part.x.length !== 2 || part.line.includes(null)) continue;
    add(part, 0);
    add(part, 1);
  }
  return low <= high ? [low, high] : null;
}

/** Moves values far outside of a range nearer, because a canvas does not draw lines that are very long. @param {Drawable} part @param {Span} range @param {boolean} isLog */
function limitValues(part, range, isLog) {
  const margin = 50 * (range[1] - range[0]);
  const ratio = (range[1] / range[0]) ** 50;
  const [low, high] = isLog
    ? [Math.max(Number.MIN_VALUE, range[0] / ratio), Math.min(Number.MAX_VALUE, range[1] * ratio)]
    : [range[0] - margin, range[1] + margin];
  for (const name of columnNames) part[name] = part[name].map((y) => (y === null ? null : Math.min(high, Math.max(low, y))));
}

/**
 * Returns a place in each island of values of which so little is in a range that a line would not show it: one value between NaNs, or some
 * within `width`.
 * @param {ArrayLike<number | null | undefined>} values undefined: a position of another curve only
 * @param {ArrayLike<number>} xs
 * @param {Span} range
 * @param {number} width
 */
function narrowIslands(values, xs, [from, to], width) {
  const places = [];
  let first = -1;
  let last = -1;
  for (let i = 0; i <= values.length; ++i) {
    if (i < values.length && values[i] === undefined) continue;
    if (i < values.length && values[i] !== null) {
      last = i;
      if (first < 0) first = i;
      continue;
    }
    let place = first;
    while (place < last && xs[place] < from) ++place;
    if (first >= 0 && Math.min(xs[last], to) - Math.max(xs[first], from) < width) places.push(place);
    first = -1;
  }
  return places;
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

/**
 * Returns a chart as the text of an SVG file.
 * @param {{title: string, isLog: boolean, x: Span, y: Span, xTicks: {at: number[], texts: string[]}, yTicks: {at: number[], texts: string[]},
 *   colours: {text: string, line: string, back: string}, runs: {name: string, colour: string, dash: string, data: Drawable}[]}} chart
 */
function chartToSvg(chart) {
  const [width, height, left, top, right, bottom] = [800, 420, 96, 40, 784, 340];
  const scaled = (/** @type {number} */ y) => (chart.isLog ? Math.log10(y) : y);
  const [low, high] = chart.y.map(scaled);
  const toX = (/** @type {number} */ x) => left + ((x - chart.x[0]) / (chart.x[1] - chart.x[0])) * (right - left);
  const toY = (/** @type {number} */ y) => bottom - ((scaled(y) - low) / (high - low)) * (bottom - top);
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
  chart.yTicks.at.forEach((value, i) => {
    const y = toY(value);
    root.append(svg('path', { d: `M${left} ${y.toFixed(1)}H${right}`, stroke: chart.colours.line }));
    root.append(text(left - 8, y + 4, 'end', chart.yTicks.texts[i]));
  });
  chart.xTicks.at.forEach((value, i) => root.append(text(toX(value), bottom + 18, 'middle', chart.xTicks.texts[i])));
  chart.runs.forEach((run, index) => {
    const { data } = run;
    const at = (/** @type {Column} */ column, /** @type {number} */ i) =>
      `${toX(data.x[i]).toFixed(1)} ${toY(/** @type {number} */ (column[i])).toFixed(1)}`;
    const all = data.x.map((_, i) => i);
    let band = [];
    for (const i of [...all, all.length]) {
      if (i < all.length && data.low[i] !== null && data.high[i] !== null) band.push(i);
      else {
        const outline = [...band.map((k) => at(data.high, k)), ...band.reverse().map((k) => at(data.low, k))];
        if (outline.length > 2) area.append(svg('path', { d: `M${outline.join('L')}Z`, fill: run.colour, 'fill-opacity': 0.2 }));
        band = [];
      }
    }
    let path = '';
    for (const i of all) path += data.line[i] === null ? '' : `${i > 0 && data.line[i - 1] !== null ? 'L' : 'M'}${at(data.line, i)}`;
    if (path)
      area.append(svg('path', { d: path, fill: 'none', stroke: run.colour, 'stroke-width': 1.5, 'stroke-dasharray': run.dash || null }));
    for (const i of narrowIslands(data.line, data.x, chart.x, (1.5 * (chart.x[1] - chart.x[0])) / (right - left))) {
      const [cx, cy] = at(data.line, i).split(' ');
      area.append(svg('circle', { cx, cy, r: 2.5, fill: run.colour }));
    }
    const x = left + (index % 4) * 175;
    const y = bottom + 42 + Math.floor(index / 4) * 18;
    root.append(
      svg('path', { d: `M${x} ${y - 4}h20`, stroke: run.colour, 'stroke-width': 3 }),
      text(x + 26, y, 'start', shorten(run.name, 24)),
    );
  });
  root.append(area);
  return new XMLSerializer().serializeToString(root);
}

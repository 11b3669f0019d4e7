// SPDX-License-Identifier: Apache-2.0
//
// Ranges and ticks of axes. Every range has a width with which positions can be computed, and every list of ticks has a bounded length,
// whatever the values and the zoom are. Knows no element of the page.
'use strict';

/** @typedef {[number, number]} Span */

/** The least width of a range, as a share of its largest end. Below it, neighbouring positions are no longer different numbers. */
const leastShare = 2 ** -44;
const leastValueWidth = 1e-300;
const largest = 2 ** 1022;
const leastDecades = 1e-9;
const leastExact = 1e-310;

/** Returns the largest distance from 0. @param {Span} range */
function sizeOf([from, to]) {
  return Math.max(Math.abs(from), Math.abs(to));
}

/**
 * Returns a range in which positions can be computed: `[from, to]`, or a wider one around it if that is too narrow.
 * @param {number} from
 * @param {number} to
 * @param {number} least the least width, above zero
 * @returns {Span}
 */
function soundRange(from, to, least) {
  const bounded = (/** @type {number} */ x) => (Number.isNaN(x) ? 0 : Math.min(largest, Math.max(-largest, x)));
  const low = bounded(Math.min(from, to));
  const high = bounded(Math.max(from, to));
  const width = Math.max(least, sizeOf([low, high]) * leastShare);
  if (high - low >= width) return [low, high];
  const middle = low + (high - low) / 2;
  return [middle - width / 2, middle + width / 2];
}

/** The least width of an axis of positions: one step, or a millisecond. @param {string} axis */
function leastWidth(axis) {
  return axis === 'step' ? 1 : 1e-3;
}

/** Returns the factor by which values of this size are multiplied before they are drawn, so that differences of them are finite. @param {number} size */
function unitOf(size) {
  return size > 2 ** 1000 ? 2 ** -100 : 1;
}

/**
 * Returns the range of an axis of values that shows the values from `low` to `high`. A curve that is constant, up to noise, is in the middle.
 * @param {number} low
 * @param {number} high
 * @param {boolean} isLog then both are above zero
 * @returns {Span}
 */
function valueRange(low, high, isLog) {
  if (isLog) {
    const [from, to] = [Math.log10(low), Math.log10(high)];
    const leastPad = low < leastExact ? 1 : to - from < leastDecades ? 0.05 : 0; // the least numbers are far apart
    const pad = Math.max(leastPad, (to - from) * 0.06);
    const least = Math.max(Number.MIN_VALUE, 10 ** (from - pad));
    return [least, Math.min(Number.MAX_VALUE, Math.max(10 ** (to + pad), 4 * Number.MIN_VALUE))];
  }
  const [from, to] = soundRange(low, high, leastValueWidth);
  if (from !== low || to !== high) {
    const half = sizeOf([low, high]) === 0 ? 1 : Math.max(sizeOf([from, to]) * 0.1, leastValueWidth);
    const middle = from + (to - from) / 2;
    return [middle - half, middle + half];
  }
  const pad = (to - from) * 0.06;
  return [from >= 0 ? Math.max(0, from - pad) : from - pad, to <= 0 ? Math.min(0, to + pad) : to + pad];
}

/** Returns the next round number: 1, 2 or 5 times a power of 10. @param {number} rough */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
}

/**
 * Returns the multiples of `step` in a range, at most 100. If there is none, or if they cannot be computed, returns the ends.
 * @param {Span} range
 * @param {number} step
 */
function multiples([from, to], step) {
  const first = Math.ceil(from / step);
  const count = Math.min(100, Math.floor(to / step) - first + 1);
  const list = Array.from({ length: Math.max(0, Number.isFinite(first) ? count || 0 : 0) }, (_, i) => (first + i) * step || 0);
  return list.length > 0 ? list : [from, to];
}

/** Returns about `count` round numbers in a range. @param {Span} range @param {number} count @param {number} [least] the least distance */
function roundTicks(range, count, least = 0) {
  return multiples(range, Math.max(least, roundStep((range[1] - range[0]) / count)));
}

/** Returns about `count` round numbers for a logarithmic axis. @param {Span} range above zero @param {number} count */
function logTicks(range, count) {
  const [from, to] = range.map(Math.log10);
  const stride = Math.max(1, Math.ceil((to - from) / count));
  const factors = to - from < 3 ? [1, 2, 5] : [1];
  const powers = multiples([Math.floor(from / stride) * stride, Math.ceil(to)], stride);
  const list = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power)).filter((y) => y >= range[0] && y <= range[1]);
  return list.length > 2 ? list : roundTicks(range, count).filter((y) => y >= range[0] && y <= range[1]);
}

const [minute, hour, day] = [60, 3600, 86_400];
/** Distances between ticks of time, in seconds. */
const timeSteps = [1, 2, 5, 10, 15, 30].concat(
  [1, 2, 5, 10, 15, 30].map((count) => count * minute),
  [1, 2, 3, 6, 12].map((count) => count * hour),
  [1, 2, 7, 14].map((count) => count * day),
);

/** Returns the distance of local time from UTC, in seconds. @param {number} time */
function zoneOf(time) {
  return -new Date(time * 1000).getTimezoneOffset() * minute || 0; // NaN for a time that no date has
}

/** Returns about `count` round times in a range of seconds. @param {Span} range @param {number} count @param {boolean} isClock times of day */
function timeTicks(range, count, isClock) {
  const rough = (range[1] - range[0]) / count;
  const found = rough < 1 ? roundStep(rough) : timeSteps.find((step) => step >= rough);
  const zone = isClock ? zoneOf(range[0]) : 0;
  return multiples([range[0] + zone, range[1] + zone], found ?? roundStep(rough / day) * day).map((time) => time - zone);
}

/** Writes numbers so that they differ, if that is possible. @param {number[]} ticks @param {(y: number) => string} text */
function differentTexts(ticks, text) {
  const made = ticks.map(text);
  for (const digits of [6, 9, 12, 15]) {
    if (new Set(made).size === ticks.length) break;
    ticks.forEach((y, i) => (made[i] = String(Number(y.toPrecision(digits))).replace('-', '−')));
  }
  return made;
}

/** Writes times of day, with the date at the first one and where it changes. @param {number[]} ticks */
function clockTexts(ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : minute;
  let before = '';
  return ticks.map((time) => {
    const date = new Date(time * 1000);
    if (Number.isNaN(date.getTime())) return valueText(time);
    const dayText = `${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
    if (step >= day) return `${date.getFullYear()}-${dayText}`;
    const part = step < 1 ? `.${String(date.getMilliseconds()).padStart(3, '0')}` : '';
    const seconds = step < minute ? `:${pad(date.getSeconds())}${part}` : '';
    const text = `${pad(date.getHours())}:${pad(date.getMinutes())}${seconds}`;
    const isNewDay = dayText !== before;
    before = dayText;
    return isNewDay ? `${dayText} ${text}` : text;
  });
}

/**
 * Returns the ticks of an axis of positions, and their texts.
 * @param {Span} range
 * @param {string} axis
 * @param {number} count
 * @returns {{at: number[], texts: string[]}}
 */
function positionTicks(range, axis, count) {
  const at = axis === 'step' ? roundTicks(range, count, 1) : timeTicks(range, count, axis === 'time');
  if (axis === 'time') return { at, texts: clockTexts(at) };
  return { at, texts: differentTexts(at, axis === 'step' ? shortCount : durationText) };
}

/**
 * Returns the ticks of an axis of values that were multiplied by `unit`, and their texts.
 * @param {Span} range
 * @param {boolean} isLog
 * @param {number} unit
 * @param {number} count
 * @returns {{at: number[], texts: string[]}}
 */
function valueTicks(range, isLog, unit, count) {
  const at = (isLog ? logTicks(range, count) : roundTicks(range, count)).filter((y) => Number.isFinite(y / unit));
  return {
    at,
    texts: differentTexts(
      at.map((y) => y / unit),
      valueText,
    ),
  };
}

/** Writes a step on an axis: 1.5k, 20M. @param {number} step */
function shortCount(step) {
  for (const [size, unit] of /** @type {[number, string][]} */ ([
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ])) {
    if (Math.abs(step) >= size * 10 || (Math.abs(step) >= size && step % (size / 100) === 0))
      return `${Number((step / size).toPrecision(6))}${unit}`;
  }
  return String(step);
}

// SPDX-License-Identifier: Apache-2.0
//
// Values and curves that are rare in trainings, and hard for charts.
import { MockServer, Scalars } from './mock_server.mjs';

const ulp = 2 ** -52;
const sizes = [
  5e-324,
  2e-323,
  1e-320,
  1e-310,
  2.3e-308,
  1e-300,
  1e-38,
  1e-12,
  0.1,
  0.99999994,
  1 - ulp,
  1,
  1 + ulp,
  1.0000001,
  3,
  16_777_217,
  1e15,
];
sizes.push(2 ** 53, 2 ** 53 + 2, 9.2e18, 3.4e38, 1e100, 1e300, 1e300 * (1 + ulp), 1.7e308, Number.MAX_VALUE);
/** A grid of values: all of them are numbers that an event file can have. */
export const grid = [...sizes.map((size) => -size), 0, ...sizes];

/** Returns a generator of pseudo-random numbers from 0 to 1. */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const valueKinds = {
  constant: (random) => {
    const value = grid[Math.floor(random() * grid.length)];
    return () => value;
  },
  'noise of a float': (random) => {
    const middle = Math.fround(10 ** (random() * 12 - 6));
    return () => Math.fround(middle * (1 + (Math.floor(random() * 3) - 1) * 2 ** -23));
  },
  'noise of a double': (random) => {
    const middle = 10 ** (random() * 600 - 300) * (random() < 0.5 ? 1 : -1);
    return () => middle * (1 + (Math.floor(random() * 3) - 1) * ulp);
  },
  denormal: (random) => () => Math.floor(random() * 5) * 5e-324,
  huge: (random) => () => (random() - 0.5) * 2e300,
  largest: (random) => () => (random() < 0.5 ? 1 : -1) * Number.MAX_VALUE * (random() < 0.5 ? 1 : random()),
  'all sizes': (random) => () => 10 ** (random() * 630 - 322),
  'all sizes and signs': (random) => () => (random() < 0.5 ? 1 : -1) * 10 ** (random() * 630 - 322),
  islands: (random) => () => (random() < 0.5 ? NaN : random() * 10),
  'islands of one value': (random) => (i) => (i % 3 === 1 ? random() : [NaN, Infinity, -Infinity][i % 3]),
  'not finite': (random) => () => [NaN, Infinity, -Infinity][Math.floor(random() * 3)],
  'negative and zero': (random) => () => -Math.floor(random() * 3),
  grid: (random) => () => grid[Math.floor(random() * grid.length)],
  usual: (random) => (i) => 2 * Math.exp(-i / 50) + 0.1 * random(),
};

const stepKinds = {
  each: () => (i) => i + 1,
  sparse: (random) => {
    let step = 0;
    return () => (step += Math.floor(10 ** (random() * 7)));
  },
  'the same': () => () => 7,
  huge: () => (i) => 9.2e18 + i * 1024,
  'far apart': () => (i) => [0, 1, 2, 1e15, 1e15 + 1, 9e18][Math.min(i, 5)] + Math.max(0, i - 5) * 2048,
};

const timeKinds = {
  usual: () => (i) => 1.7e9 + i / 10,
  fast: () => (i) => 1.7e9 + i * 1e-7,
  'set back': (random) => () => 1.7e9 + 1e6 * random(),
  'the same': () => () => 1.7e9,
  impossible: (random) => (i) => [0, -1e300, 1e300, NaN, Infinity, 9e15][Math.floor(random() * 6)] + i,
};

const choice = (random, kinds) => {
  const names = Object.keys(kinds);
  return names[Math.floor(random() * names.length)];
};

/** Returns a random curve, and words that describe it. */
export function randomCurve(seed) {
  const random = randomOf(seed);
  const [value, step, time] = [choice(random, valueKinds), choice(random, stepKinds), choice(random, timeKinds)];
  const [values, steps, times] = [valueKinds[value](random), stepKinds[step](random), timeKinds[time](random)];
  const count = Math.ceil(10 ** (random() * 2.5));
  const curve = new Scalars();
  for (let i = 0; i < count; ++i) curve.add(steps(i), times(i), values(i));
  return { name: `curve ${seed}: ${count} values (${value}), steps (${step}), times (${time})`, curve };
}

/** A server with one run, whose curve `odd` a test replaces. */
export async function oddServer(MockRun) {
  const mock = new MockServer();
  const run = new MockRun('r');
  for (let i = 1; i <= 50; ++i) run.curve('odd').add(i, 1.7e9 + i, i);
  mock.runs = [run];
  mock.info = { ...mock.info, mode: 'directory', title: 'odd', actions: [] };
  return mock.listen();
}

/**
 * Source of a function for the page: draws a curve of the chart `odd` in many views, and returns what is wrong and the times in ms. The
 * argument `text` is the body of /api/curve in base64. `isThorough`: zooms with the keyboard, too.
 */
export const oddCurveInPage = `
globalThis.drawOdd = async (text, isThorough) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const curve = decodeCurve(bytes);
  const chart = curves.charts.get('odd');
  const wrong = [];
  const times = { draw: 0, call: 0 };
  let saved = [];
  download = (name, content) => saved.push(content);
  getCurve = async () => decodeCurve(bytes.slice(0));
  const settled = async () => {
    for (let i = 0; i < 20; ++i) await null;
  };
  const timed = async (kind, name, work) => {
    let least = Infinity;
    for (let round = 0; round < 4 && least > (kind === 'draw' ? 100 : 1000); ++round) { // another program may have had the processor
      const begin = performance.now();
      work();
      await settled();
      least = Math.min(least, performance.now() - begin);
    }
    if (least > (kind === 'draw' ? 100 : 1000)) wrong.push(name + ' takes ' + least.toFixed(0) + ' ms');
    times[kind] = Math.max(times[kind], least);
  };
  const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const colours = () => {
    const { ctx, bbox } = chart.plot;
    const [left, top, width, height] = [bbox.left, bbox.top - 4, bbox.width + 4, bbox.height + 8].map(Math.round);
    Object.assign(copy.canvas, { width, height });
    copy.drawImage(ctx.canvas, left, top, width, height, 0, 0, width, height);
    const { data } = copy.getImageData(0, 0, width, height);
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0 && data[i + 2] - data[i] > 60) return true; // the first colour is blue
    return false;
  };
  const check = (name) => {
    const { view } = curves;
    const { x, y } = chart.plot.scales;
    for (const [axis, { min, max }] of [['x', x], ['y', y]])
      if (!Number.isFinite(min) || !Number.isFinite(max) || !(min < max)) wrong.push(name + ': the range of ' + axis + ' is ' + min + ' to ' + max);
    const [xTicks, yTicks] = chart.plot.axes.map((axis) => axis._splits);
    if (!(xTicks?.length > 0 && xTicks.length < 60 && yTicks?.length > 0 && yTicks.length < 60)) wrong.push(name + ': ' + xTicks?.length + ' and ' + yTicks?.length + ' ticks');
    let isExpected = false;
    for (let i = 0; i < curve.count; ++i) {
      const at = chart.drawn[0].data.x[i];
      const isInside = !view.zoom || (at >= view.zoom.from && at <= view.zoom.to);
      isExpected ||= isInside && Number.isFinite(curve.mean[i]) && (!view.isLog || curve.mean[i] > 0);
    }
    const isShown = colours();
    if (isExpected && (!isShown || !chart.note.hidden)) wrong.push(name + ': the chart is blank: ' + chart.note.innerText);
    if (!isExpected && !isShown && chart.note.hidden && chart.parts[0].bad.length === 0) wrong.push(name + ': nothing, and no reason');
  };
  const exported = async (name) => {
    saved = [];
    await timed('call', name + ', export', () => (chart.saveSvg(), chart.saveCsv()));
    const image = new DOMParser().parseFromString(saved[0], 'image/svg+xml');
    if (image.querySelector('parsererror') || /NaN|Infinity|undefined/.test(saved[0])) wrong.push(name + ': the SVG is wrong');
    if (saved[1].split('\\n').length !== curve.count + 2) wrong.push(name + ': the CSV has another number of rows');
  };
  curves.view.zoom = null;
  for (const isLog of [false, true]) {
    for (const axis of ['step', 'time', 'relative']) {
      const name = (isLog ? 'log' : 'linear') + ' over ' + axis;
      chart.curves = new Map([['r', decodeCurve(bytes.slice(0))]]);
      await timed('draw', name, () => curves.setView({ isLog, axis, zoom: null, smoothing: 0 }));
      check(name);
      if (axis !== 'step' && isLog) continue;
      await exported(name);
      await timed('draw', name + ', smooth', () => curves.setView({ smoothing: 100 }));
      await timed('call', name + ', not smooth', () => curves.setView({ smoothing: 0 }));
      const xs = [0, curve.count >> 1, curve.count - 1].map((i) => xOf(curve, i, axis, chart.drawn[0].run.start));
      for (const [at, half] of [[xs[1], 0], [xs[1], 1e-9], [xs[1] + 0.5, 0.25], [(xs[0] + xs[2]) / 2, Math.abs(xs[2] - xs[0]) / 50], [xs[2], 1e18], [0, 1e300]]) {
        const zoomed = name + ', zoom to ' + at + ' and ' + half;
        await timed('draw', zoomed, () => curves.setZoom({ from: at - half, to: at + half }));
        check(zoomed);
      }
      await exported(name + ', zoomed');
    }
    if (!isThorough) continue;
    await timed('call', 'show all', () => curves.setView({ axis: 'step', zoom: null }));
    for (const [key, count] of [['+', 80], ['ArrowLeft', 3], ['+', 20], ['-', 160]])
      for (let i = 0; i < count; ++i) await timed('draw', 'key ' + key + ' ' + i, () => chart.onKey({ key, preventDefault: () => undefined }));
    check('after keys');
  }
  return { wrong: wrong.slice(0, 5), times };
};
undefined`;

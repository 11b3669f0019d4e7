// SPDX-License-Identifier: Apache-2.0
//
// Charts of odd values: the arithmetic of the axes in node, and charts in chromium. STEPWELL_CURVES is the number of random curves (150 if it is
// not set), and STEPWELL_CURVE_SEED the first one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { Browser } from './browser.mjs';
import { MockRun, Scalars } from './mock_server.mjs';
import { grid, oddCurveInPage, oddServer, randomCurve } from './odd_values.mjs';
import { chartOf, loaded, pause } from './page.mjs';

const script = (name) => readFileSync(new URL(`../../src/stepwell/board/page/${name}`, import.meta.url), 'utf8');
const names = [
  'soundRange',
  'leastWidth',
  'unitOf',
  'sizeOf',
  'valueRange',
  'positionTicks',
  'valueTicks',
  'multiples',
  'narrowIslands',
  'clipped',
  'extent',
];
const page = runInNewContext(`${script('base.js')}\n${script('axis.js')}\n${script('curvedata.js')}\n({ ${names.join(', ')} })`, {});
const strange = [NaN, Infinity, -Infinity];

function checkTicks({ at, texts }, [from, to], name) {
  assert.ok(at.length > 0 && at.length <= 40, `${name}: ${at.length} ticks`);
  assert.equal(texts.length, at.length, name);
  const slack = (to - from) * 1e-6;
  at.forEach((tick, i) => {
    assert.ok(tick >= from - slack && tick <= to + slack, `${name}: tick ${tick} is not in ${from} to ${to}`);
    assert.ok(i === 0 || at[i - 1] < tick, `${name}: ticks ${at[i - 1]} and ${tick}`);
    assert.ok(texts[i].length < 40, `${name}: ${texts[i]}`);
  });
}

test('every pair of values has a range with a width, and few ticks in it', () => {
  for (const low of grid) {
    for (const high of grid) {
      if (low > high) continue;
      const unit = page.unitOf(page.sizeOf([low, high]));
      for (const isLog of low > 0 ? [false, true] : [false]) {
        const name = `${low} to ${high}, ${isLog ? 'log' : 'linear'}`;
        const shown = isLog ? [low, high] : [low * unit, high * unit];
        const range = page.valueRange(...shown, isLog);
        assert.ok(range.every(Number.isFinite) && Number.isFinite(range[1] - range[0]) && range[0] < range[1], `${name}: ${range}`);
        assert.ok(range[0] <= shown[0] && range[1] >= shown[1], `${name}: ${range} does not have the values`);
        checkTicks(page.valueTicks(range, isLog, isLog ? 1 : unit, 7), range, name);
      }
    }
  }
});

test('every pair of positions has a range with a width, and few ticks in it', () => {
  for (const from of [...grid, ...strange]) {
    for (const to of [...grid, ...strange, from + 0.5, from + 1, from + 1e5]) {
      for (const axis of ['step', 'time', 'relative']) {
        const range = page.soundRange(from, to, page.leastWidth(axis));
        const name = `${from} to ${to}, ${axis}`;
        assert.ok(Number.isFinite(range[1] - range[0]) && range[1] - range[0] >= page.leastWidth(axis) * 0.999, `${name}: ${range}`);
        checkTicks(page.positionTicks(range, axis, 6), range, name);
      }
    }
  }
});

test('values that no line would show are found, also between the positions of other curves', () => {
  const found = (...values) => [...page.narrowIslands(values, Object.keys(values).map(Number), [0, 100], 1.5)];
  assert.deepEqual(found(1, null, 2, undefined, null, 3, 4, 5, null, undefined, 5, null, 6, 7), [0, 2, 10, 12]);
  assert.deepEqual(found(1), [0]);
  assert.deepEqual(found(undefined, 1, undefined, 2, undefined), []);
  assert.deepEqual(found(null, undefined), []);
});

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.start()));
after(() => browser.stop());

/** Calls `work` with a function that draws a curve in the page and returns the times, and checks that the page reports no problem. */
async function inOddPage(work) {
  const mock = await oddServer(MockRun);
  const tab = await browser.tab();
  try {
    await tab.open(mock.address);
    await loaded(tab, 'odd');
    await tab.evaluate(oddCurveInPage);
    const longest = { draw: 0, call: 0 };
    const failed = [];
    const draw = async (name, curve, isThorough) => {
      const text = curve.reduce(1024, 'step', -Infinity, Infinity).toString('base64');
      const { wrong, times } = await Promise.race([
        tab.evaluate(`drawOdd('${text}', ${isThorough})`),
        pause(60_000).then(() => ({ wrong: ['the page hangs'], times: longest })),
      ]);
      if (wrong.length + tab.problems.length > 0) failed.push([name, ...wrong, ...tab.problems.splice(0)]);
      for (const kind of Object.keys(longest)) longest[kind] = Math.max(longest[kind], times[kind]);
    };
    await work(draw, tab, mock);
    assert.deepEqual(failed, []);
    console.log(`longest time to draw a chart: ${longest.draw.toFixed(0)} ms; longest other call: ${longest.call.toFixed(0)} ms`);
  } finally {
    await tab.close();
    await mock.close();
  }
}

test('a chart of every pair of values is drawn', { timeout: 1_800_000 }, () =>
  inOddPage(async (draw) => {
    const few = grid.filter((_, i) => i % 4 === 0);
    for (const low of few) {
      for (const high of few.filter((one) => one >= low)) {
        const curve = new Scalars();
        for (let i = 0; i < 6; ++i) curve.add(i + 1, 1.7e9 + i, i % 2 === 0 ? low : high);
        await draw(`${low} and ${high}`, curve, false);
      }
    }
  }),
);

test('random curves are drawn within 100 ms, and no call takes longer than a second', { timeout: 3_600_000 }, () =>
  inOddPage(async (draw) => {
    const count = Number(process.env.STEPWELL_CURVES ?? 150);
    const first = Number(process.env.STEPWELL_CURVE_SEED ?? 1);
    for (let seed = first; seed < first + count; ++seed) {
      const { name, curve } = randomCurve(seed);
      await draw(name, curve, seed % 20 === 0);
    }
    console.log(`${count} random curves`);
  }),
);

test('settings that were kept cannot spoil the next visit', { timeout: 300_000 }, () =>
  inOddPage(async (_, tab) => {
    for (const kept of [
      { smoothing: 1e308, axis: 'sideways', theme: 'none', isLog: 'yes', pinned: [1, null, 'odd'] },
      { smoothing: -1, pinned: Array.from({ length: 1e5 }, (_, i) => `tag ${i}`) },
      null,
      [],
    ]) {
      await tab.evaluate(`localStorage.setItem('stepwell-board', ${JSON.stringify(JSON.stringify(kept))})`);
      await tab.call('Page.reload');
      await pause(300);
      await loaded(tab, 'odd');
      assert.equal(await tab.evaluate(`curves.view.smoothing + curves.view.axis + curves.view.isLog + settings.theme`), '0stepfalsesystem');
      assert.ok((await tab.evaluate(`settings.pinned.length`)) <= 1000);
    }
    assert.deepEqual(tab.problems, []);
  }),
);

test('a chart that cannot be drawn says so, and the others are drawn', { timeout: 300_000 }, () =>
  inOddPage(async (_, tab, mock) => {
    for (let i = 1; i <= 50; ++i) mock.runs[0].curve('other').add(i, 1.7e9 + i, i);
    await tab.evaluate(`refreshTagsOf(['r'])`);
    await loaded(tab, 'other');
    await tab.evaluate(`${chartOf('odd')}.tryToDraw = () => { throw new Error('impossible'); }, curves.setView({ isLog: true })`);
    assert.match(await tab.evaluate(`${chartOf('odd')}.note.innerText`), /This curve cannot be drawn: impossible/);
    assert.equal(await tab.evaluate(`${chartOf('other')}.plot.scales.y.distr`), 3);
  }),
);

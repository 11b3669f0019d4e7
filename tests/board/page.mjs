// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the page share.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const axe = readFileSync(process.env.STEPWELL_AXE ?? 'build/board/node_modules/axe-core/axe.min.js', 'utf8');

export const picture = (tab, name) => (process.env.STEPWELL_PICTURES ? tab.picture(join(process.env.STEPWELL_PICTURES, name)) : undefined);
export const chartOf = (tag) => `curves.charts.get(${JSON.stringify(tag)})`;
/** Waits until one chart has curves, or until the chart of `tag` has all of its curves. */
export const loaded = (tab, tag) =>
  tab.until(
    tag === undefined
      ? `[...curves.charts.values()].some((chart) => chart.plot && chart.drawn.some((one) => one.curve.count > 0))`
      : `((chart) => chart?.plot && !chart.loading && chart.drawn.length > 0 && chart.drawn.every((one) => one.curve.count > 0))(${chartOf(tag)})`,
  );
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Makes the page believe that its tab is hidden, or visible again. */
export const hide = (tab, isHidden) =>
  tab.evaluate(
    `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} }), document.dispatchEvent(new Event('visibilitychange'))`,
  );

/** Zooms with the mouse until a step of a chart is one bucket. */
export async function zoomTo(tab, tag, step) {
  const chart = chartOf(tag);
  for (let round = 0; round < 8; ++round) {
    const box = await tab.evaluate(
      `(({ left, top, width, height }) => ({ left, top, width, height }))(${chart}.plot.over.getBoundingClientRect())`,
    );
    const at = await tab.evaluate(`${chart}.plot.valToPos(${step}, 'x')`);
    const y = box.top + box.height / 2;
    const half = box.width * 0.05;
    const before = await tab.evaluate(`${chart}.drawn[0].curve.points`);
    await tab.drag({ x: box.left + Math.max(1, at - half), y }, { x: box.left + Math.min(box.width - 1, at + half), y });
    await tab.until(`${chart}.drawn[0].curve.points < ${before} && !${chart}.loading`);
    if ((await tab.evaluate(`${chart}.drawn[0].curve.points`)) < 200) return;
  }
}

/** Returns the severe findings of axe as text. */
export async function severeFindings(tab) {
  await tab.evaluate(`${axe}; undefined`);
  return tab.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations
    .filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => one.id + ': ' + one.nodes.map((node) => node.target + ' ' + node.failureSummary).join('; ').slice(0, 800)))`);
}

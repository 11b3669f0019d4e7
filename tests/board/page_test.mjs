// SPDX-License-Identifier: Apache-2.0
//
// The page in chromium, against the mock server. Pictures of the page are left in the folder STEPWELL_PICTURES, if it is set.
import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { cpus, loadavg } from 'node:os';
import { after, before, test } from 'node:test';
import { Browser } from './browser.mjs';
import { chartOf, hide, loaded, pause, picture, severeFindings, zoomTo } from './page.mjs';
import { MockRun } from './mock_server.mjs';
import { hostileTags, scenes } from './scenes.mjs';

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.start()));
after(() => browser.stop());

/** A test that opens a scene in a new tab. At its end, the page must have reported no problem and asked no other server. */
function inScene(name, scene, work, { size = {}, fragment, expected = [], media = {} } = {}) {
  test(name, { timeout: 300_000 }, async () => {
    const mock = await scenes[scene]();
    const tab = await browser.tab(size);
    const alive = setInterval(() => mock.session && mock.sendState(), 1000);
    try {
      await tab.media(media);
      await tab.open(mock.address + (fragment ?? `#token=${mock.token}`));
      await work(tab, mock);
      const unexpected = tab.problems.filter((text) => !expected.some((pattern) => pattern.test(text)));
      assert.deepEqual(unexpected, []);
      const foreign = tab.requested.filter((url) => ![mock.address, 'blob:', 'data:', 'about:'].some((start) => url.startsWith(start)));
      assert.deepEqual(foreign, []);
    } finally {
      clearInterval(alive);
      await tab.close();
      await mock.close();
    }
  });
}

inScene(
  'curves appear, and grow with the training',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    await tab.until(`document.querySelectorAll('.chart').length === 5`);
    await tab.until(`document.querySelector('#state').innerText === 'Running'`);
    assert.match(await tab.text('#tiles'), /6,200/);
    mock.grow(7);
    await tab.until(`${chartOf('loss')}.drawn[0].data.x.at(-1) === 6207`);
    await tab.until(`document.querySelector('#tiles').innerText.includes('6,207')`);
    await picture(tab, 'board-light.png');
  },
  { size: { height: 860 } },
);

inScene('a reload and a late visitor show the whole history', 'training', async (tab, mock) => {
  await loaded(tab);
  mock.grow(100);
  mock.send('changed', { runs: ['mnist-3'] });
  await tab.call('Page.reload');
  await pause(300);
  await loaded(tab, 'loss');
  const history = await tab.evaluate(`(({ data, curve }) => [data.x[0], data.x.at(-1), curve.points])(${chartOf('loss')}.drawn[0])`);
  assert.ok(history[0] <= 13 && history[1] === 6300 && history[2] === 6300, String(history));
  assert.equal(await tab.evaluate('location.hash'), '', 'the token is not in the address');
  assert.equal(await tab.evaluate(`document.querySelector('#checkpoint-now').disabled`), false, 'the token is kept in the tab');
});

inScene('the six questions are answered by the first screen', 'training', async (tab) => {
  await loaded(tab);
  await tab.until(`document.querySelector('#runs-rows').innerText.includes('fastest')`);
  await tab.until(`document.querySelector('#state').innerText === 'Running'`);
  for (const answer of [
    /Running/,
    /Last checkpoint\s+\d+ (s|min \d\d s) ago/,
    /Highest validation\/accuracy\s+0\.97/,
    /mnist-3[\s\S]*fastest 21\.4/,
    /step 3,000[\s\S]*The loss was NaN at step 2,998/,
    /Time still to go\s+\d min \d\d s/,
  ])
    await tab.until(`${answer}.test(document.body.innerText)`, 20);
  const bottom = await tab.evaluate(
    `Math.max(...['tiles', 'runs', 'marks'].map((id) => document.getElementById(id).getBoundingClientRect().bottom))`,
  );
  assert.ok(bottom <= 900, `the answers end at ${bottom} px`);
});

inScene('zoom shows the true extreme of a spike that is one step wide among a million', 'million', async (tab) => {
  await tab.evaluate(`document.querySelector('#tag-search').value = 'spike', curves.arrange()`);
  await tab.until(`${chartOf('spike')}?.drawn.length === 1`);
  assert.equal(await tab.evaluate(`Math.max(...${chartOf('spike')}.drawn[0].data.high)`), 1000, 'the whole curve shows it, too');
  await zoomTo(tab, 'spike', 654321);
  const exact = await tab.evaluate(
    `(({ curve }) => [curve.count, curve.points, curve.max[curve.step_last.indexOf(654321)]])(${chartOf('spike')}.drawn[0])`,
  );
  assert.equal(exact[0], exact[1], 'each bucket is one point');
  assert.equal(exact[2], 1000);
  await tab.evaluate('curves.setCursor(654321)');
  await tab.until(`${chartOf('spike')}.rows.innerText.includes('1000')`);
  await tab.click('#zoom-out');
  await tab.until(`${chartOf('spike')}.drawn[0].curve.points === 1000000`);
});

inScene(
  'a million points in 20 charts are drawn again within 150 ms',
  'million',
  async (tab) => {
    await tab.evaluate(`document.querySelector('#tag-search').value = 'value', curves.arrange()`);
    await tab.until(
      `curves.charts.size === 20 && [...curves.charts.values()].every((chart) => chart.plot && chart.drawn[0].curve.points === 50000)`,
      40,
    );
    await tab.call('Performance.enable', { timeDomain: 'threadTicks' });
    const work = async () => (await tab.call('Performance.getMetrics')).metrics.find((one) => one.name === 'ThreadTime').value;
    const before = await work();
    const times = await tab.evaluate(`(async () => {
    const times = [];
    for (let i = 0; i < 9; ++i) {
      const begin = performance.now();
      curves.setView({ smoothing: i % 2 === 0 ? 1000 : 0 });
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b);
  })()`);
    const needed = (((await work()) - before) * 1000) / times.length;
    const isIdle = loadavg()[0] < cpus().length;
    console.log(
      `20 charts, 1,000,000 points: drawn again in ${times[4].toFixed(0)} ms (median), ${needed.toFixed(0)} ms of them work of the page`,
    );
    assert.ok(needed < 150, 'work of the page');
    if (isIdle) assert.ok(times[4] < 150, 'time on an idle machine');
  },
  { size: { height: 5000 } },
);

inScene('buttons work with the token, and show the result', 'training', async (tab, mock) => {
  await loaded(tab);
  await tab.click('#checkpoint-now');
  await tab.until(`document.querySelector('#result').innerText.includes('checkpoint of step 6200 is durable')`);
  await tab.until(`document.querySelector('#checkpoint-rows').innerText.includes('6,200')`);
  await picture(tab, 'board-checkpoint.png');
  await tab.click('#trace');
  await tab.until(`document.querySelector('#trace-result').innerText.includes('Download the trace')`);
  await tab.click('#stop');
  assert.ok(await tab.evaluate(`document.querySelector('#stop-dialog').open`), 'a stop is confirmed');
  await tab.click('#stop-no');
  assert.equal(mock.actions.size, 2);
  await tab.click('#stop');
  await tab.click('#stop-yes');
  await tab.until(`document.querySelector('#result').innerText.includes('Stop: stopped at step')`);
  await tab.until(`document.querySelector('#state').innerText === 'Stopping'`);
  assert.deepEqual(
    [...mock.actions.values()].map((one) => one.action),
    ['checkpoint', 'trace', 'stop'],
  );
  assert.ok(mock.requests.filter((one) => one.method === 'POST').every((one) => one.headers.authorization === `Bearer ${mock.token}`));
});

inScene(
  'buttons are refused without the token, with a reason',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    for (const id of ['checkpoint-now', 'stop', 'trace']) assert.ok(await tab.evaluate(`document.getElementById('${id}').disabled`), id);
    assert.match(await tab.text('#no-token'), /#token=/);
    await tab.evaluate(`postAction('stop', {}).catch((error) => error.status)`).then((status) => assert.equal(status, 401));
    assert.equal(mock.actions.size, 0);
  },
  { fragment: '', expected: [/401/] },
);

inScene(
  'a wrong token is refused, and the page says so',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    await tab.click('#checkpoint-now');
    await tab.until(`document.querySelector('#result').innerText.includes('refused: The token is missing or wrong')`);
    assert.equal(mock.actions.size, 0);
  },
  { fragment: '#token=wrong', expected: [/401/] },
);

test('a server that needs the token to read gets it from the field', { timeout: 300_000 }, async () => {
  const mock = await scenes.training();
  mock.info.needs_token_to_read = true;
  const tab = await browser.tab();
  await tab.open(mock.address);
  await tab.until(`!document.querySelector('#token-wanted').hidden`);
  assert.equal(await tab.evaluate('curves.charts.size'), 0);
  await tab.evaluate(`document.querySelector('#token').value = '${mock.token}'`);
  await tab.click('#token-use');
  await loaded(tab);
  await tab.until(`document.querySelector('#token-wanted').hidden`);
  await tab.close();
  await mock.close();
});

inScene('a hidden tab closes the stream; a visible one continues', 'training', async (tab, mock) => {
  await loaded(tab);
  await tab.until(`board.connection.state === 'open'`);
  assert.equal(mock.streams.size, 1);
  await hide(tab, true);
  for (let i = 0; i < 100 && mock.streams.size > 0; ++i) await pause(20);
  assert.equal(mock.streams.size, 0);
  mock.grow(50);
  const count = mock.requests.length;
  await pause(1500);
  assert.equal(mock.requests.length, count, 'a hidden tab asks for nothing');
  await hide(tab, false);
  await tab.until(`document.querySelector('#tiles').innerText.includes('6,250')`);
  assert.equal(mock.streams.size, 1);
  assert.ok(mock.requests.some((one) => one.path === '/api/live' && one.headers['last-event-id']));
});

inScene('a search by regular expression selects curves, and an invalid one is reported', 'training', async (tab) => {
  await loaded(tab);
  const search = (text) =>
    tab.evaluate(
      `(({ search }) => (search.value = ${JSON.stringify(text)}, search.dispatchEvent(new Event('input')), [...curves.charts.keys()].sort().join()))(curves)`,
    );
  assert.equal(await search('^val.*loss$'), 'validation/loss');
  assert.equal(await search('(loss'), 'validation/loss', 'an invalid expression changes nothing');
  assert.equal(await tab.evaluate(`curves.search.getAttribute('aria-invalid')`), 'true');
  assert.equal(await search('nothing like this'), '');
  assert.match(await tab.text('#charts-empty'), /No curve matches/);
  assert.equal(await search('LOSS'), 'loss,validation/loss');
});

inScene('a pinned curve comes first, and stays pinned after a reload', 'training', async (tab) => {
  await loaded(tab);
  await tab.evaluate(`curves.togglePin('validation/loss')`);
  await tab.call('Page.reload');
  await pause(300);
  await loaded(tab);
  await tab.until(`document.querySelector('.chart')?.getAttribute('aria-label') === 'validation/loss'`);
  assert.match(await tab.text('#tiles'), /Lowest validation\/loss/);
  await tab.evaluate(`curves.togglePin('validation/loss')`);
});

inScene('runs are compared: a run that is switched off leaves the charts', 'training', async (tab) => {
  await loaded(tab);
  await tab.until(`${chartOf('loss')}.drawn.length === 3`);
  await tab.evaluate(`document.querySelector('[aria-label="Show mnist-2"]').click()`);
  await tab.until(`${chartOf('loss')}.drawn.map((one) => one.run.run).join() === 'mnist-3,mnist-1'`);
  assert.equal(await tab.evaluate(`${chartOf('loss')}.drawn[1].run.place`), 2, 'the others keep their colours');
});

inScene('smoothing does not depend on the zoom, and is drawn over the raw band', 'training', async (tab) => {
  await loaded(tab, 'gradient/norm');
  const at = (steps) =>
    tab.evaluate(`(({ data }) => [${steps}].map((x) => data.line[nearest(data.x, x)]))(${chartOf('gradient/norm')}.drawn[0])`);
  await tab.evaluate('curves.setView({ smoothing: 100 })');
  await tab.evaluate(`curves.charts.get('gradient/norm').element.scrollIntoView()`);
  await tab.until(`${chartOf('gradient/norm')}.drawn.length === 3`);
  const whole = await at('5000, 5100, 5200');
  const raw = await tab.evaluate(`${chartOf('gradient/norm')}.drawn[0].curve.points`);
  await tab.evaluate('curves.setZoom({ from: 4950, to: 5250 })');
  await tab.until(`${chartOf('gradient/norm')}.drawn[0].curve.points < ${raw} && !${chartOf('gradient/norm')}.loading`);
  const zoomed = await at('5000, 5100, 5200');
  whole.forEach((value, i) => assert.ok(Math.abs(value - zoomed[i]) < 0.02, `${value} and ${zoomed[i]}`));
  const band = await tab.evaluate(`(({ data }) => Math.max(...data.high) - Math.min(...data.low))(${chartOf('gradient/norm')}.drawn[0])`);
  assert.ok(band > 0.3, 'the band has the raw extremes');
});

inScene('the axes are steps, time of day and time since the start; the scale is linear or logarithmic', 'training', async (tab) => {
  await loaded(tab);
  await tab.until(`${chartOf('loss')}.drawn.length === 3`);
  const ends = () => tab.evaluate(`${chartOf('loss')}.drawn.map(({ data }) => Math.round(data.x.at(-1)))`);
  assert.deepEqual(await ends(), [6200, 8000, 8000]);
  await tab.evaluate(`curves.setView({ axis: 'relative', zoom: null })`);
  assert.deepEqual(await ends(), [310, 727, 500]);
  await tab.evaluate(`curves.setZoom({ from: 100, to: 200 })`);
  await tab.until(
    `!${chartOf('loss')}.loading && ${chartOf('loss')}.drawn.every(({ curve, run }) => curve.points < 2100 && curve.time_last.at(-1) - run.start < 201)`,
  );
  await tab.evaluate(`curves.setView({ axis: 'time', zoom: null, isLog: true })`);
  await tab.until(`${chartOf('loss')}.plot.scales.x.time && ${chartOf('loss')}.plot.scales.y.distr === 3`);
});

inScene('NaN is marked where it happened, and a recovery with its reason', 'training', async (tab) => {
  await loaded(tab, 'loss');
  assert.ok((await tab.evaluate(`${chartOf('loss')}.drawn[0].data.bad`)).some((x) => x >= 2994 && x <= 3006));
  await tab.evaluate('curves.setCursor(3000)');
  await tab.until(`${chartOf('loss')}.rows.innerText.includes('The loss was NaN')`);
  await tab.evaluate('curves.setCursor(null)');
});

inScene('charts are used with the keyboard, and say their values to screen readers', 'training', async (tab) => {
  await loaded(tab, 'loss');
  await tab.evaluate(`${chartOf('loss')}.area.focus()`);
  for (const key of ['Home', 'ArrowRight', '+']) await tab.key(key);
  await tab.until('curves.view.zoom !== null && curves.view.cursor !== null');
  assert.match(await tab.evaluate(`${chartOf('loss')}.area.getAttribute('aria-valuetext')`), /^step \d+: mnist-3 [\d.]+/);
  await tab.key('0');
  await tab.until('curves.view.zoom === null');
  await tab.key('Escape');
  await tab.until('curves.view.cursor === null');
});

inScene('the cursor stays at its step when a chart is drawn again, with other curves or another range', 'training', async (tab) => {
  await loaded(tab, 'loss');
  const chart = chartOf('loss');
  await tab.evaluate(`${chart}.area.focus()`);
  for (const key of ['Home', 'ArrowRight']) await tab.key(key);
  await tab.until(`curves.view.cursor !== null && ${chart}.plot.cursor.left > 0`);
  const before = await tab.evaluate('curves.view.cursor');
  const place = () => tab.evaluate(`[curves.view.cursor, ${chart}.plot.posToVal(${chart}.plot.cursor.left, 'x')].map(Math.round)`);
  for (const change of [`${chart}.makePlot()`, `${chart}.plot.setScale('x', { min: 0, max: 1000 })`]) {
    await tab.evaluate(`${change}, new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);
    assert.deepEqual(await place(), [Math.round(before), Math.round(before)]);
  }
});

inScene('a curve is downloaded as CSV and as SVG', 'training', async (tab) => {
  await loaded(tab);
  await tab.until(`${chartOf('loss')}.drawn.length === 3`);
  await tab.evaluate(`window.saved = [], download = (name, content) => saved.push([name, content])`);
  await tab.evaluate(`${chartOf('loss')}.saveCsv(), ${chartOf('loss')}.saveSvg()`);
  const [csv, image] = await tab.evaluate('saved');
  assert.equal(csv[0], 'loss.csv');
  assert.match(csv[1], /^run,tag,step_first,.*\nmnist-3,loss,1,/);
  assert.match(image[1], /^<svg [^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"[\s\S]*mnist-1/);
  await tab
    .evaluate(`new DOMParser().parseFromString(saved[1][1], 'image/svg+xml').querySelector('parsererror')`)
    .then((error) => assert.equal(error, null));
});

inScene(
  'histograms, images, texts, hyper-parameters, log and ranks are shown',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    await tab.until(
      `document.querySelectorAll('#histograms canvas').length === 2 && document.querySelector('#images img')?.naturalWidth === 28`,
    );
    assert.match(await tab.text('#texts'), /Continued after the power was off/);
    assert.match(await tab.text('#hparams'), /optimizer\s+adam\s+sgd\s+adam/);
    assert.match(await tab.text('#ranks'), /3 of 4/);
    assert.doesNotMatch(await tab.text('#ranks'), /lost/);
    mock.ranks[2].is_lost = true;
    await tab.evaluate('readRanks()');
    assert.match(await tab.text('#ranks'), /2 of 4\s+1\s+lost/);
    mock.send('log', { number: 99, time: Date.now() / 1000, level: 'error', text: 'the disk is full' });
    await tab.until(`document.querySelector('#log').innerText.includes('the disk is full')`);
    await picture(tab, 'board-details.png');
  },
  { size: { height: 3200 } },
);

inScene(
  'hostile tags, names, texts and log lines are shown harmlessly',
  'hostile',
  async (tab) => {
    await loaded(tab);
    await tab.until(`curves.charts.size === ${hostileTags.length}`);
    await pause(2000);
    assert.equal(await tab.evaluate('window.harmed'), undefined);
    assert.equal(await tab.evaluate(`document.querySelectorAll('main script, main img[onerror], main svg[onload], h1 script').length`), 0);
    assert.ok(!(await tab.evaluate('document.body.innerText')).includes('\u202e'), 'no hidden change of direction');
    const width = await tab.evaluate('document.documentElement.scrollWidth');
    assert.ok(width <= 1440, `a long name makes the page ${width} px wide`);
    await tab.evaluate(`window.saved = [], download = (name, content) => saved.push([name, content])`);
    await tab.evaluate(`[...curves.charts.values()].forEach((chart) => (chart.saveCsv(), chart.saveSvg()))`);
    const images = `saved.filter(([name]) => name.endsWith('.svg'))`;
    assert.ok((await tab.evaluate(`${images}.length`)) > 0);
    const broken = `${images}.filter(([, image]) => new DOMParser().parseFromString(image, 'image/svg+xml').querySelector('parsererror'))`;
    assert.deepEqual(await tab.evaluate(`${broken}.map(([name]) => name)`), [], 'images that are not well-formed');
  },
  { size: { height: 6000 } },
);

inScene(
  'a session without values says so',
  'empty',
  async (tab, mock) => {
    await tab.until(`document.querySelector('#charts-empty').innerText.includes('No values yet')`);
    await picture(tab, 'board-empty.png');
    for (let step = 1; step <= 5; ++step) mock.runs[0].curve('loss').add(step, Date.now() / 1000, 1 / step);
    mock.send('values', { run: 'first', step: 6, time: Date.now() / 1000, values: { loss: 0.1 } });
    await tab.until(`${chartOf('loss')}?.drawn[0]?.data.x.at(-1) === 6`);
  },
  { size: { height: 860 } },
);

inScene(
  'an error of the server is shown, and the page tries again',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    mock.fails = true;
    await tab.open(mock.address);
    await tab.until(`document.querySelector('#lost').innerText.includes('The disk with the runs cannot be read')`);
    await picture(tab, 'board-error.png');
    mock.fails = false;
    await loaded(tab);
    await tab.until(`document.querySelector('#lost').hidden`);
  },
  { size: { height: 480 }, expected: [/500/] },
);

inScene(
  'a lost connection is shown with the age of the data, and ends by itself',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    const { port } = mock;
    await mock.close();
    await tab.until(`document.querySelector('#lost').innerText.includes('old.')`);
    await tab.until(`document.querySelector('#state').innerText === 'Not connected'`);
    assert.ok(await tab.evaluate(`document.querySelector('#stop').disabled`));
    await pause(1100);
    await picture(tab, 'board-disconnected.png');
    await mock.listen(port);
    await tab.click('#retry');
    await tab.until(`document.querySelector('#lost').hidden && document.querySelector('#state').innerText === 'Running'`);
  },
  { size: { height: 480 }, expected: [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_EMPTY|ERR_CONNECTION/] },
);

inScene(
  'the end of the program is no error',
  'training',
  async (tab, mock) => {
    await loaded(tab);
    await tab.until(`board.connection.state === 'open'`);
    mock.send('end', { phase: 'ended' });
    for (const stream of mock.streams) stream.end();
    await tab.until(`!document.querySelector('#over').hidden && document.querySelector('#state').innerText === 'Ended'`);
    mock.fails = true;
    await pause(1500);
    assert.ok(await tab.evaluate(`document.querySelector('#lost').hidden`));
  },
  { expected: [/500/] },
);

inScene(
  'a directory of runs is shown without a session',
  'directory',
  async (tab) => {
    await loaded(tab);
    assert.ok(await tab.evaluate(`document.querySelector('#checkpoint-now').hidden && document.querySelector('#stop').hidden`));
    assert.match(await tab.text('#tiles'), /Runs\s+3/);
    await picture(tab, 'board-directory.png');
  },
  { size: { height: 860 } },
);

inScene(
  'runs that have failed or finished are marked at once, and the best value is that of all runs',
  'directory',
  async (tab, mock) => {
    await loaded(tab);
    for (let i = 0; i < 24; ++i) {
      const run = new MockRun(`sweep/${String(i).padStart(2, '0')}`);
      for (let at = 1; at <= 20; ++at) run.curve('loss').add(at, Date.now() / 1000 - 30 + at, i === 17 ? 0.001 : 1 + i);
      mock.runs.push(run);
    }
    await tab.evaluate('refreshRuns()');
    await tab.until(`document.querySelector('#tiles').innerText.includes('25 runs are being written')`);
    await tab.until(`document.querySelector('#tiles').innerText.includes('of all 27 runs')`);
    assert.ok(!(await tab.evaluate('board.shown')).includes('sweep/17'), 'the best run is not ticked');
    await tab.evaluate(`curves.togglePin('loss')`);
    await tab.until(`/Lowest loss\\s+0\\.001\\s+at step 1 · in sweep\\/17/.test(document.querySelector('#tiles').innerText)`);
    await tab.evaluate(`curves.togglePin('loss')`);
    for (const run of mock.runs) run.ending = { how: 'finished', cause: 'last_step', text: 'step 20 is done', step: 20 };
    mock.runs[5].ending = { how: 'failed', cause: 'nan', text: 'the loss is NaN', step: 7 };
    await tab.evaluate('refreshRuns()');
    await tab.until(`/none is being written · 1 failed · 26 finished/.test(document.querySelector('#tiles').innerText)`);
    await tab.until(`document.querySelector('#state').innerText === 'All runs have ended'`);
    const text = await tab.text('#runs-rows');
    assert.match(text, /sweep\/02\s+failed/);
    assert.match(text, /sweep\/17\s+finished/);
    await picture(tab, 'board-sweep.png');
  },
  { size: { height: 860 } },
);

inScene('a poll asks for the points that are new, of the runs that have grown', 'directory', async (tab, mock) => {
  await loaded(tab, 'loss');
  const curvesAsked = () => mock.requests.filter((one) => one.path === '/api/curve').map((one) => new URL(one.url, mock.address));
  await tab.until(`[...curves.charts.values()].every((chart) => !chart.isVisible || (chart.plot && !chart.loading))`);
  mock.requests.length = 0;
  const run = mock.runs[0];
  const before = run.curve('loss').step.length;
  for (let at = 1; at <= 5; ++at) run.curve('loss').add(6200 + at, Date.now() / 1000, at);
  run.bytes += 100;
  await tab.evaluate('refreshRuns()');
  await tab.until(`${chartOf('loss')}.drawn[0].data.x.at(-1) === 6205`);
  const asked = curvesAsked();
  assert.deepEqual(
    asked.map((url) => [url.searchParams.get('run'), url.searchParams.get('tag'), url.searchParams.get('since')]),
    [['mnist-3', 'loss', String(before)]],
  );
  assert.deepEqual(
    mock.requests.filter((one) => one.path === '/api/tags').map((one) => one.url),
    ['/api/tags?run=mnist-3'],
  );
  const curve = await tab.evaluate(
    `(({ curve }) => [curve.points, [...curve.finite].reduce((a, b) => a + b), curve.step_first[0]])(${chartOf('loss')}.drawn[0])`,
  );
  assert.deepEqual(curve, [before + 5, before + 5 - 3, 1], 'all points are there, of which three are NaN');
  run.curve('loss').revision += 1; // the run continued from an older checkpoint
  run.curve('loss').step.length = run.curve('loss').time.length = run.curve('loss').value.length = 100;
  run.bytes += 100;
  await tab.evaluate('refreshRuns()');
  await tab.until(`${chartOf('loss')}.drawn[0].curve.points === 100`);
});

inScene('a text is shown as Markdown, without anything that could harm', 'training', async (tab, mock) => {
  const source = [
    '# Title',
    'one **strong** and *emphasised* `code <b>` line',
    'second line',
    '',
    '| a | b |',
    '|---|--:|',
    '| 1 | [link](https://example.org/x) |',
    '',
    '* item',
    '  * inner',
    '1. number',
    '',
    '> quote',
    '```',
    '<script>window.harmed = 1</script>',
    '```',
    '[bad](javascript:window.harmed=2) ![image](https://example.org/y.png) <img src=x onerror="window.harmed=3">',
    'snake_case_name 2*3*4 https://example.org/z',
  ].join('\n');
  mock.runs[0].texts.set('notes', [{ step: 1, time: 1, text: source }]);
  await loaded(tab);
  await tab.until(`!document.querySelector('#texts-card').hidden`);
  await tab.evaluate(`document.querySelector('#texts-card').scrollIntoView()`);
  await tab.until(`document.querySelector('#texts .quote h4')?.innerText === 'Title'`);
  const html = await tab.evaluate(`document.querySelector('#texts .quote').innerHTML`);
  for (const part of [
    'one <strong>strong</strong> and <em>emphasised</em> <code>code &lt;b&gt;</code> line<br>second line',
    '<th>a</th><th>b</th>',
    '<td>1</td><td><a href="https://example.org/x" target="_blank" rel="noopener noreferrer nofollow"',
    '<ul><li>item<ul><li>inner</li></ul></li></ul><ol><li>number</li></ol>',
    '<blockquote><p>quote</p></blockquote>',
    '<pre><code>&lt;script&gt;window.harmed = 1&lt;/script&gt;</code></pre>',
    '&lt;img src=x onerror="window.harmed=3"&gt;',
    'bad (javascript:window.harmed=2)',
    'snake_case_name',
  ])
    assert.ok(html.includes(part), `${part} is not in ${html}`);
  assert.equal(await tab.evaluate(`document.querySelectorAll('#texts img, #texts script').length`), 0);
  assert.equal(await tab.evaluate('window.harmed'), undefined);
  await picture(tab, 'board-text.png');
  const slow = [
    '*'.repeat(60_000),
    '['.repeat(60_000),
    '`a'.repeat(30_000),
    '> '.repeat(30_000),
    '|-'.repeat(30_000),
    '**a_'.repeat(15_000),
    '- '.repeat(30_000),
  ];
  slow.push('- a\n '.repeat(10_000), '|\n|-|\n'.repeat(8_000), '_ _'.repeat(20_000), '![](a'.repeat(12_000), 'https://'.repeat(8_000));
  for (const text of slow) {
    const took = await tab.evaluate(
      `(() => { const begin = performance.now(); markdown(${JSON.stringify(text)}); return performance.now() - begin; })()`,
    );
    assert.ok(took < 1000, `${text.slice(0, 10)}: ${took} ms`);
  }
});

test('the page works at a path of a proxy, with and without a slash at its end', { timeout: 300_000 }, async () => {
  const mock = await scenes.training();
  const prefix = '/user/x/proxy/6007';
  const outside = [];
  const proxy = createServer((from, to) => {
    if (!from.url.startsWith(prefix)) {
      outside.push(from.url);
      to.writeHead(404).end();
      return;
    }
    const path = from.url.slice(prefix.length) || '/';
    const passed = request({ port: mock.port, path, method: from.method, headers: from.headers }, (reply) => {
      to.writeHead(reply.statusCode, reply.headers);
      reply.pipe(to);
    });
    passed.on('error', () => to.destroy());
    from.pipe(passed);
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  for (const slash of ['/', '']) {
    const tab = await browser.tab();
    await tab.open(`http://127.0.0.1:${proxy.address().port}${prefix}${slash}#token=${mock.token}`);
    await loaded(tab);
    await tab.until(`board.connection.state === 'open'`);
    await tab.click('#trace');
    await tab.until(`document.querySelector('#trace-result').innerText.includes('Download the trace')`);
    assert.deepEqual(tab.problems, []);
    await tab.close();
  }
  assert.deepEqual(outside, []);
  proxy.closeAllConnections();
  await new Promise((done) => proxy.close(done));
  await mock.close();
});

for (const [theme, media] of [
  ['light', {}],
  ['dark', { 'prefers-color-scheme': 'dark' }],
  ['contrast', { 'prefers-contrast': 'more' }],
]) {
  inScene(
    `axe finds nothing serious: ${theme}`,
    'training',
    async (tab, mock) => {
      await loaded(tab);
      assert.equal(await tab.evaluate('document.documentElement.dataset.theme'), theme);
      mock.grow(1);
      await pause(500);
      await picture(tab, `board-${theme}.png`);
      await tab.click('#checkpoint-now');
      await tab.until(`document.querySelector('#result').innerText.includes('is durable')`);
      assert.deepEqual(await severeFindings(tab), []);
    },
    { media, size: { height: 860 } },
  );
}

inScene('axe finds nothing serious: a session without values', 'empty', async (tab) => {
  await tab.until(`document.querySelector('#charts-empty').innerText.includes('No values yet')`);
  assert.deepEqual(await severeFindings(tab), []);
  await tab.click('#stop');
  assert.deepEqual(await severeFindings(tab), []);
});

inScene(
  'a phone shows everything without scrolling sideways',
  'training',
  async (tab) => {
    await tab.resize(390, 844, 1, true);
    await loaded(tab);
    await pause(500);
    assert.equal(await tab.evaluate('document.documentElement.scrollWidth'), 390);
    assert.deepEqual(await severeFindings(tab), []);
    await picture(tab, 'board-phone.png');
  },
  { size: { width: 390, height: 844 } },
);

// SPDX-License-Identifier: Apache-2.0
//
// The page in chromium with the real server: a session that trains (board_session), and `stepwell board` for its directory. The folder
// STEPWELL_BUILD has both programs.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { Browser } from './browser.mjs';
import { chartOf, hide, loaded, pause, picture, severeFindings, zoomTo } from './page.mjs';

const build = process.env.STEPWELL_BUILD ?? 'build/dev';
const programs = { session: join(build, 'tests/board/board_session'), tool: join(build, 'src/tool/stepwell') };

/** A program that prints the address of its board. */
class Server {
  static async start(program, ...options) {
    const server = new Server();
    server.process = spawn(program, options, { stdio: ['pipe', 'pipe', 'inherit'] });
    server.ended = new Promise((done) => server.process.on('exit', (code, signal) => done(signal ?? code)));
    for await (const line of createInterface(server.process.stdout)) {
      const found = /(http:[^#]*)#token=(.*)/.exec(line);
      if (found) [, server.address, server.token] = found;
      if (found) return server;
    }
    throw new Error(`${program} printed no address`);
  }

  get port() {
    return Number(new URL(this.address).port);
  }

  async get(path) {
    return (await fetch(this.address + path)).json();
  }

  /** Sends a request with headers that fetch does not permit. Returns its status. */
  status(path, headers = {}, method = 'GET', body = '') {
    return new Promise((done, fail) => {
      const sent = request({ host: '127.0.0.1', port: this.port, path: `/${path}`, method, headers }, (reply) => {
        reply.resume();
        done(reply.statusCode);
      });
      sent.on('error', fail);
      sent.end(body);
    });
  }

  /** Returns the number of connections that are open at the server. */
  connections() {
    const port = this.port.toString(16).toUpperCase().padStart(4, '0');
    const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n');
    return rows.filter((row) => new RegExp(`^ *\\d+: 0100007F:${port} [0-9A-F]{8}:[0-9A-F]{4} 01 `).test(row)).length;
  }

  /** Ends the program as its user would: a session by its standard input, the tool by a signal. */
  async stop() {
    this.process.stdin.end();
    if (this.process.spawnfile === programs.tool) this.process.kill('SIGTERM');
    assert.equal(await this.ended, 0, 'exit code');
  }
}

/** @type {Browser} */
let browser;
before(async () => (browser = await Browser.start()));
after(() => browser.stop());

/**
 * A test with a server, and a tab that shows its page. At the end, the page must have reported no problem and asked no other server.
 * `start` gets an empty directory.
 */
function withServer(name, start, work, { size = {}, media = {}, fragment, expected = [] } = {}) {
  test(name, { timeout: 300_000 }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'stepwell-runs-'));
    const server = await start(directory);
    const tab = await browser.tab(size);
    try {
      await tab.media(media);
      await tab.open(server.address + (fragment ?? `#token=${server.token}`));
      await work(tab, server, directory);
      const unexpected = tab.problems.filter((text) => !expected.some((pattern) => pattern.test(text)));
      assert.deepEqual(unexpected, []);
      const foreign = tab.requested.filter((url) => ![server.address, 'blob:', 'data:', 'about:'].some((start) => url.startsWith(start)));
      assert.deepEqual(foreign, []);
    } finally {
      await tab.close();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  });
}

const session = (fast, period) => (directory) => Server.start(programs.session, join(directory, 'now'), String(fast), String(period));
const lastOf = (tag) => `${chartOf(tag)}.drawn[0].data.x.at(-1)`;
const runs = (tab) => tab.until(`document.querySelector('#state').innerText === 'Running'`);

withServer('the curves of a session appear, and grow within a second', session(2000, 5), async (tab) => {
  await loaded(tab);
  await runs(tab);
  await tab.until(`curves.charts.has('loss') && curves.charts.has('wave')`);
  for (let round = 0; round < 3; ++round) {
    const last = await tab.evaluate(lastOf('loss'));
    await tab.until(`${lastOf('loss')} > ${last}`, 10);
  }
  const age = await tab.evaluate(`(async () => {
    const seen = board.session.step;
    while (board.session.step === seen) await new Promise((done) => setTimeout(done, 10));
    return board.now() - board.session.time;
  })()`);
  console.log(`a state of the session is shown ${(age * 1000).toFixed(0)} ms after it was made`);
  await picture(tab, 'server-session.png');
});

withServer('a reload and a late visitor see the whole history of a session', session(20_000, 5), async (tab, server) => {
  await loaded(tab);
  await tab.call('Page.reload');
  await pause(300);
  await loaded(tab);
  await tab.until(`${chartOf('loss')}.drawn[0].curve.points >= 20000`);
  assert.equal(await tab.evaluate(`${chartOf('loss')}.drawn[0].curve.step_first[0]`), 1);
  assert.equal(await tab.evaluate(`document.querySelector('#checkpoint-now').disabled`), false, 'the token is kept in the tab');
  const late = await browser.tab();
  await late.open(server.address);
  await loaded(late);
  await late.until(`${chartOf('loss')}.drawn[0].curve.points >= 20000`);
  assert.equal(await late.evaluate(`${chartOf('loss')}.drawn[0].curve.step_first[0]`), 1);
  await late.close();
});

withServer('a reload sees what happened since the last flush of the event files', session(200, 5), async (tab) => {
  const lastSent = `${chartOf('loss')}.curves.values().next().value.step_last.at(-1)`;
  await loaded(tab);
  await tab.until(`${chartOf('loss')}.drawn[0].curve.step_first[0] === 1`, 30); // the files have been flushed, and not again for two minutes
  const before = await tab.evaluate(lastSent);
  await tab.until(`${lastOf('loss')} > ${before} + 300`, 30);
  await tab.call('Page.reload');
  await pause(300);
  await loaded(tab);
  const after = await tab.evaluate(lastSent);
  assert.ok(after > before + 250, `${after} is not much later than ${before}`);
});

const withoutFiles = () => Server.start(programs.session, '-', '1000', '5');
withServer(
  'a session without event files has curves, which a reload and a late visitor see from the beginning',
  withoutFiles,
  async (tab, server) => {
    await loaded(tab);
    await runs(tab);
    await tab.until(`${lastOf('loss')} > 1100`, 20);
    const first = await tab.evaluate(`${chartOf('loss')}.drawn[0].curve.step_first[0]`);
    await tab.call('Page.reload');
    await pause(300);
    await loaded(tab);
    assert.equal(await tab.evaluate(`${chartOf('loss')}.drawn[0].curve.step_first[0]`), first);
    const last = await tab.evaluate(lastOf('loss'));
    await tab.until(`${lastOf('loss')} > ${last}`, 10);
    const late = await browser.tab();
    await late.open(server.address);
    await loaded(late);
    assert.equal(await late.evaluate(`${chartOf('loss')}.drawn[0].curve.step_first[0]`), first);
    await late.close();
    await picture(tab, 'server-memory.png');
  },
);

withServer('zoom shows the true extreme of a spike that is one step wide', session(400_000, 5), async (tab) => {
  await tab.until(`${chartOf('loss')}?.drawn[0]?.curve.points >= 400000`);
  assert.equal(await tab.evaluate(`Math.max(...${chartOf('loss')}.drawn[0].data.high)`), 1000, 'the whole curve shows it, too');
  await zoomTo(tab, 'loss', 123_456);
  const exact = await tab.evaluate(
    `(({ curve }) => [curve.count, curve.points, curve.max[curve.step_last.indexOf(123456)], curve.max[curve.step_last.indexOf(123457)]])(${chartOf('loss')}.drawn[0])`,
  );
  assert.equal(exact[0], exact[1], 'each bucket is one point');
  assert.equal(exact[2], 1000);
  assert.ok(exact[3] < 2);
});

withServer('a checkpoint, a trace and a stop of a session work with the token', session(100, 5), async (tab, server) => {
  await loaded(tab);
  await tab.click('#checkpoint-now');
  await tab.until(`document.querySelector('#result').innerText.includes('the checkpoint is durable')`);
  const saved = (await server.get('api/session')).checkpoints.newest;
  assert.ok(saved.step > 100);
  await tab.until(`document.querySelector('#checkpoint-rows').innerText.replace(',', '').includes('${saved.step}')`);
  await tab.click('#trace');
  await tab.until(`document.querySelector('#trace-result').innerText.includes('Download the trace')`);
  const { actions } = await server.get('api/session');
  const trace = await server.get(actions.find((one) => one.action === 'trace').download.slice(1));
  assert.equal(trace.traceEvents.filter((one) => one.name === 'run').length, 10);
  await tab.click('#stop');
  await tab.click('#stop-yes');
  await tab.until(`document.querySelector('#result').innerText.includes('Stop: the session')`);
  await tab.until(`document.querySelector('#state').innerText === 'Ended'`);
  assert.equal((await server.get('api/session')).phase, 'ended');
});

withServer(
  'actions are refused without the token, and for a foreign Host and Origin',
  session(100, 5),
  async (tab, server) => {
    await loaded(tab);
    for (const id of ['checkpoint-now', 'stop', 'trace']) assert.ok(await tab.evaluate(`document.getElementById('${id}').disabled`), id);
    assert.equal(await tab.evaluate(`postAction('stop', {}).catch((error) => error.status)`), 401);
    const json = { 'Content-Type': 'application/json' };
    const known = { ...json, Authorization: `Bearer ${server.token}` };
    const post = (headers) => server.status('api/actions/stop', headers, 'POST', '{}');
    assert.equal(await post(json), 401);
    assert.equal(await post({ ...json, Authorization: `Bearer ${server.token.replace(/.$/, 'x')}` }), 401);
    assert.equal(await post({ ...known, Host: 'evil.example' }), 421);
    assert.equal(await post({ ...known, Origin: 'http://evil.example' }), 403);
    assert.equal(await post({ ...known, 'Content-Type': 'text/plain' }), 415);
    assert.equal(await server.status('api/session', { Host: `evil.example:${server.port}` }), 421);
    assert.deepEqual((await server.get('api/session')).actions, []);
    assert.equal((await server.get('api/session')).phase, 'running');
  },
  { fragment: '', expected: [/401/] },
);

withServer('a hidden tab closes its stream; a visible one continues', session(100, 5), async (tab, server) => {
  await loaded(tab);
  await tab.until(`board.connection.state === 'open'`);
  await hide(tab, true);
  for (let i = 0; i < 400 && server.connections() > 0; ++i) await pause(50);
  assert.equal(server.connections(), 0, 'no connection is open');
  const count = tab.requested.length;
  await pause(1500);
  assert.equal(tab.requested.length, count, 'a hidden tab asks for nothing');
  const seen = await tab.evaluate('board.session.step');
  await hide(tab, false);
  await tab.until(`board.session.step > ${seen} && board.connection.state === 'open'`);
  assert.ok(server.connections() > 0);
});

for (const theme of ['light', 'dark'])
  withServer(
    `axe finds nothing serious in the page of a session: ${theme}`,
    session(2000, 5),
    async (tab) => {
      await loaded(tab);
      await runs(tab);
      assert.equal(await tab.evaluate('document.documentElement.dataset.theme'), theme);
      await tab.click('#checkpoint-now');
      await tab.until(`document.querySelector('#result').innerText.includes('is durable')`);
      assert.deepEqual(await severeFindings(tab), []);
      await picture(tab, `server-${theme}.png`);
    },
    { media: { 'prefers-color-scheme': theme }, size: { height: 1400 } },
  );

/** Starts `stepwell board` beside a session that writes into the same directory. */
async function toolBeside(directory) {
  const training = await session(1000, 5)(directory);
  const tool = await Server.start(programs.tool, 'board', '--port', '0', directory);
  const stop = tool.stop.bind(tool);
  tool.stop = async () => {
    await stop();
    await training.stop();
  };
  return tool;
}

withServer('the tool shows a directory whose runs grow, without buttons', toolBeside, async (tab) => {
  await loaded(tab);
  assert.ok(await tab.evaluate(`document.querySelector('#checkpoint-now').hidden && document.querySelector('#stop').hidden`));
  const last = await tab.evaluate(lastOf('loss'));
  await tab.until(`${lastOf('loss')} > ${last}`, 90); // the session flushes its event file from time to time
  assert.deepEqual(await severeFindings(tab), []);
  await picture(tab, 'server-directory.png');
});

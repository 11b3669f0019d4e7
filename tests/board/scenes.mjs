// SPDX-License-Identifier: Apache-2.0
//
// Invented data for the mock server. The random numbers have a fixed seed. `node scenes.mjs [SCENE] [PORT]` serves a scene.
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { MockRun, MockServer, png } from './mock_server.mjs';

let seed = 1;
/** Returns a pseudo-random number from -1 to 1. */
function noise() {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return (seed / 2147483648) * 2 - 1;
}

const last = 10_000;

/** Adds the values of a step of a training of digits. `speed` is how fast it learns. */
function learn(run, step, time, speed) {
  const progress = 1 - Math.exp((-step * speed) / 1500);
  run.curve('loss').add(step, time, 2.3 * (1 - progress) + 0.08 + 0.05 * noise() * (1.2 - progress));
  run.curve('learning_rate').add(step, time, 0.1 * speed * 0.5 * (1 + Math.cos((Math.PI * step) / last)));
  run.curve('gradient/norm').add(step, time, 3 * (1 - progress) + 0.4 + 0.2 * noise());
  if (step % 50 === 0) {
    run.curve('validation/accuracy').add(step, time, 0.1 + 0.88 * progress + 0.006 * noise());
    run.curve('validation/loss').add(step, time, 2.3 * (1 - progress) + 0.12 + 0.01 * noise());
  }
}

function checkpoint(step, time, isVerified = null) {
  return { name: `model.ckpt-${step}`, step, time, bytes: 1_250_000, is_verified: isVerified };
}

function addDetails(run, step, start) {
  const histogram = (at, width) => {
    const limits = Array.from({ length: 40 }, (_, i) => -2 + (i + 1) * 0.1);
    const counts = limits.map((x) => Math.round(1000 * Math.exp(-((x / width) ** 2))));
    return { step: at, time: start + at / 20, min: -2, max: 2, count: counts.reduce((a, b) => a + b), sum: 12.5, limits, counts };
  };
  const list = (make) => Array.from({ length: 30 }, (_, i) => make(Math.round(((i + 1) * step) / 30), i));
  run.histograms.set(
    'layer1/weights',
    list((at, i) => histogram(at, 0.3 + i * 0.03)),
  );
  run.histograms.set(
    'layer2/weights',
    list((at, i) => histogram(at, 1.2 - i * 0.03)),
  );
  const digit = (k) => png(28, 28, (x, y) => (Math.abs(Math.hypot(x - 14, y - 14) - 6 - (k % 5)) < 1.6 ? 255 : 20));
  run.images.set(
    'input',
    list((at, i) => ({ step: at, index: 0, time: start + at / 20, width: 28, height: 28, content: digit(i) })),
  );
  run.texts.set('notes', [
    { step: 1, time: start, text: 'A small network with two layers.\nData: digits, 8 x 8 pixels.' },
    { step: 900, time: start + 45, text: 'Continued after the power was off.' },
  ]);
}

/** Returns the state of a session at a step, as /api/session would. */
export function stateAt(run, step, start) {
  const now = Date.now() / 1000;
  const newest = run.checkpoints[0] ?? null;
  const curve = (tag) => ({ name: tag, value: run.curve(tag).value.at(-1), step: run.curve(tag).step.at(-1) });
  return {
    time: now,
    phase: 'running',
    started: start,
    first_step: 0,
    step,
    last_step: last,
    steps_per_second: 21.4,
    remaining_seconds: (last - step) / 21.4,
    stopping_because: null,
    epoch: { number: 3, is_last_batch: false },
    restored_from: null,
    watched: ['loss', 'learning_rate', 'validation/accuracy'].map(curve),
    stop_conditions: [
      { name: 'last step', text: `ends at step ${last.toLocaleString('en')}`, distance: last - step, unit: 'steps', fraction: step / last },
      {
        name: 'early_stopping',
        text: 'ends when 5 values of validation/loss in a row are not better',
        distance: 4,
        unit: 'values',
        fraction: 0.2,
      },
    ],
    notes: [{ name: 'eval', text: 'accuracy 0.975 at step 6000' }],
    step_time: {
      samples: 64,
      step_seconds: 0.0467,
      model_seconds: 0.0152,
      data_seconds: 0.0279,
      io_seconds: 0.0019,
      other_seconds: 0.0002,
      hooks: [
        { name: 'summary_saver_hook', seconds: 0.0011 },
        { name: 'board_hook', seconds: 0.0004 },
      ],
    },
    checkpoints: {
      directory: 'runs/mnist-3',
      newest,
      age_seconds: newest && now - newest.time,
      saves: 7,
      saves_failed: 0,
      saves_skipped: 1,
      saves_postponed: 0,
      last_save_seconds: 0.031,
      backlog: { writing_bytes: 0, writing_seconds: 0, waiting_bytes: 0 },
      lost_steps: newest ? step - newest.step : step,
      lost_seconds: newest ? now - newest.time : now - start,
    },
    recoveries: 1,
    creations: 2,
    rollbacks: 0,
    group: null,
    actions: [],
  };
}

/** A session in the middle of its training, with a recovery and NaN behind it, and two older runs beside it. */
export async function training(port) {
  seed = 1;
  const mock = new MockServer();
  const step = 6_200;
  const start = Date.now() / 1000 - step / 20;
  const live = new MockRun('mnist-3', true);
  for (let at = 1; at <= step; ++at) learn(live, at, start + at / 20, at > 3000 && at < 3400 ? 0.35 : 1);
  for (const at of [2994, 2995, 2996]) live.curve('loss').value[at] = NaN;
  live.marks = [
    { kind: 'start', step: 0, time: start, text: 'began without a checkpoint' },
    { kind: 'checkpoint', step: 2800, time: start + 140, text: 'model.ckpt-2800' },
    {
      kind: 'recovery',
      step: 3000,
      time: start + 150,
      text: 'The loss was NaN at step 2,998; went back to model.ckpt-2800 and continued with other random numbers.',
    },
  ];
  live.checkpoints = [6000, 5000, 4000, 3000].map((at) => checkpoint(at, start + at / 20, at === 5000 || null));
  live.hparams = { rate: 0.1, units: 64, optimizer: 'adam', seed: 7 };
  addDetails(live, step, start);
  mock.runs = [live];
  for (const [name, speed, ago] of [
    ['mnist-2', 0.55, 7200],
    ['mnist-1', 0.8, 90_000],
  ]) {
    const run = new MockRun(name);
    const begin = Date.now() / 1000 - ago - 600;
    for (let at = 2; at <= 8000; at += 2) learn(run, at, begin + at / (20 * speed), speed);
    run.changed = Date.now() / 1000 - ago;
    run.hparams = { rate: 0.1 * speed, units: 64, optimizer: speed > 0.6 ? 'adam' : 'sgd', seed: 7 };
    run.checkpoints = [checkpoint(8000, run.changed)];
    run.marks = [{ kind: 'start', step: 0, time: begin, text: 'began without a checkpoint' }];
    mock.runs.push(run);
  }
  mock.info.live_run = live.name;
  mock.session = stateAt(live, step, start);
  mock.ranks = Array.from({ length: 4 }, (_, rank) => ({ rank, size: 4, generation: 1, is_this_process: rank === 0, is_lost: false }));
  mock.log = [
    ['info', 'session mnist: training begins at step 0'],
    ['warning', 'loss is NaN at step 2998; the newest checkpoint is restored'],
    ['info', 'session mnist: recovered, generation 2'],
    ['info', 'saved model.ckpt-6000 (1.25 MB) in 31 ms'],
  ].map(([level, text], i) => ({ number: i + 1, time: start + 50 * i, level, text }));
  mock.grow = (count) => {
    for (let i = 0; i < count; ++i) {
      const at = mock.session.step + 1;
      learn(live, at, Date.now() / 1000, 1);
      mock.session = { ...mock.session, step: at };
    }
    const fresh = stateAt(live, mock.session.step, start);
    mock.session = { ...fresh, phase: mock.session.phase, stopping_because: mock.session.stopping_because };
    live.changed = Date.now() / 1000;
    mock.sendState();
    const values = Object.fromEntries(fresh.watched.map((one) => [one.name, one.value]));
    mock.send('values', { run: live.name, step: mock.session.step, time: Date.now() / 1000, values });
  };
  mock.onAction = (action) => {
    setTimeout(() => {
      const at = mock.session.step;
      if (action.action === 'checkpoint') {
        live.checkpoints.unshift(checkpoint(at, Date.now() / 1000, null));
        mock.finishAction(action.id, 'done', `checkpoint of step ${at} is durable`, { step: at });
        mock.session.checkpoints = stateAt(live, at, start).checkpoints;
      } else if (action.action === 'trace') {
        mock.traces.set(action.id, Buffer.from('{"traceEvents":[]}'));
        mock.finishAction(action.id, 'done', '10 steps recorded', { download: `/api/trace/${action.id}` });
      } else {
        mock.session = { ...mock.session, phase: 'stopping', stopping_because: 'stop requested in the board' };
        mock.finishAction(action.id, 'done', `stopped at step ${at}`, { step: at });
      }
      mock.sendState();
    }, 300);
  };
  return mock.listen(port);
}

/** A session that has just started: no value, no checkpoint. */
export async function empty(port) {
  const mock = new MockServer();
  const live = new MockRun('first', true);
  mock.runs = [live];
  mock.info = { ...mock.info, title: 'first', directory: 'runs/first', live_run: 'first' };
  live.curve('loss');
  const state = stateAt(live, 0, Date.now() / 1000);
  live.scalars.clear();
  mock.session = {
    ...state,
    phase: 'starting',
    epoch: null,
    recoveries: 0,
    checkpoints: { ...state.checkpoints, directory: 'runs/first', saves: 0, saves_skipped: 0, last_save_seconds: null },
    steps_per_second: null,
    remaining_seconds: null,
    step_time: null,
    watched: [],
    stop_conditions: [{ name: 'last step', text: 'ends at step 10000', distance: 10_000, unit: 'steps', fraction: 0 }],
    notes: [],
    group: null,
  };
  return mock.listen(port);
}

/** A directory of runs, without a session. */
export async function directory(port) {
  const mock = await training(port);
  mock.info = { ...mock.info, mode: 'directory', title: 'runs', directory: 'runs', live_run: null, actions: [] };
  mock.session = null;
  mock.ranks = [];
  mock.log = [];
  mock.runs[0].isLive = false;
  delete mock.grow;
  return mock;
}

/** 20 curves of 50,000 points; `spike` has one value of 1000 among a million small ones. */
export async function million(port) {
  seed = 1;
  const mock = new MockServer();
  const run = new MockRun('million', true);
  for (let k = 0; k < 20; ++k) {
    const curve = run.curve(`value/${String(k).padStart(2, '0')}`);
    for (let at = 1; at <= 50_000; ++at) curve.add(at, 1_700_000_000 + at / 100, Math.sin(at / (500 + 97 * k)) + 0.1 * noise());
  }
  const spike = run.curve('spike');
  for (let at = 1; at <= 1_000_000; ++at) spike.add(at, 1_700_000_000 + at / 1000, at === 654_321 ? 1000 : 1 + 0.01 * noise());
  run.curve('loss').add(1, 1_700_000_000, 1);
  run.curve('learning_rate').add(1, 1_700_000_000, 1);
  run.curve('validation/accuracy').add(1, 1_700_000_000, 1);
  mock.runs = [run];
  mock.info.live_run = 'million';
  mock.session = { ...stateAt(run, 50_000, 1_700_000_000), group: null };
  return mock.listen(port);
}

export const hostileTags = [
  '<script>window.harmed = 1</script>',
  '<img src=x onerror="window.harmed = 2">',
  '"><svg onload=window.harmed=3>',
  'javascript:window.harmed=4',
  '</script><script>window.harmed = 5</script>',
  '\u0000\u0007\u001b[31mred\u001b[0m',
  'abc\u202Edcba',
  `long/${'x'.repeat(4000)}`,
  '__proto__',
  'constructor',
  '(unclosed [regex',
  '=1+cmd|calc',
  'emoji 🙂 and ümlaut',
  'no characters of XML: \ufffe\uffff',
];

/** Tags, names, texts and log lines of an attacker. */
export async function hostile(port) {
  const mock = await empty(port);
  const live = mock.runs[0];
  for (const tag of hostileTags) {
    for (let at = 1; at <= 20; ++at) live.curve(tag).add(at, 1_700_000_000 + at, at);
    live.texts.set(tag, [{ step: 1, time: 1_700_000_000, text: tag }]);
    live.images.set(tag, [
      { step: 1, index: 0, time: 1_700_000_000, width: 8, height: 8, content: Buffer.from('<svg onload="window.harmed=6">') },
    ]);
    live.histograms.set(tag, [{ step: 1, time: 1_700_000_000, min: 0, max: 1, count: 1, sum: 1, limits: [1], counts: [1] }]);
    live.hparams[tag] = tag;
  }
  live.marks = hostileTags.map((tag, i) => ({ kind: tag, step: i + 1, time: 1_700_000_000 + i, text: tag }));
  live.error = hostileTags[0];
  live.checkpoints = hostileTags.map((tag, i) => ({ ...checkpoint(i + 1, 1_700_000_000), name: tag }));
  mock.log = hostileTags.map((text, i) => ({ number: i + 1, time: 1_700_000_000, level: i === 0 ? hostileTags[1] : 'info', text }));
  mock.info.title = hostileTags[0];
  mock.session = {
    ...mock.session,
    phase: 'running',
    watched: hostileTags.map((name) => ({ name, value: 1, step: 1 })),
    notes: hostileTags.map((text) => ({ name: text, text })),
    stop_conditions: hostileTags.map((text) => ({ name: text, text, distance: 1, unit: text, fraction: 0.5 })),
    stopping_because: hostileTags[0],
  };
  return mock;
}

export const scenes = { training, empty, directory, million, hostile };

if (argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await scenes[argv[2] ?? 'training'](Number(argv[3] ?? 6007));
  console.log(`${mock.address}#token=${mock.token}`);
  if (mock.grow) setInterval(() => mock.grow(10), 500);
}

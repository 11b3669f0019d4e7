// SPDX-License-Identifier: Apache-2.0
//
// The state of the session: header, actions and their results, tiles, and the panels beside the curves.
'use strict';

/** @param {Session['phase']} phase */
function phaseText(phase) {
  return (
    { starting: 'starting', running: 'running', recovering: 'recovering', stopping: 'stopping', ended: 'ended', failed: 'failed' }[phase] ??
    String(phase)
  );
}

/** Seconds without a sign of life after which a session counts as stuck. @param {Session} session */
function quietLimit(session) {
  return Math.max(10, 20 * (session.step_time?.step_seconds ?? 0));
}

/** @returns {{text: string, look: string, symbol: keyof typeof iconPaths}} */
function stateOfBoard() {
  const { session, info, connection } = board;
  if (connection.state === 'closed') return { text: 'Not connected', look: 'bad', symbol: 'warn' };
  if (!info) return { text: 'Loading', look: 'neutral', symbol: 'wait' };
  if (!session) {
    const runs = board.runs ?? [];
    if (runs.some(isWritten)) return { text: 'Being written', look: 'good', symbol: 'run' };
    const hasEnded = runs.length > 0 && runs.every((run) => run.ending);
    return { text: hasEnded ? 'All runs have ended' : 'Files only', look: 'neutral', symbol: 'done' };
  }
  const quiet = board.now() - session.time;
  if (session.phase === 'failed') return { text: 'Failed', look: 'bad', symbol: 'failed' };
  if (session.phase === 'ended') return { text: 'Ended', look: 'neutral', symbol: 'done' };
  if (connection.state === 'ended') return { text: 'Ended', look: 'neutral', symbol: 'done' };
  if (quiet > quietLimit(session)) return { text: `No step for ${durationText(quiet)}`, look: 'warn', symbol: 'warn' };
  if (session.phase === 'recovering') return { text: 'Recovering', look: 'warn', symbol: 'undo' };
  if (session.phase === 'stopping') return { text: 'Stopping', look: 'warn', symbol: 'wait' };
  if (session.phase === 'starting') return { text: 'Starting', look: 'neutral', symbol: 'wait' };
  return { text: 'Running', look: 'good', symbol: 'run' };
}

function showHeader() {
  const { session, info } = board;
  const state = stateOfBoard();
  const pill = byId('state');
  if (pill.textContent !== state.text || !pill.classList.contains(state.look)) {
    pill.className = `pill ${state.look}`;
    fill(pill, icon(state.symbol), state.text);
  }
  fill(byId('title'), info ? shorten(info.title || info.directory || 'stepwell', 120) : 'stepwell board');
  const progress = session?.last_step ? `${percentText(session.step / session.last_step)} ` : '';
  document.title = `${progress}${state.text} · ${visible(shorten(info?.title ?? 'stepwell', 60))}`;
}

/** @param {string} name @param {Child} big @param {Child[]} more @param {string} [look] */
function tile(name, big, more, look = '') {
  return el('div', { class: 'tile' }, el('dt', null, name), el('dd', { class: 'big' }, big), el('dd', { class: `more ${look}` }, ...more));
}

function showTiles() {
  if (!board.info) return;
  const made = board.session ? sessionTiles(board.session) : directoryTiles();
  fill(byId('tiles'), made, bestTiles());
}

/** @param {Session} session */
function sessionTiles(session) {
  const { checkpoints } = session;
  const state = stateOfBoard();
  const of = session.last_step === null ? '' : `of ${countText(session.last_step)} (${percentText(session.step / session.last_step)})`;
  const epoch = session.epoch && `epoch ${countText(session.epoch.number)}`;
  const isOver = session.phase === 'ended' || session.phase === 'failed';
  const isCalm = state.look === 'good' || state.look === 'neutral';
  const isLost = board.connection.state === 'closed';
  const rate =
    session.steps_per_second === null ? 'speed not known yet' : `${valueText(Number(session.steps_per_second.toPrecision(3)))} steps/s`;
  const end = session.stop_conditions.find((one) => one.distance !== null) ?? session.stop_conditions[0];
  const age = checkpoints.newest ? board.now() - checkpoints.newest.time : null;
  const tiles = [
    tile(
      isCalm ? `${state.text}, at step` : isLost ? 'Last seen at step' : 'At step',
      countText(session.step),
      [
        [!isCalm && state.text, of, epoch, session.stopping_because && shorten(session.stopping_because, 160)]
          .filter((one) => one)
          .join(' · '),
      ],
      isCalm ? '' : state.look,
    ),
    isOver
      ? tile('Ran for', durationText(session.time - session.started), ['started ', clockText(session.started)])
      : tile(
          'Time still to go',
          session.remaining_seconds === null || isLost
            ? 'unknown'
            : durationText(Math.max(0, session.remaining_seconds - Math.max(0, board.now() - session.time))),
          [rate, end && ` · ${shorten(end.text, 80)}`],
        ),
  ];
  if (checkpoints.directory === null) return [...tiles, tile('Last checkpoint', 'none', ['This session saves no checkpoints.'], 'warn')];
  const newest = checkpoints.newest;
  tiles.push(
    newest
      ? tile('Last checkpoint', agoText(age), [`step ${countText(newest.step)} · ${bytesText(newest.bytes)} · ${verifiedText(newest)}`])
      : tile(
          'Last checkpoint',
          'none yet',
          [session.step > session.first_step ? 'A stop of the machine loses everything.' : 'the first save is still to come'],
          isOver || session.step <= session.first_step ? '' : 'warn',
        ),
  );
  const lost = [
    checkpoints.lost_steps === null ? 'unknown' : plural(checkpoints.lost_steps, 'step'),
    checkpoints.lost_seconds === null ? '' : `${durationText(checkpoints.lost_seconds)} of work`,
  ];
  if (!isOver) tiles.push(tile('Lost if killed now', lost[0], [lost[1]]));
  return tiles;
}

function directoryTiles() {
  const runs = board.runs ?? [];
  const newest = [...runs].sort((a, b) => b.changed - a.changed)[0];
  const active = runs.filter(isWritten).length;
  const ended = (/** @type {Ending['how']} */ how) => runs.filter((run) => run.ending?.how === how).length;
  const failed = ended('failed');
  const endings = [
    active > 0 ? `${plural(active, 'run is', 'runs are')} being written` : 'none is being written',
    failed > 0 && `${countText(failed)} failed`,
    ended('finished') > 0 && `${countText(ended('finished'))} finished`,
    ended('interrupted') > 0 && `${countText(ended('interrupted'))} interrupted`,
  ];
  if (!newest) return [tile('Runs', '0', [shorten(board.info?.directory ?? '', 200)])];
  const checkpoint = panels.checkpoints[0];
  return [
    tile('Runs', countText(runs.length), [endings.filter((one) => one).join(' · ')], failed > 0 ? 'bad' : ''),
    tile('Last change', agoText(board.now() - newest.changed), [shorten(newest.run, 80)]),
    tile(`Last checkpoint of ${shorten(board.detail ?? '', 40)}`, checkpoint ? agoText(board.now() - checkpoint.time) : 'none', [
      checkpoint
        ? `step ${countText(checkpoint.step)} · ${bytesText(checkpoint.bytes)} · ${verifiedText(checkpoint)}`
        : 'no checkpoint found',
    ]),
  ];
}

/**
 * Returns the newest value of the run of the session, or of the best run if there is no session.
 * @param {{run: string, last?: JsonNumber | null}[]} found
 * @param {{run: string, last?: JsonNumber | null}} best
 */
function nowText(found, best) {
  const live = found.find((one) => one.run === board.info?.live_run);
  if (!live || found.length === 1) return `now ${valueText((live ?? best).last)}`;
  return `now ${valueText(live.last)} in ${shorten(live.run, 40)}`;
}

/** Tiles for the pinned curves; without those, for the first accuracy and the first loss. They count all runs, also those that are not shown. */
function bestTiles() {
  const runs = (board.runs ?? []).map((one) => one.run).filter((run) => board.tags.has(run));
  const all = [
    ...new Set(
      board.shownRuns().flatMap((run) => (board.tags.get(run)?.tags ?? []).filter((tag) => tag.kind === 'scalar').map((tag) => tag.tag)),
    ),
  ];
  const pinned = settings.pinned.filter((tag) => all.includes(tag)).slice(0, 4);
  const first = (/** @type {RegExp} */ pattern) =>
    all.filter((tag) => pattern.test(tag)).sort((a, b) => Number(isValidation(b)) - Number(isValidation(a)))[0];
  const chosen = pinned.length > 0 ? pinned : [first(higherIsBetter), first(/loss|error|perplexity/i)].filter((tag) => tag !== undefined);
  return chosen.map((tag) => {
    const isHigh = higherIsBetter.test(tag);
    const found = runs.flatMap((run) => {
      const known = board.curveTag(run, tag);
      if (!known) return [];
      const points = run === board.info?.live_run ? (board.points.get(tag) ?? []) : [];
      const { value, step } = extremes(known, points)[isHigh ? 1 : 0];
      return typeof value === 'number' ? [{ run, value, step, last: points.at(-1)?.value ?? known.last }] : [];
    });
    const best = found.sort((a, b) => (isHigh ? b.value - a.value : a.value - b.value))[0];
    const more = best
      ? [atStep(best.step), found.length > 1 ? `in ${shorten(best.run, 40)}` : '', nowText(found, best), countedText(runs)]
      : [];
    return tile(`${isHigh ? 'Highest' : 'Lowest'} ${shorten(tag, 60)}`, best ? valueText(best.value) : '–', [
      more.filter((one) => one).join(' · '),
    ]);
  });
}

/** Says how many runs were compared, unless there is one only. @param {string[]} runs those whose values are known */
function countedText(runs) {
  const count = board.runs?.length ?? 0;
  if (count < 2) return '';
  return runs.length < count ? `of ${countText(runs.length)} of ${countText(count)} runs` : `of all ${countText(count)} runs`;
}

const higherIsBetter = /acc(uracy)?\b|score|\bauc\b|\bf1\b|precision|recall|reward/i;

/** @param {string} tag */
function isValidation(tag) {
  return /val|eval|test/i.test(tag);
}

/** @param {Checkpoint} checkpoint */
function verifiedText(checkpoint) {
  if (checkpoint.is_verified === null) return 'not verified';
  return checkpoint.is_verified ? 'verified' : 'DAMAGED';
}

/** @param {StopCondition} condition */
function distanceText({ distance, unit }) {
  if (unit === 'seconds') return durationText(distance);
  return `${Number.isInteger(distance) ? countText(distance) : valueText(distance)} ${shorten(unit, 40)}`;
}

/** Checkpoint now, stop, and trace; what became of them. */
class Actions {
  constructor() {
    /** @type {Map<number, Action>} */
    this.known = new Map();
    this.error = '';
    this.save = /** @type {HTMLButtonElement} */ (byId('checkpoint-now'));
    this.stop = /** @type {HTMLButtonElement} */ (byId('stop'));
    this.trace = /** @type {HTMLButtonElement} */ (byId('trace'));
    const dialog = /** @type {HTMLDialogElement} */ (byId('stop-dialog'));
    this.save.addEventListener('click', () => void this.request('checkpoint', {}));
    this.stop.addEventListener('click', () => dialog.showModal());
    byId('stop-no').addEventListener('click', () => dialog.close());
    byId('stop-yes').addEventListener('click', () => {
      dialog.close();
      void this.request('stop', {});
    });
    this.trace.addEventListener('click', () => {
      const steps = Number(/** @type {HTMLInputElement} */ (byId('trace-steps')).value);
      void this.request('trace', { steps });
    });
    board.on(['info', 'connection'], () => this.show());
    board.on(['session'], () => this.take(board.session?.actions ?? []));
    board.on(['second'], () => void this.poll());
  }

  /** @param {string} action @param {object} body */
  async request(action, body) {
    this.error = '';
    try {
      this.take([await postAction(action, body)]);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.error = `${actionText(action)} was refused: ${text}`;
      this.show();
    }
  }

  /** @param {Action[]} actions */
  take(actions) {
    for (const action of actions) this.known.set(action.id, action);
    this.show();
  }

  /** Asks for the result of pending actions if the stream does not report it. */
  async poll() {
    if (board.connection.state === 'open' || document.hidden) return;
    for (const action of this.known.values()) {
      if (action.state !== 'pending') continue;
      const newer = await getJson(`api/actions/${action.id}`).catch(() => null);
      if (newer) this.take([newer]);
    }
  }

  /** @param {string} name */
  newest(name) {
    return [...this.known.values()].filter((one) => one.action === name).sort((a, b) => b.id - a.id)[0];
  }

  show() {
    const { info, session } = board;
    const offered = info?.actions ?? [];
    const isOver = session?.phase === 'ended' || session?.phase === 'failed' || board.connection.state === 'ended';
    const isPending = (/** @type {string} */ name) => this.newest(name)?.state === 'pending';
    for (const [name, button] of /** @type {[string, HTMLButtonElement][]} */ ([
      ['checkpoint', this.save],
      ['stop', this.stop],
      ['trace', this.trace],
    ])) {
      button.hidden = !offered.includes(name);
      button.disabled = isOver || isPending(name) || token.value === '' || board.connection.state === 'closed';
    }
    byId('trace-card').hidden = !offered.includes('trace');
    byId('no-token').hidden = token.value !== '' || offered.length === 0 || isOver;
    this.showResult();
    this.showTrace();
  }

  showResult() {
    const box = byId('result');
    const newest = [...this.known.values()].filter((one) => one.action !== 'trace').sort((a, b) => b.id - a.id)[0];
    const isError = this.error !== '';
    box.hidden = !newest && !isError;
    if (isError) this.fillResult('bad', 'failed', this.error);
    else if (newest) {
      const look = { pending: 'warn', done: 'good', failed: 'bad' }[newest.state];
      const symbol = /** @type {const} */ ({ pending: 'wait', done: 'done', failed: 'failed' })[newest.state];
      const time =
        newest.finished !== null ? ` (${clockText(newest.finished)}, after ${durationText(newest.finished - newest.requested)})` : '';
      this.fillResult(look, symbol, `${actionText(newest.action)}: ${shorten(newest.text, 400)}${time}`);
    }
  }

  /** @param {string} look @param {keyof typeof iconPaths} symbol @param {string} text */
  fillResult(look, symbol, text) {
    const box = byId('result');
    if (box.textContent === visible(text) && box.classList.contains(look)) return;
    box.className = `banner ${look}${symbol === 'wait' ? ' busy' : ''}`;
    fill(box, el('p', null, icon(symbol), ' ', text));
  }

  showTrace() {
    const newest = this.newest('trace');
    const address = newest?.download;
    const text = newest
      ? `${newest.state === 'pending' ? 'Capturing' : newest.state === 'done' ? 'Done' : 'Failed'}: ${shorten(newest.text, 300)}`
      : '';
    const box = byId('trace-result');
    if (box.textContent?.startsWith(visible(text)) && text !== '') return;
    fill(
      box,
      text,
      address &&
        newest &&
        el(
          'p',
          null,
          el('button', { type: 'button', onclick: () => void saveTrace(address, newest.id) }, icon('down'), 'Download the trace'),
          el('small', null, ' Open it at ui.perfetto.dev.'),
        ),
    );
  }
}

/** @param {string} action */
function actionText(action) {
  return { checkpoint: 'Checkpoint', stop: 'Stop', trace: 'Trace' }[action] ?? action;
}

/** @param {string} address @param {number} id */
async function saveTrace(address, id) {
  if (!address.startsWith('/')) return;
  try {
    const reply = await request(address.slice(1));
    download(`trace-${id}.json`, await reply.arrayBuffer(), 'application/json');
  } catch (error) {
    fill(byId('trace-result'), error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} text */
function capital(text) {
  return text.includes('_') ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** The panels beside the curves. */
const panels = {
  /** @type {Checkpoint[]} */
  checkpoints: [],

  show() {
    const { session } = board;
    for (const id of ['slow-card', 'end-card', 'watched-card']) byId(id).hidden = !session;
    if (session) {
      this.showSlow(session.step_time);
      this.showEnd(session);
      this.showWatched(session);
    }
    this.showCheckpoints();
  },

  /** @param {StepTime | null} time */
  showSlow(time) {
    const box = byId('slow');
    if (!time || time.step_seconds <= 0) {
      fill(box, el('p', { class: 'hint' }, 'No step has been measured yet.'));
      return;
    }
    const parts = [
      { name: 'model', seconds: time.model_seconds },
      { name: 'waiting for data', seconds: time.data_seconds },
      { name: 'saves and flushes', seconds: time.io_seconds },
      ...[...time.hooks].sort((a, b) => b.seconds - a.seconds).slice(0, 8),
      { name: 'other', seconds: time.other_seconds },
    ];
    const largest = parts.reduce((a, b) => (b.seconds > a.seconds ? b : a));
    const share = (/** @type {number} */ seconds) => seconds / time.step_seconds;
    let at = 0;
    const blocks = parts.map((part, place) => {
      const width = Math.max(0, share(part.seconds) * 100);
      at += width;
      return svg('rect', { x: at - width, width, height: 10, class: `s${(place % seriesColours) + 1}`, fill: 'currentColor' });
    });
    const label = parts.map((part) => `${part.name} ${percentText(share(part.seconds))}`).join(', ');
    const block = (/** @type {number} */ place) =>
      svg(
        'svg',
        { class: `swatch s${(place % seriesColours) + 1}`, viewBox: '0 0 18 8', 'aria-hidden': 'true' },
        svg('rect', { width: 18, height: 8, fill: 'currentColor' }),
      );
    fill(
      box,
      el(
        'p',
        null,
        el('strong', null, `${capital(shorten(largest.name, 60))} takes ${percentText(share(largest.seconds))}`),
        ` of a step of ${durationText(time.step_seconds)}.`,
      ),
      el('p', { class: 'hint' }, `Mean of ${plural(time.samples, 'measured step')}`),
      svg(
        'svg',
        { class: 'stack', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': visible(label) },
        ...blocks,
      ),
      el(
        'table',
        { class: 'plain' },
        el('caption', { class: 'sr' }, 'Parts of a step'),
        el(
          'thead',
          { class: 'sr' },
          el('tr', null, el('th', { scope: 'col' }, 'part'), el('th', { scope: 'col' }, 'time'), el('th', { scope: 'col' }, 'share')),
        ),
        el(
          'tbody',
          null,
          parts.map((part, place) =>
            el(
              'tr',
              null,
              el('th', { scope: 'row' }, block(place), shorten(part.name, 60)),
              el('td', { class: 'number' }, durationText(part.seconds)),
              el('td', { class: 'number' }, percentText(share(part.seconds))),
            ),
          ),
        ),
      ),
    );
  },

  showCheckpoints() {
    const state = board.session?.checkpoints;
    const isLive = board.session !== null && (board.detail === board.info?.live_run || board.info?.live_run === null);
    const facts = [];
    if (state && isLive) {
      if (state.directory === null) facts.push(['saves', 'This session saves no checkpoints.']);
      else {
        const backlog = state.backlog;
        facts.push(['directory', shorten(state.directory, 300)]);
        if (board.session?.restored_from) facts.push(['began from', shorten(board.session.restored_from, 300)]);
        facts.push([
          'lost if killed now',
          state.lost_steps === null ? 'unknown' : `${plural(state.lost_steps, 'step')}, ${durationText(state.lost_seconds)}`,
        ]);
        facts.push([
          'backlog',
          backlog && backlog.writing_bytes + backlog.waiting_bytes > 0
            ? `writing ${bytesText(backlog.writing_bytes)} for ${durationText(backlog.writing_seconds)}, ${bytesText(backlog.waiting_bytes)} waiting`
            : state.saves > 0
              ? 'none: all saves are durable'
              : 'none',
        ]);
        const problems = [
          state.saves_failed > 0 && `${countText(state.saves_failed)} failed`,
          state.saves_skipped > 0 && `${countText(state.saves_skipped)} skipped`,
          state.saves_postponed > 0 && `${countText(state.saves_postponed)} postponed`,
        ];
        facts.push([
          'saves',
          [countText(state.saves), ...problems.filter((one) => one)].join(', ') +
            (state.last_save_seconds === null ? '' : `; the last one took ${durationText(state.last_save_seconds)}`),
        ]);
      }
    }
    fill(byId('checkpoint-run'), board.detail !== null && (board.runs?.length ?? 0) > 1 ? shorten(board.detail, 60) : '');
    fill(
      byId('checkpoint-facts'),
      facts.flatMap(([name, text]) => [el('dt', null, name), el('dd', null, text)]),
    );
    fill(
      byId('checkpoint-rows'),
      this.checkpoints.map((one) =>
        el(
          'tr',
          null,
          el('th', { scope: 'row', class: 'number', title: visible(shorten(one.name, 300)) }, countText(one.step)),
          el('td', { class: 'number' }, agoText(board.now() - one.time)),
          el('td', { class: 'number' }, bytesText(one.bytes)),
          el('td', null, one.is_verified === false ? el('span', { class: 'pill bad' }, 'damaged') : one.is_verified ? 'yes' : 'no'),
        ),
      ),
    );
    byId('checkpoint-table').hidden = this.checkpoints.length === 0;
    byId('checkpoint-none').hidden = this.checkpoints.length > 0;
  },

  /** @param {Session} session */
  showEnd(session) {
    const rate = session.steps_per_second;
    const facts = [
      ['speed', rate === null ? 'not known yet' : `${valueText(Number(rate.toPrecision(3)))} steps/s`],
      ['started', `${clockText(session.started)}, at step ${countText(session.first_step)}`],
      [
        'running for',
        durationText((session.phase === 'ended' || session.phase === 'failed' ? session.time : board.now()) - session.started),
      ],
    ];
    if (session.remaining_seconds !== null && session.phase !== 'ended')
      facts.push(['expected end', clockText(session.time + session.remaining_seconds)]);
    if (session.stopping_because) facts.push(['stops because', shorten(session.stopping_because, 300)]);
    for (const note of session.notes) facts.push([shorten(note.name, 60), shorten(note.text, 300)]);
    fill(
      byId('end-facts'),
      facts.flatMap(([name, text]) => [el('dt', null, name), el('dd', null, text)]),
    );
    fill(
      byId('conditions'),
      session.stop_conditions.map((one) =>
        el(
          'li',
          null,
          el(
            'span',
            { class: 'text' },
            shorten(one.text || one.name, 200),
            one.distance !== null && ` · ${distanceText(one)} to go`,
            one.fraction !== null && meter(one.fraction),
          ),
        ),
      ),
      session.stop_conditions.length === 0 && el('li', null, el('span', { class: 'soft text' }, 'No hook limits this session.')),
    );
  },

  /** @param {Session} session */
  showWatched(session) {
    byId('watched-card').hidden = session.watched.length === 0;
    fill(
      byId('watched'),
      session.watched.map((one) =>
        el(
          'tr',
          null,
          el('th', { scope: 'row' }, shorten(one.name, 100)),
          el('td', { class: 'number' }, valueText(one.value)),
          el('td', { class: 'number' }, countText(one.step)),
        ),
      ),
    );
  },

  showMarks() {
    const all = board
      .shownRuns()
      .flatMap((run) => (board.marks.get(run) ?? []).filter((mark) => !quietMarks.has(mark.kind)).map((mark) => ({ run, mark })));
    const newest = all.sort((a, b) => b.mark.time - a.mark.time).slice(0, 100);
    const hasMany = board.shownRuns().length > 1;
    fill(
      byId('marks'),
      newest.map(({ run, mark }) =>
        el(
          'li',
          null,
          el('span', { class: `pill ${markLook(mark.kind)}` }, shorten(mark.kind, 20)),
          el(
            'span',
            null,
            el('strong', null, `step ${countText(mark.step)}`),
            ` · ${clockText(mark.time)}`,
            hasMany && ` · ${shorten(run, 40)}`,
          ),
          el(
            'button',
            {
              class: 'quiet',
              type: 'button',
              'aria-label': `Show step ${mark.step} in the curves`,
              onclick: () => curves.showMark(mark, run),
            },
            'show',
          ),
          el('span', { class: 'text' }, shorten(mark.text, 400)),
        ),
      ),
      newest.length === 0 && el('li', null, el('span', { class: 'soft text' }, 'No recovery, rollback or restart.')),
    );
  },
};

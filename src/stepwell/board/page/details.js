// SPDX-License-Identifier: Apache-2.0
//
// Below the curves: histograms, images, texts, hyper-parameters, log lines and ranks. They are read when they come into view.
'use strict';

/** A section that reads its content when it is in view and its tags have changed. */
class LazySection {
  /**
   * @param {string} id
   * @param {() => Promise<void>} read
   * @param {Tag['kind']} kind the section is hidden if the run has no such tag
   */
  constructor(id, read, kind) {
    this.element = byId(id);
    this.card = byId(`${id}-card`);
    this.kind = kind;
    this.read = read;
    this.isVisible = false;
    this.isWanted = true;
    this.isReading = false;
    new IntersectionObserver(
      ([entry]) => {
        this.isVisible = entry.isIntersecting;
        void this.refresh();
      },
      { rootMargin: '200px' },
    ).observe(this.card);
    this.shown = '';
    this.again = atMostEvery(1500, () => {
      const { run, tags } = detailTags(this.kind);
      this.card.hidden = tags.length === 0;
      const now = JSON.stringify([document.documentElement.dataset.theme, run, tags.map((tag) => [tag.tag, tag.points, tag.last_step])]);
      if (now === this.shown) return;
      this.shown = now;
      this.isWanted = true;
      void this.refresh();
    });
  }

  async refresh() {
    if (!this.isVisible || !this.isWanted || this.isReading || document.hidden) return;
    this.isReading = true;
    this.isWanted = false;
    try {
      await this.read();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      fill(this.element, el('p', { class: 'hint error' }, text));
      this.shown = '';
    }
    this.isReading = false;
  }
}

/** Returns the tags of a kind in the run of which details are shown. @param {Tag['kind']} kind */
function detailTags(kind) {
  const run = board.detail;
  const tags = run === null ? [] : (board.tags.get(run)?.tags ?? []).filter((tag) => tag.kind === kind);
  return { run: run ?? '', tags: tags.slice(0, 60) };
}

/** Draws histograms over time: steps from left to right, values from bottom to top, darker where more values are. */
class HistogramFigure {
  /** @param {string} tag */
  constructor(tag) {
    this.canvas = el('canvas', { role: 'img' });
    this.caption = el('figcaption', { class: 'soft' });
    this.element = el('figure', null, el('h3', { class: 'clamp' }, shorten(tag, 200)), this.canvas, this.caption);
    this.tag = tag;
  }

  /** @param {Histogram[]} list */
  show(list) {
    const newest = list[list.length - 1];
    if (!newest) {
      fill(this.caption, 'No histogram yet.');
      return;
    }
    const low = Math.min(...list.map((one) => one.min));
    const high = Math.max(...list.map((one) => one.max));
    const mean = newest.count > 0 ? newest.sum / newest.count : null;
    const text = `step ${countText(newest.step)}: ${plural(newest.count, 'value')} from ${valueText(newest.min)} to ${valueText(newest.max)}, mean ${valueText(mean)}`;
    fill(this.caption, text);
    this.canvas.setAttribute('aria-label', visible(`Histograms of ${shorten(this.tag, 80)} over ${list.length} steps. ${text}`));
    this.paint(list, low, high);
  }

  /** @param {Histogram[]} list @param {number} low @param {number} high */
  paint(list, low, high) {
    const context = this.canvas.getContext('2d');
    if (!context) return;
    const scale = window.devicePixelRatio;
    const width = (this.canvas.width = Math.max(1, Math.round(this.canvas.clientWidth * scale)));
    const height = (this.canvas.height = Math.max(1, Math.round(this.canvas.clientHeight * scale)));
    const [left, bottom] = [64 * scale, height - 20 * scale];
    const range = high - low || 1;
    const toY = (/** @type {number} */ value) => bottom - ((value - low) / range) * (bottom - 4);
    context.fillStyle = colour('series-1');
    list.forEach((one, place) => {
      const x = left + (place / list.length) * (width - left);
      const column = Math.ceil((width - left) / list.length);
      const densities = one.counts.map((count, i) => {
        const from = Math.max(low, i > 0 ? one.limits[i - 1] : one.min);
        const to = Math.min(high, one.limits[i]);
        return { from, to, density: count / Math.max(to - from, range / 200) };
      });
      const most = Math.max(...densities.map((bucket) => bucket.density)) || 1;
      for (const { from, to, density } of densities) {
        if (density <= 0) continue;
        context.globalAlpha = 0.08 + 0.92 * Math.sqrt(density / most);
        const top = toY(Math.max(from, to));
        context.fillRect(x, top, column, Math.max(scale, toY(Math.min(from, to)) - top));
      }
    });
    context.globalAlpha = 1;
    context.fillStyle = colour('soft');
    context.font = `${11 * scale}px system-ui, sans-serif`;
    context.textAlign = 'right';
    context.fillText(valueText(high), left - 6 * scale, 12 * scale);
    context.fillText(valueText(low), left - 6 * scale, bottom);
    context.fillText(shortCount(list[list.length - 1].step), width - 4 * scale, height - 5 * scale);
    context.textAlign = 'left';
    context.fillText(`step ${shortCount(list[0].step)}`, left, height - 5 * scale);
  }
}

async function readHistograms() {
  const { run, tags } = detailTags('histogram');
  const figures = tags.map((tag) => new HistogramFigure(tag.tag));
  const lists = await Promise.all(tags.map((tag) => getJson('api/histograms', { run, tag: tag.tag, count: 60 })));
  fill(byId('histograms'), ...figures.map((one) => one.element));
  figures.forEach((figure, i) => figure.show(lists[i].histograms));
}

/** The images of a tag, one at a time. */
class ImageFigure {
  /** @param {string} run @param {string} tag @param {{step: number, index: number, width: number, height: number}[]} images newest first */
  constructor(run, tag, images) {
    this.run = run;
    this.tag = tag;
    this.images = [...images].reverse();
    this.url = '';
    this.image = el('img', { alt: '' });
    this.caption = el('figcaption', { class: 'soft' });
    this.slider = el('input', {
      type: 'range',
      min: 0,
      max: Math.max(0, images.length - 1),
      'aria-label': `Step of ${shorten(tag, 80)}`,
      oninput: () => void this.show(Number(this.slider.value)),
    });
    this.slider.value = this.slider.max;
    this.element = el(
      'figure',
      null,
      el('h3', { class: 'clamp' }, shorten(tag, 200)),
      this.image,
      this.caption,
      images.length > 1 && this.slider,
    );
  }

  /** @param {number} place */
  async show(place) {
    const one = this.images[place];
    if (!one) return;
    const name = `step ${countText(one.step)}${one.index > 0 ? `, image ${one.index}` : ''} · ${one.width} × ${one.height}`;
    this.slider.setAttribute('aria-valuetext', name);
    try {
      const reply = await request(`api/image${query({ run: this.run, tag: this.tag, step: one.step, index: one.index })}`);
      const url = URL.createObjectURL(await reply.blob());
      URL.revokeObjectURL(this.url);
      this.url = url;
      this.image.src = url;
      this.image.alt = visible(`${shorten(this.tag, 80)}, ${name}`);
      fill(this.caption, name);
    } catch (error) {
      fill(this.caption, error instanceof Error ? error.message : String(error));
    }
  }
}

/** @type {ImageFigure[]} */
let imageFigures = [];

async function readImages() {
  const { run, tags } = detailTags('image');
  const lists = await Promise.all(tags.map((tag) => getJson('api/images', { run, tag: tag.tag })));
  for (const figure of imageFigures) URL.revokeObjectURL(figure.url);
  imageFigures = tags.map((tag, i) => new ImageFigure(run, tag.tag, lists[i].images));
  fill(byId('images'), ...imageFigures.map((one) => one.element));
  await Promise.all(imageFigures.map((figure) => figure.show(figure.images.length - 1)));
}

async function readTexts() {
  const { run, tags } = detailTags('text');
  const lists = await Promise.all(tags.map((tag) => getJson('api/texts', { run, tag: tag.tag })));
  const one = (/** @type {{step: number, text: string}} */ text) =>
    el(
      'div',
      null,
      el('small', null, `step ${countText(text.step)}`),
      el('div', { class: 'quote', tabindex: 0, role: 'region', 'aria-label': `Text of step ${text.step}` }, markdown(text.text)),
    );
  fill(
    byId('texts'),
    tags.map((tag, i) => {
      const [newest, ...older] = lists[i].texts;
      return el(
        'figure',
        null,
        el('h3', { class: 'clamp' }, shorten(tag.tag, 200)),
        newest && one(newest),
        older.length > 0 && el('details', null, el('summary', null, plural(older.length, 'older text')), older.map(one)),
      );
    }),
  );
}

async function readHparams() {
  const shown = board.shownRuns();
  const reply = shown.length > 0 ? await getJson('api/hparams', { run: shown }) : { runs: [] };
  /** @type {{run: string, hparams: Record<string, number | string | boolean>}[]} */
  const runs = reply.runs.filter((/** @type {{hparams: object | null}} */ run) => run.hparams && Object.keys(run.hparams).length > 0);
  const text = (/** @type {number | string | boolean | undefined} */ value) =>
    value === undefined ? '–' : typeof value === 'number' ? valueText(value) : shorten(String(value), 200);
  const rows = [...new Set(runs.flatMap((run) => Object.keys(run.hparams)))].map((name) => {
    const values = runs.map((run) => text(Object.hasOwn(run.hparams, name) ? run.hparams[name] : undefined));
    return { name, values, differs: new Set(values).size > 1 };
  });
  rows.sort((a, b) => Number(b.differs) - Number(a.differs) || a.name.localeCompare(b.name));
  const table = el(
    'table',
    null,
    el(
      'thead',
      null,
      el(
        'tr',
        null,
        el('th', { scope: 'col' }, 'name'),
        runs.map((run) => el('th', { scope: 'col' }, swatch(board.shown.indexOf(run.run)), shorten(run.run, 60))),
      ),
    ),
    el(
      'tbody',
      null,
      rows.map((row) =>
        el(
          'tr',
          { class: row.differs && 'best' },
          el('th', { scope: 'row' }, shorten(row.name, 100)),
          row.values.map((value) => el('td', null, value)),
        ),
      ),
    ),
  );
  fill(byId('hparams'), table);
  byId('hparams-card').hidden = runs.length === 0;
}

/** The log of this process. */
const log = {
  /** @type {LogLine[]} */
  lines: [],
  newest: -1,

  /** @param {LogLine[]} lines */
  replace(lines) {
    this.lines = [];
    this.newest = -1;
    fill(byId('log'));
    this.add(lines);
  },

  /** @param {LogLine[]} lines */
  add(lines) {
    const added = lines.filter((line) => line.number > this.newest);
    if (added.length === 0) return;
    this.newest = added[added.length - 1].number;
    this.lines = [...this.lines, ...added].slice(-1000);
    const box = byId('log');
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    box.append(...added.filter((line) => this.matches(line)).map((line) => this.row(line)));
    while (box.childElementCount > 1000) box.firstElementChild?.remove();
    if (isAtEnd) box.scrollTop = box.scrollHeight;
    byId('log-card').hidden = false;
  },

  /** @param {LogLine} line */
  row(line) {
    const look = { warning: 'warn', error: 'bad' }[line.level] ?? '';
    return el(
      'div',
      null,
      el('span', { class: 'soft' }, `${clockText(line.time)} `),
      el('span', { class: look }, line.level),
      ' ',
      line.text,
    );
  },

  /** @param {LogLine} line */
  matches(line) {
    const levels = ['debug', 'info', 'warning', 'error'];
    const least = /** @type {HTMLSelectElement} */ (byId('log-level')).value;
    const text = /** @type {HTMLInputElement} */ (byId('log-search')).value.toLowerCase();
    return levels.indexOf(line.level) >= levels.indexOf(least) && line.text.toLowerCase().includes(text);
  },

  show() {
    const box = byId('log');
    fill(
      box,
      this.lines.filter((line) => this.matches(line)).map((line) => this.row(line)),
    );
    box.scrollTop = box.scrollHeight;
  },
};

async function readRanks() {
  /** @type {{rank: number, size: number, generation: number, is_this_process: boolean, is_lost: boolean}[]} */
  const ranks = (await getJson('api/ranks')).ranks;
  byId('ranks-card').hidden = ranks.length === 0;
  fill(
    byId('ranks'),
    ranks.map((one) =>
      el(
        'tr',
        null,
        el('th', { scope: 'row', class: 'number' }, `${one.rank} of ${one.size}`),
        el('td', { class: 'number' }, one.generation),
        el('td', null, one.is_this_process ? 'this process' : one.is_lost ? el('span', { class: 'pill bad' }, 'lost') : ''),
      ),
    ),
  );
}

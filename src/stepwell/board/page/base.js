// SPDX-License-Identifier: Apache-2.0
//
// Elements, icons, and how numbers, times and sizes are written. Text of others is only ever inserted as text nodes.
'use strict';

/** @typedef {string | number | Node | null | undefined | false | Child[]} Child */

/**
 * Creates an element. Attributes whose name begins with "on" are event listeners; null and false leave an attribute out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown> | null} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  setAttributes(made, attributes ?? {});
  made.append(...nodes(children));
  return made;
}

/**
 * Like el(), for SVG.
 * @param {string} tag
 * @param {Record<string, unknown> | null} [attributes]
 * @param {...Child} children
 * @returns {SVGElement}
 */
function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(made, attributes ?? {});
  made.append(...nodes(children));
  return made;
}

/** @param {Element} element @param {Record<string, unknown>} attributes */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** @param {Child[]} children @returns {(Node | string)[]} */
function nodes(children) {
  return children.flatMap((child) => {
    if (child === null || child === undefined || child === false) return [];
    if (Array.isArray(child)) return nodes(child);
    return [child instanceof Node ? child : visible(String(child))];
  });
}

/**
 * Replaces the children of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
function fill(parent, ...children) {
  parent.replaceChildren(...nodes(children));
}

/**
 * Returns the element with this id, which index.html has.
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/**
 * Makes control characters and marks of writing direction visible, so that a text cannot pretend to be another one. Replaces what cannot be
 * in XML, so that a chart can be saved as SVG.
 * @param {string} text
 */
function visible(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]/g, (c) => {
    return c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd';
  });
}

/** @param {string} text @param {number} limit */
function shorten(text, limit) {
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

const iconPaths = {
  save: 'M5 3h11l3 3v15H5zM8 3v6h7V3M8 21v-7h8v7',
  stop: 'M6 6h12v12H6z',
  run: 'M8 5l11 7-11 7z',
  done: 'M4 12l6 6L20 6',
  failed: 'M6 6l12 12M18 6L6 18',
  wait: 'M12 3a9 9 0 1 0 9 9',
  warn: 'M12 3l10 18H2zM12 10v5M12 18v.5',
  pin: 'M9 3h6l-1 7 4 4H6l4-4zM12 14v7',
  wide: 'M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5',
  down: 'M12 3v12M7 10l5 5 5-5M4 21h16',
  undo: 'M4 9h10a6 6 0 0 1 0 12H9M4 9l5-5M4 9l5 5',
};

/** @param {keyof typeof iconPaths} name @returns {SVGElement} */
function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, svg('path', { d: iconPaths[name] }));
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Writes a step or a count: 12,345. @param {number | null | undefined} value */
function countText(value) {
  return value === null || value === undefined ? '–' : whole.format(value);
}

/** Writes a value of a curve with 4 significant digits. @param {number | string | null | undefined} value */
function valueText(value) {
  if (value === null || value === undefined) return '–';
  const number = typeof value === 'string' ? { nan: NaN, inf: Infinity, '-inf': -Infinity }[value] : value;
  if (number === undefined) return String(value);
  if (Number.isNaN(number)) return 'NaN';
  if (!Number.isFinite(number)) return number > 0 ? '+∞' : '−∞';
  const size = Math.abs(number);
  if (number === 0) return '0';
  if (size < 1e-4 || size >= 1e7) return number.toExponential(3).replace('e+', 'e').replace(/-/g, '−');
  if (size >= 1e4) return whole.format(number).replace('-', '−');
  return String(Number(number.toPrecision(4))).replace('-', '−');
}

/** Writes a duration with two units: 1 h 05 min. @param {number | null | undefined} seconds */
function durationText(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  const abs = Math.max(0, seconds);
  if (abs === 0) return '0 s';
  if (abs < 1e-3) return `${valueText(Number((abs * 1e6).toPrecision(3)))} µs`;
  if (abs < 1) return `${valueText(Number((abs * 1e3).toPrecision(3)))} ms`;
  if (abs < 10) return `${Number(abs.toFixed(1))} s`;
  const total = Math.round(abs);
  if (total < 60) return `${total} s`;
  if (total < 3600) return `${Math.floor(total / 60)} min ${pad(total % 60)} s`;
  const minutes = Math.round(total / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  const hours = Math.round(total / 3600);
  return `${Math.floor(hours / 24)} d ${pad(hours % 24)} h`;
}

/** Writes an age: "12 s ago", "just now". @param {number | null | undefined} seconds */
function agoText(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  return seconds < 1.5 ? 'just now' : `${durationText(Math.round(seconds))} ago`;
}

/** @param {number} value */
function pad(value) {
  return String(value).padStart(2, '0');
}

/** @param {number | null | undefined} bytes */
function bytesText(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let size = bytes;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    ++unit;
  }
  return `${unit === 0 ? size : Number(size.toPrecision(3))} ${units[unit]}`;
}

/** Writes a time of day; with its date if it is not today. @param {number | null | undefined} seconds */
function clockText(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const date = new Date(seconds * 1000);
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${time}`;
}

/** Writes a share of 1: 12.3 %. @param {number} share */
function percentText(share) {
  return `${share < 0.0995 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;
}

/** @param {number} count @param {string} one @param {string} [many] */
function plural(count, one, many = `${one}s`) {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/**
 * Offers text or bytes as a download.
 * @param {string} name
 * @param {BlobPart} content
 * @param {string} type
 */
function download(name, content, type) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = el('a', { href: url, download: name.replace(/[^A-Za-z0-9._-]+/g, '_') });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/**
 * Returns a function that calls `work` at most once in `milliseconds`, the last time after the last request.
 * @param {number} milliseconds
 * @param {() => void} work
 */
function atMostEvery(milliseconds, work) {
  let last = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        last = performance.now();
        work();
      },
      Math.max(0, last + milliseconds - performance.now()),
    );
  };
}

// SPDX-License-Identifier: Apache-2.0
//
// Markdown as elements: headings, paragraphs, lists, quotes, tables, code, emphasis and links. All text is inserted as text. HTML in it stays
// text, links lead to http(s) addresses only, and an image is a link, because the page asks no other server for anything.
'use strict';

const deepestQuote = 8;
const mostTableCells = 20_000;
const headings = /** @type {const} */ (['h4', 'h5', 'h6']);

/** Returns the elements of a text. @param {string} text @param {number} [depth] @returns {Child[]} */
function markdown(text, depth = 0) {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  /** @type {Child[]} */
  const made = [];
  for (let i = 0; i < lines.length;) {
    const [element, next] = block(lines, i, depth);
    if (element) made.push(element);
    i = next;
  }
  return made;
}

/** Returns the block that begins at a line, and the number of the line after it. @param {string[]} lines @param {number} i @param {number} depth @returns {[Child, number]} */
function block(lines, i, depth) {
  const line = lines[i];
  if (line.trim() === '') return [null, i + 1];
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
  if (fence) {
    let end = i + 1;
    while (end < lines.length && !lines[end].trimStart().startsWith(fence)) ++end;
    return [el('pre', null, el('code', null, lines.slice(i + 1, end).join('\n'))), end + 1];
  }
  const heading = /^(#{1,6}) +(.*)$/.exec(line);
  if (heading) return [el(headings[Math.min(2, heading[1].length - 1)], null, inline(heading[2].replace(/ #+ *$/, ''))), i + 1];
  if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) return [el('hr'), i + 1];
  const endWhile = (/** @type {(line: string) => boolean} */ belongs) => {
    let end = i;
    while (end < lines.length && belongs(lines[end])) ++end;
    return end;
  };
  if (/^ {0,3}>/.test(line) && depth < deepestQuote) {
    const end = endWhile((one) => /^ {0,3}>/.test(one));
    const inner = lines.slice(i, end).map((one) => one.replace(/^ {0,3}> ?/, ''));
    return [el('blockquote', null, markdown(inner.join('\n'), depth + 1)), end];
  }
  if (line.includes('|') && isTableRule(lines[i + 1])) {
    const end = endWhile((one) => one.includes('|'));
    return [table(lines.slice(i, end)), end];
  }
  const first = listItem(line);
  if (first) {
    const end = endWhile((one) => {
      const item = listItem(one);
      return item ? item.indent > first.indent || item.isNumbered === first.isNumbered : /^ +\S/.test(one);
    });
    return [list(lines.slice(i, end)), end];
  }
  const end = Math.max(
    i + 1,
    endWhile((one) => one.trim() !== '' && !/^ {0,3}(#{1,6} |>|`{3,}|~{3,})/.test(one) && !listItem(one)),
  );
  return [el('p', null, inLines(lines.slice(i, end))), end];
}

/** @param {string | undefined} line */
function isTableRule(line) {
  return line !== undefined && line.length < 4096 && line.includes('-') && line.includes('|') && /^[-|: ]+$/.test(line);
}

/** @param {string[]} rows the first one is the head, the second one the rule below it */
function table(rows) {
  const cells = rows.map((row) =>
    row
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|'),
  );
  const width = Math.min(100, cells[0].length);
  const row = (/** @type {'th' | 'td'} */ kind, /** @type {string[]} */ all) =>
    el(
      'tr',
      null,
      all.slice(0, width).map((cell) => el(kind, null, inline(cell.trim()))),
    );
  const body = cells.slice(2, 2 + Math.floor(mostTableCells / width));
  return el(
    'table',
    null,
    el('thead', null, row('th', cells[0])),
    el(
      'tbody',
      null,
      body.map((all) => row('td', all)),
    ),
  );
}

/** @param {string} line @returns {{indent: number, isNumbered: boolean, text: string} | null} */
function listItem(line) {
  const found = /^( *)([-*+]|\d{1,9}[.)]) +(.*)$/.exec(line);
  return found && { indent: found[1].length, isNumbered: /\d/.test(found[2]), text: found[3] };
}

/** Returns a list of lines. More spaces before an item are one level more. @param {string[]} lines */
function list(lines) {
  const first = /** @type {NonNullable<ReturnType<typeof listItem>>} */ (listItem(lines[0]));
  const root = el(first.isNumbered ? 'ol' : 'ul');
  let levels = [{ indent: first.indent, element: /** @type {HTMLElement} */ (root) }];
  for (const line of lines) {
    const item = listItem(line);
    const top = levels[levels.length - 1];
    if (!item) {
      top.element.lastElementChild?.append(el('br'), ...nodes(inline(line.trim())));
      continue;
    }
    if (item.indent > top.indent + 1 && levels.length < deepestQuote && top.element.lastElementChild) {
      const inner = el(item.isNumbered ? 'ol' : 'ul');
      top.element.lastElementChild.append(inner);
      levels.push({ indent: item.indent, element: inner });
    } else {
      levels = levels.filter((level, i) => i === 0 || level.indent <= item.indent);
    }
    levels[levels.length - 1].element.append(el('li', null, inline(item.text)));
  }
  return root;
}

/** Returns lines with breaks between them: the line breaks of a text that is not Markdown stay. @param {string[]} lines @returns {Child[]} */
function inLines(lines) {
  return lines.map((line, i) => [i > 0 && el('br'), inline(line.trim())]);
}

/** A span of a line: code, an image or a link, an address, strong, emphasised or crossed out text, or an escaped character. Each is short. */
const spans =
  /`([^`]{1,2000})`|!?\[([^[\]]{0,500})\]\(([^()\s]{1,2000})[^()]{0,200}\)|(https?:\/\/[^\s<>()"'`]{1,2000})|(\*\*|__)(?=\S)([^*_]{1,1000})\5|(\*|\b_)(?=[^\s*_])([^*_]{1,1000})\7|~~([^~]{1,1000})~~|\\([!-/:-@[-`{-~])/g;

/** Returns the content of a line. @param {string} line @returns {Child[]} */
function inline(line) {
  /** @type {Child[]} */
  const made = [];
  let after = 0;
  for (const found of line.matchAll(spans)) {
    const [whole, code, linkText, target, address, , strong, , emphasis, crossed, escaped] = found;
    made.push(line.slice(after, found.index));
    after = found.index + whole.length;
    if (code !== undefined) made.push(el('code', null, code));
    else if (target !== undefined) made.push(link(target, linkText));
    else if (address !== undefined) made.push(link(address, address));
    else if (strong !== undefined) made.push(el('strong', null, strong));
    else if (emphasis !== undefined) made.push(el('em', null, emphasis));
    else if (crossed !== undefined) made.push(el('s', null, crossed));
    else made.push(escaped);
  }
  made.push(line.slice(after));
  return made;
}

/** @param {string} target @param {string} text */
function link(target, text) {
  if (!/^https?:\/\/[^\s]+$/i.test(target)) return `${text} (${target})`;
  return el(
    'a',
    { href: target, target: '_blank', rel: 'noopener noreferrer nofollow', title: visible(shorten(target, 300)) },
    text || target,
  );
}

// SPDX-License-Identifier: Apache-2.0
//
// A small client of the DevTools protocol: starts chromium without a window and speaks with it through two pipes.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A chromium process. */
export class Browser {
  static async start(program = process.env.STEPWELL_CHROMIUM ?? 'chromium') {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), 'stepwell-board-'));
    const options = [
      '--headless=new',
      '--remote-debugging-pipe',
      `--user-data-dir=${browser.profile}`,
      '--no-first-run',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-extensions',
      '--disable-sync',
      '--hide-scrollbars',
      '--force-color-profile=srgb',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ];
    browser.process = spawn(program, options, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    browser.calls = new Map();
    browser.listeners = new Set();
    browser.nextId = 1;
    const [, , , input, output] = browser.process.stdio;
    browser.input = input;
    let text = '';
    output.setEncoding('utf8');
    output.on('data', (part) => {
      text += part;
      const messages = text.split('\0');
      text = messages.pop();
      for (const message of messages) browser.take(JSON.parse(message));
    });
    await browser.call('Browser.getVersion');
    return browser;
  }

  take(message) {
    const call = this.calls.get(message.id);
    this.calls.delete(message.id);
    if (call && message.error) call.fail(new Error(`${call.method}: ${message.error.message}`));
    else if (call) call.done(message.result);
    else for (const listener of this.listeners) listener(message);
  }

  call(method, params = {}, sessionId = undefined) {
    const id = this.nextId++;
    return new Promise((done, fail) => {
      this.calls.set(id, { method, done, fail });
      this.input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  async stop() {
    const ended = new Promise((done) => this.process.on('exit', done));
    await this.call('Browser.close').catch(() => undefined);
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Opens a tab. */
  async tab({ width = 1440, height = 900, scale = 1 } = {}) {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const tab = new Tab(this, targetId, sessionId);
    await tab.enable();
    await tab.resize(width, height, scale);
    return tab;
  }
}

/** A tab: what the page says, asks for and shows. */
export class Tab {
  /** Messages of the console, exceptions, and violations of the policy. */
  problems = [];
  /** Addresses of all requests. */
  requested = [];

  constructor(browser, targetId, sessionId) {
    Object.assign(this, { browser, targetId, sessionId });
    this.listener = (message) => message.sessionId === sessionId && this.take(message);
    browser.listeners.add(this.listener);
  }

  take({ method, params }) {
    if (method === 'Runtime.exceptionThrown')
      this.problems.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type))
      this.problems.push(params.args.map((one) => one.value ?? one.description).join(' '));
    if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level))
      this.problems.push(`${params.entry.text} ${params.entry.url ?? ''}`);
    if (method === 'Network.requestWillBeSent') this.requested.push(params.request.url);
  }

  call(method, params) {
    return this.browser.call(method, params, this.sessionId);
  }

  async enable() {
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.call(`${domain}.enable`);
  }

  resize(width, height, scale = 1, isPhone = false) {
    return this.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: isPhone });
  }

  /** Sets media features, for example prefers-color-scheme. */
  media(features) {
    return this.call('Emulation.setEmulatedMedia', { features: Object.entries(features).map(([name, value]) => ({ name, value })) });
  }

  async open(url) {
    await this.call('Page.navigate', { url: 'about:blank' });
    await this.call('Page.navigate', { url });
    await this.until('document.readyState === "complete"');
  }

  /** Returns the value of an expression or of a promise. */
  async evaluate(expression) {
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  /** Waits until an expression is true. */
  async until(expression, seconds = 90) {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const value = await this.evaluate(expression).catch((error) => {
        if (Date.now() > end) throw error;
        return false;
      });
      if (value) return value;
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${expression}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  click(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
  }

  text(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ''`);
  }

  /** Presses, moves and releases the mouse, from one position to another. */
  async drag(from, to) {
    const mouse = (type, { x, y }, more = {}) => this.call('Input.dispatchMouseEvent', { type, x, y, ...more });
    await mouse('mouseMoved', from);
    await mouse('mousePressed', from, { button: 'left', clickCount: 1 });
    await mouse('mouseMoved', { x: (from.x + to.x) / 2, y: from.y }, { button: 'left', buttons: 1 });
    await mouse('mouseMoved', to, { button: 'left', buttons: 1 });
    await mouse('mouseReleased', to, { button: 'left', clickCount: 1 });
  }

  async key(key) {
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key.length === 1 ? key : undefined });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', key });
  }

  /** Writes a picture of the page, or of its upper part, as PNG. */
  async picture(path, isWhole = false) {
    const { data } = await this.call('Page.captureScreenshot', { format: 'png', captureBeyondViewport: isWhole });
    writeFileSync(path, Buffer.from(data, 'base64'));
  }

  async close() {
    this.browser.listeners.delete(this.listener);
    await this.browser.call('Target.closeTarget', { targetId: this.targetId });
  }
}

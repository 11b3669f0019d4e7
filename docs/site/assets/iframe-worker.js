// SPDX-License-Identifier: Apache-2.0
//
// Makes the search work on pages that are opened as files. Browsers start no worker for such a page, so this `Worker` runs the
// script in a hidden frame. It has only the part of the interface that the search in English uses.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();  // otherwise Firefox replaces the document later
      inside.document.write("<!doctype html><title>search</title>");
      inside.document.close();
      inside.postMessage = data => setTimeout(() => this.dispatchEvent(new MessageEvent("message", {data})));
      this.loaded = new Promise((resolve, reject) => {
        const script = inside.document.createElement("script");
        script.onload = resolve;
        script.onerror = () => reject(new Error(`cannot load ${url}`));
        script.src = new URL(url, location.href);
        inside.document.head.appendChild(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data})));
    }
  };
}

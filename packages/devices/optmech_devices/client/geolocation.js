/**
 * Reports in the place of true positions, for the scripts of a page and of the frames that it can reach.
 * What a page's script cannot reach is in README.md.
 */

import { need } from "./cbor.js";
import { StickyReports } from "./sticky.js";

/** Half the Earth's circumference in metres: what is said of the accuracy where the file says nothing. */
const ANYWHERE = 20015087;
const METHODS = ["getCurrentPosition", "watchPosition", "clearWatch"];
const FRAMES = ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement", "HTMLEmbedElement"];
const INSERTING = {
  Node: ["appendChild", "insertBefore", "replaceChild"],
  Element: ["append", "prepend", "before", "after", "replaceWith", "replaceChildren",
    "insertAdjacentElement", "insertAdjacentHTML", "setHTMLUnsafe", "moveBefore"],
  Document: ["append", "prepend", "replaceChildren", "write", "writeln", "execCommand"],
  DocumentFragment: ["append", "prepend", "replaceChildren"],
  CharacterData: ["before", "after", "replaceWith"],
  Range: ["insertNode", "surroundContents"],
};
const WRITTEN = { Element: ["innerHTML", "outerHTML"], ShadowRoot: ["innerHTML"], Document: ["body"] };

/**
 * A stand-in for `navigator.geolocation`: every position that `source` gives becomes a report, with
 * the mechanism's accuracy and without altitude, speed and heading; the time is that of the
 * epoch's begin. Outside the region, and beyond the ledger's budget, POSITION_UNAVAILABLE.
 */
export function geolocation(sticky, source = globalThis.navigator?.geolocation) {
  need(sticky instanceof StickyReports, "are no sticky reports");
  need(METHODS.every((name) => typeof source?.[name] === "function"), "the source gives no positions");
  const { mechanism } = sticky;
  const mesh = mechanism.kind === "mesh";
  need((mesh ? mechanism.mesh : mechanism.secrets).degrees, "the places are not in degrees: positions cannot be looked up");
  const unavailable = (message) => ({ code: 2, message, PERMISSION_DENIED: 1, POSITION_UNAVAILABLE: 2, TIMEOUT: 3 });
  const reported = async ({ coords, timestamp }) => {
    const position = [coords.longitude, coords.latitude];
    const place = mechanism.locate(position);
    need(mesh ? place !== null : place >= 0, "outside the region");
    const report = await sticky.report(mesh ? position : place, timestamp / 1000);
    need(report !== null, "the budget is spent");
    const { coordinates, accuracy } = mechanism.describe(report);
    return {
      coords: { longitude: coordinates[0], latitude: coordinates[1], accuracy: accuracy ?? ANYWHERE,
        altitude: null, altitudeAccuracy: null, heading: null, speed: null },
      timestamp: Math.floor(timestamp / 1000 / sticky.period) * sticky.period * 1000,
    };
  };
  // never the true position, whatever goes wrong
  const hidden = (success, failure) => (position) => {
    reported(position).then((report) => success(report),
      (error) => failure?.(unavailable(String(error.message ?? error))));
  };
  return {
    getCurrentPosition: (success, failure, options) =>
      source.getCurrentPosition(hidden(success, failure), failure, options),
    watchPosition: (success, failure, options) =>
      source.watchPosition(hidden(success, failure), failure, options),
    clearWatch: (watch) => source.clearWatch(watch),
  };
}

/**
 * Replace the methods of `Geolocation.prototype` in a page, and in every frame and window of the same
 * origin when it is made or first looked at. Call it before any other script runs.
 */
export function install(sticky, page = globalThis) {
  const own = page?.navigator?.geolocation;
  need(own && page.Geolocation, "the page has no geolocation");
  need(Object.getOwnPropertyDescriptor(page.Geolocation.prototype, METHODS[0]).configurable,
    "reports are installed in this page already: reload it first");
  const native = Object.fromEntries(METHODS.map((name) => [name, own[name].bind(own)]));
  const stand = geolocation(sticky, native);
  const covered = new WeakSet();
  const quietly = (action) => {
    try {
      action();
    } catch {
      // a window of another origin, which is not ours to reach
    }
  };

  /** Have something done after a method or a setter. */
  const after = (prototype, name, action) => {
    const found = prototype && Object.getOwnPropertyDescriptor(prototype, name);
    if (!found?.configurable) return;
    for (const kind of ["value", "get", "set"]) {
      const before = found[kind];
      if (typeof before !== "function") continue;
      found[kind] = function (...given) {
        const result = Reflect.apply(before, this, given);
        quietly(() => action(result, this));
        return result;
      };
    }
    Object.defineProperty(prototype, name, found);
  };

  const cover = (view) => {
    const prototype = view?.Geolocation?.prototype;
    // a frame that goes elsewhere keeps its window's proxy, and has another prototype
    if (!prototype || covered.has(prototype)) return;
    covered.add(prototype);
    for (const name of METHODS) {
      Object.defineProperty(prototype, name,
        { value: stand[name], configurable: false, writable: false, enumerable: true });
    }
    // an element of pages that holds positions
    const element = view.HTMLGeolocationElement?.prototype;
    if (element) Object.defineProperty(element, "position", { get: () => null, configurable: false, enumerable: true });
    const every = () => {
      for (let k = 0; k < view.length; k++) quietly(() => cover(view[k]));
    };
    for (const name of FRAMES) {
      const element = view[name]?.prototype;
      after(element, "contentWindow", (found) => cover(found));
      after(element, "contentDocument", (found) => cover(found?.defaultView));
      after(element, "getSVGDocument", (found) => cover(found?.defaultView));
    }
    for (const names of [INSERTING, WRITTEN]) {
      for (const [kind, list] of Object.entries(names)) {
        for (const name of list) after(view[kind]?.prototype, name, every);
      }
    }
    after(view, "open", (found) => cover(found));
    new view.MutationObserver(every).observe(view.document, { childList: true, subtree: true });
    view.document.addEventListener("load", every, true);
    every();
  };
  cover(page);
  return stand;
}

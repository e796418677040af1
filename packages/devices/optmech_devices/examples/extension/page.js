/**
 * In the page's own world, in every frame and before its scripts: the methods of Geolocation.prototype ask the
 * extension, and get reports. No true position is ever in this world, so that no script of the page can take one.
 */

(() => {
  const asked = new Map();
  let count = 0;

  // only texts go between the two worlds
  const send = (question) =>
    document.dispatchEvent(new CustomEvent("optmech-ask", { detail: JSON.stringify(question) }));

  /** What pages may say of a request, as numbers and truth values. */
  const wishes = (options) => {
    const found = {};
    if (options?.enableHighAccuracy !== undefined) found.enableHighAccuracy = Boolean(options.enableHighAccuracy);
    for (const name of ["timeout", "maximumAge"]) {
      if (options?.[name] !== undefined) found[name] = Math.min(Math.max(Number(options[name]) || 0, 0), 2 ** 31);
    }
    return found;
  };

  function ask(kind, success, failure, options) {
    if (typeof success !== "function") throw new TypeError("the first argument is no function");
    const id = ++count;
    asked.set(id, { success, failure, once: kind === "get" });
    send({ kind, id, options: wishes(options) });
    return id;
  }

  document.addEventListener("optmech-answer", (event) => {
    const { id, position, error } = JSON.parse(event.detail);
    const own = asked.get(id);
    if (!own) return;
    if (own.once) asked.delete(id);
    if (position) own.success(position);
    else if (typeof own.failure === "function") {
      own.failure({ ...error, PERMISSION_DENIED: 1, POSITION_UNAVAILABLE: 2, TIMEOUT: 3 });
    }
  });

  const methods = {
    getCurrentPosition: (success, failure, options) => { ask("get", success, failure, options); },
    watchPosition: (success, failure, options) => ask("watch", success, failure, options),
    clearWatch: (id) => {
      if (asked.delete(id)) send({ kind: "clear", id });
    },
  };

  const { prototype } = globalThis.Geolocation ?? { prototype: null };
  if (prototype) {
    for (const [name, value] of Object.entries(methods)) {
      Object.defineProperty(prototype, name, { value, configurable: false, writable: false, enumerable: true });
    }
  }
  // an element of pages that holds positions
  const element = globalThis.HTMLGeolocationElement?.prototype;
  if (element) Object.defineProperty(element, "position", { get: () => null, configurable: false, enumerable: true });
})();

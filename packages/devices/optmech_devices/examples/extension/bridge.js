/**
 * In the extension's world of a frame: positions are asked for with the page's own permission, and only reports go
 * on to the page. What is outside the region, beyond the budget or without a mechanism is an error.
 */
(() => {
  const watches = new Map();
  const answer = (found) =>
    document.dispatchEvent(new CustomEvent("optmech-answer", { detail: JSON.stringify(found) }));
  const unavailable = (message) => ({ code: 2, message });

  /** The report of a position, or an error. */
  const reported = async ({ coords, timestamp }) => {
    try {
      const { longitude, latitude } = coords;
      return await chrome.runtime.sendMessage({ report: [longitude, latitude, timestamp] })
        ?? { error: unavailable("the extension does not answer") };
    } catch {
      return { error: unavailable("the extension was changed: load the page again") };
    }
  };

  document.addEventListener("optmech-ask", (event) => {
    const { kind, id, options } = JSON.parse(event.detail);
    const { geolocation } = navigator;
    const failed = ({ code, message }) => answer({ id, error: { code, message } });
    if (kind === "get") {
      geolocation.getCurrentPosition(
        async (position) => answer({ id, ...await reported(position) }), failed, options);
    } else if (kind === "watch" && !watches.has(id)) {
      let last = "";
      watches.set(id, geolocation.watchPosition(async (position) => {
        const found = await reported(position);
        // moments at which the device moved are not told, only those of another report
        if (JSON.stringify(found) === last || !watches.has(id)) return;
        last = JSON.stringify(found);
        answer({ id, ...found });
      }, failed, options));
    } else if (kind === "clear" && watches.has(id)) {
      geolocation.clearWatch(watches.get(id));
      watches.delete(id);
    }
  });
})();

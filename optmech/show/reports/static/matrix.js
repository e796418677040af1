// The whole matrix as a picture, logarithmic colours over four decades.
const DECADES = 4;

function upright(host, canvas, across, upward) {
  const cross = element("span", { class: "cross" });
  const frame = element("div", { class: "frame" }, [
    element("div", { class: "chart" }, [canvas, cross]),
    element("span", { class: "across", text: across }),
    element("span", { class: "upward", text: upward }),
  ]);
  fill(host, frame);
  return { frame, cross };
}

function matrixPicture(view) {
  const { model } = view;
  const { design, rows, columns, observed } = model;
  const canvas = element("canvas", { width: columns, height: rows, tabindex: "0", role: "application", "aria-roledescription": "matrix" });
  canvas.style.aspectRatio = `${Math.min(Math.max(columns / rows, 0.7), 3)}`;
  const { cross } = upright(byId("matrix"), canvas, "observable (index)", "secret (index)");
  const key = element("div", { class: "key" });
  byId("matrix").append(key);
  const top = Math.log(model.logs.reduce((most, value) => Math.max(most, Math.exp(value)), 0));

  function paint() {
    const context = canvas.getContext("2d");
    const picture = context.createImageData(columns, rows);
    const table = Array.from({ length: 256 }, (_, k) => rgb(k / 255));
    for (let k = 0; k < rows * columns; k += 1) {
      const decades = (top - model.logs[k]) / Math.LN10;
      const share = Math.max(0, 1 - decades / DECADES);
      picture.data.set(table[Math.round(255 * share)], 4 * k);
      picture.data[4 * k + 3] = 255;
    }
    context.putImageData(picture, 0, 0);
    const most = Math.exp(top);
    const ends = [element("span", { text: `≤ ${percent(most / 10 ** DECADES)}` }), rampCanvas(), element("span", { text: percent(most) })];
    fill(key, element("span", { text: "p(o|s), logarithmic" }), element("span", { class: "ramp" }, ends), sign("secret", "secret and report chosen"));
  }

  function entry(event) {
    const box = canvas.getBoundingClientRect();
    const at = (offset, size, count) => Math.min(Math.max(Math.floor((offset / size) * count), 0), count - 1);
    return [at(event.clientY - box.top, box.height, rows), at(event.clientX - box.left, box.width, columns)];
  }

  const words = (s, o) => `p(${observed.labels[o]} | ${design.secrets.labels[s]}) = ${percent(model.p(s, o))}`;

  function show() {
    const { secret: s, observable: o } = view;
    cross.style.left = `${(100 * (o + 0.5)) / columns}%`;
    cross.style.top = `${(100 * (s + 0.5)) / rows}%`;
    canvas.setAttribute("aria-label", `Matrix. ${words(s, o)}. Arrow keys choose an entry.`);
    fill(
      byId("matrix-readout"), `p(${observed.labels[o]} | ${design.secrets.labels[s]}) = `,
      figure("entry", model.p(s, o), percent(model.p(s, o))),
    );
  }

  canvas.addEventListener("mousemove", (event) => showTip(event, words(...entry(event))));
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("click", (event) => {
    const [secret, observable] = entry(event);
    view.set({ secret, observable });
  });
  canvas.addEventListener("keydown", (event) => {
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    view.set({
      secret: within(view.secret + direction[1], rows),
      observable: within(view.observable + direction[0], columns),
    });
  });
  view.on("secret", show);
  view.on("observable", show);
  view.on("theme", paint);
  paint();
}

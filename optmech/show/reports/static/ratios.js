// Measured log ratios between two secrets, against what is allowed.
function ratios(view) {
  const { model } = view;
  const { design, observed } = model;
  const { secrets } = design;
  for (const id of ["pair-a", "pair-b"]) options(byId(id), secrets.labels);
  const chart = new Chart(byId("pair-chart"), secrets, "Secrets told apart from the chosen one", (choice) => {
    const next = chosen(secrets, view.other, choice);
    if (next !== null) view.set({ other: next });
  });

  // the larger of both directions
  function compare(s, t) {
    return s === t ? 0 : Math.max(model.ratio(s, t).value, model.ratio(t, s).value);
  }

  function showFrom() {
    const values = Array.from({ length: model.rows }, (_, t) => compare(view.secret, t));
    chart.show(values, {
      what: "largest log ratio to the first", text: (value) => digits(value, 4), scale: "linear",
      signs: [["secret", "first"], ["guess", "second"]],
    });
    showPair();
  }

  function showPair() {
    const { secret: s, other: t } = view;
    byId("pair-a").value = String(s);
    byId("pair-b").value = String(t);
    const links = design.pairs.map(([from, to, , , rate]) => ({ from, to, weight: Math.abs(real(rate) / real(design.pairs[0][4])) }));
    chart.mark([{ kind: "secret", index: s, domain: secrets }, { kind: "guess", index: t, domain: secrets }], links);
    const rows = [[s, t], [t, s]].map(([a, b]) => {
      const { value, where } = model.ratio(a, b);
      const most = model.allowed(a, b);
      return {
        cells: [
          `${secrets.labels[a]} over ${secrets.labels[b]}`,
          { number: true, nodes: [figure(a === s ? "ratio" : "ratio-back", value, digits(value))] },
          { number: true, nodes: [figure("ratio-allowed", most, Number.isFinite(most) ? digits(most) : "no limit")] },
          value > 0 ? observed.labels[where] : "–",
        ],
      };
    });
    table(byId("pair-table"), ["ln p(o|s)/p(o|s′)", { text: "measured", number: true }, { text: "allowed", number: true }, "largest at report"], s === t ? [] : rows);
    const most = model.allowed(s, t);
    const { epsilon, per } = design.rate ?? {};
    const apart = design.rate && s !== t && Number.isFinite(most) ? ` They are ${digits(most / epsilon, 3)} ${per} apart, where ε = ${digits(epsilon)} per ${per} allows a factor of ${digits(Math.exp(most), 3)}.` : "";
    fill(byId("pair-readout"), s === t ? "Choose two different secrets." : `Whatever is reported, the odds between the two change by a factor of at most ${digits(Math.exp(Math.max(model.ratio(s, t).value, model.ratio(t, s).value)), 4)}.${apart}`, design.pairs.length && chart.map ? " Lines join the dearest pairs." : "", design.windowed ? " Ratios limited near a secret only are not shown as allowed." : "");
    chart.describe(`${secrets.labels[s]} and ${secrets.labels[t]}.`);
  }

  view.on("secret", showFrom);
  view.on("other", showPair);
  view.on("theme", () => chart.paint());
}

// How many pairs use how much: allowed across, measured upwards.
function spreadPicture(view) {
  const { design } = view.model;
  byId("spread-card").hidden = design.spread === null;
  if (design.spread === null) return;
  const { bins, top, beyond } = design.spread;
  const counts = numbers(design.spread.counts);
  const side = 8 * bins;
  const canvas = element("canvas", { width: side, height: side, role: "img", "aria-label": "Pairs of secrets by allowed and measured log ratio; none lies above the diagonal where every promise is kept." });
  canvas.style.aspectRatio = "1";
  const { frame, cross } = upright(byId("spread"), canvas, `allowed, 0 to ${digits(top, 4)}`, "measured");
  frame.style.maxWidth = "26rem";
  cross.hidden = true;

  function paint() {
    const context = canvas.getContext("2d");
    const most = counts.reduce((best, value) => Math.max(best, value), 1);
    context.fillStyle = colour(0);
    context.fillRect(0, 0, side, side);
    for (let k = 0; k < counts.length; k += 1) {
      if (!counts[k]) continue;
      context.fillStyle = colour(0.25 + (0.75 * Math.log1p(counts[k])) / Math.log1p(most));
      context.fillRect(8 * (k % bins), side - 8 * (Math.floor(k / bins) + 1), 8, 8);
    }
    context.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(0, side);
    context.lineTo(side, 0);
    context.stroke();
  }

  const total = counts.reduce((sum, value) => sum + value, 0);
  const extra = beyond ? ` ${beyond.toLocaleString("en")} more are not limited, or are told apart for certain.` : "";
  fill(byId("spread-readout"), `${total.toLocaleString("en")} ordered pairs of secrets; darker or brighter is more of them. On the line a pair uses all it is allowed.${extra}`);
  view.on("theme", paint);
  paint();
}

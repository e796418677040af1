// A secret and where it may be reported; a report and what it reveals.
const LISTED = 6;

function topList(host, values, labels, pick) {
  const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
  const shown = order.slice(0, LISTED).filter((k) => values[k] > 0);
  const items = shown.map((k) => {
    const share = element("span", { class: "share" });
    share.style.width = `${100 * (values[k] / values[shown[0]])}%`;
    const parts = [
      element("span", { class: "name", text: labels[k] }),
      element("span", { class: "value", "data-value": String(values[k]), text: percent(values[k]) }),
      share,
    ];
    return element("li", {}, [element("button", { type: "button", onclick: () => pick(k) }, parts)]);
  });
  fill(host, ...items);
}

function explore(view) {
  const { model } = view;
  const { design, observed } = model;
  const { secrets } = design;
  const unit = design.attack.unit;
  options(byId("secret"), secrets.labels);
  options(byId("observable"), observed.labels);
  const losses = numbers(design.lossPerSecret);
  const errors = numbers(design.errorPerSecret);
  const marginal = numbers(design.marginal);
  const guess = numbers(design.guess);

  const reports = new Chart(byId("secret-chart"), observed, "Where a secret is reported", (choice) => {
    const next = chosen(secrets, view.secret, choice);
    if (next !== null) view.set({ secret: next });
  });
  const beliefs = new Chart(byId("observable-chart"), secrets, "What a report reveals", (choice) => {
    const next = chosen(observed, view.observable, choice);
    if (next !== null) view.set({ observable: next });
  });

  function showSecret() {
    const s = view.secret;
    const row = model.row(s);
    byId("secret").value = String(s);
    reports.show(row, { what: "probability p(o|s) of the report", signs: [["secret", "the secret"]] });
    reports.mark([{ kind: "secret", index: s, domain: secrets }]);
    reports.describe(`Secret ${secrets.labels[s]}.`);
    fill(
      byId("secret-readout"),
      "Prior ", figure("prior", model.prior[s], percent(model.prior[s])),
      " · expected loss ", figure("secret-loss", losses[s], withUnit(digits(losses[s]), design.lossUnit)),
      " · the best attack errs by ", figure("secret-error", errors[s], withUnit(digits(errors[s]), unit)),
    );
    topList(byId("secret-top"), row, observed.labels, (o) => view.set({ observable: o }));
  }

  function showObservable() {
    const o = view.observable;
    const belief = model.posterior(o);
    const best = guess[o];
    byId("observable").value = String(o);
    beliefs.show(belief, {
      what: "posterior p(s|o)",
      signs: [["secret", "the report"], ["guess", "best guess"]],
    });
    beliefs.mark([{ kind: "secret", index: o, domain: observed }, { kind: "guess", index: best, domain: secrets }]);
    beliefs.describe(`Report ${observed.labels[o]}, best guess ${secrets.labels[best]}.`);
    const right = numbers(design.guessRight)[o];
    const error = numbers(design.guessError)[o];
    fill(
      byId("observable-readout"),
      "Seen with probability ", figure("marginal", marginal[o], percent(marginal[o])),
      " · best guess ", element("b", { "data-field": "guess", "data-value": String(best), text: secrets.labels[best] }),
      ", right with ", figure("guess-right", right, percent(right)),
      ", error ", figure("guess-error", error, withUnit(digits(error), unit)),
    );
    topList(byId("observable-top"), belief, secrets.labels, (s) => view.set({ secret: s }));
  }

  drawing("secret", design, {
    where: () => view.secret,
    words: () => secrets.labels[view.secret],
    labels: observed.labels,
    seen: (observable) => view.set({ observable }),
  });
  view.on("secret", () => { showSecret(); fill(byId("secret-drawn")); });
  view.on("observable", showObservable);
  view.on("theme", () => { reports.paint(); beliefs.paint(); });
}

// A property of every secret on the map.
function layers(view) {
  const { model } = view;
  const { design } = model;
  const chart = new Chart(byId("layer-chart"), design.secrets, "Secrets", (choice) => {
    const next = chosen(design.secrets, view.secret, choice);
    if (next !== null) view.set({ secret: next });
  });
  const units = { prior: null, lossPerSecret: design.lossUnit, errorPerSecret: design.attack.unit };

  function show() {
    const name = byId("layer").value;
    const values = numbers(design[name]);
    const text = units[name] === null ? percent : (value) => withUnit(digits(value, 4), units[name]);
    const scale = name === "prior" ? "root" : "linear";
    chart.show(values, { what: byId("layer").selectedOptions[0].text, text, scale, signs: [["secret", "the secret"]] });
    chart.mark([{ kind: "secret", index: view.secret, domain: design.secrets }]);
    chart.describe(`${design.secrets.labels[view.secret]}: ${text(values[view.secret])}.`);
    fill(byId("layer-readout"), `${design.secrets.labels[view.secret]}: `, figure("layer", values[view.secret], text(values[view.secret])));
  }

  view.on("secret", show);
  view.on("layer", show);
  view.on("theme", () => chart.paint());
}

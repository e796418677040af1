// The data of the page: plain values, and arrays by name.
const page = JSON.parse(document.getElementById("data").textContent);
const TYPES = { f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array };
const unpacked = new Map();

function numbers(name) {
  if (!unpacked.has(name)) {
    const { kind, base64 } = page.arrays[name];
    const raw = atob(base64);
    const bytes = new Uint8Array(raw.length);
    for (let k = 0; k < raw.length; k += 1) bytes[k] = raw.charCodeAt(k);
    unpacked.set(name, new TYPES[kind](bytes.buffer));
  }
  return unpacked.get(name);
}

// JSON has no infinities: they are written as text, and what is unknown as null.
function real(value) {
  if (value === null) return NaN;
  return typeof value === "string" ? (value === "inf" ? Infinity : -Infinity) : value;
}

// A design with its matrix ready to be read by row and column.
function open(design) {
  const rows = design.secrets.labels.length;
  const observed = design.observables || design.secrets;
  const columns = observed.labels.length;
  const given = numbers(design.mechanism.array);
  const logarithms = design.mechanism.form === "log";
  const logs = logarithms ? given : Float64Array.from(given, Math.log);
  const p = logarithms ? (s, o) => Math.exp(given[s * columns + o]) : (s, o) => given[s * columns + o];
  const prior = numbers(design.prior);
  return {
    design, rows, columns, observed, logs, p, prior,
    row: (s) => Float64Array.from({ length: columns }, (_, o) => p(s, o)),
    posterior(o) {
      const joint = Float64Array.from({ length: rows }, (_, s) => prior[s] * p(s, o));
      const total = joint.reduce((sum, value) => sum + value, 0);
      // what cannot be reported tells nothing
      return total > 0 ? joint.map((value) => value / total) : prior;
    },
    allowed: (s, t) => (design.allowed === null ? Infinity : numbers(design.allowed)[s * rows + t]),
    // the largest ln p(o|s)/p(o|t), and the observable that attains it
    ratio(s, t) {
      let best = 0;
      let where = 0;
      for (let o = 0; o < columns; o += 1) {
        const value = logs[s * columns + o] - logs[t * columns + o];
        if (value > best) { best = value; where = o; }
      }
      return { value: best, where };
    },
  };
}

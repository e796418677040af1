/** Places of packed files. */

import { need } from "./cbor.js";
import { MOST_PLACES, fields, label, list, numbers, text, whole } from "./fields.js";
import { Border, FAR, between, isPosition, sines, turned, vector } from "./sphere.js";

const EARTH_KM = 6371.0088;

/** A text that is the same for equal labels: 1, 1.0 and true are. */
function same(value) {
  if (Array.isArray(value)) return `[${value.map(same).join()}]`;
  if (value === null || typeof value === "string") return JSON.stringify(value);
  const number = typeof value === "boolean" ? Number(value) : value;
  return Number.isInteger(number) ? `${BigInt(number)}` : `${number}`;
}

/** Whether a cell has the size of its bounds, up to the cosine of the machine that measured it. */
const close = (own, said, cosine) =>
  Math.abs(own - said) * cosine <= (1e-12 * cosine + 1e-15) * Math.abs(said);

/** A longitude up to 360 degrees as one up to 180. */
const onMap = (x) => (Math.abs(x) <= 180 ? x : x > 0 ? x - 360 : x + 360);

/** Places of a file: their labels, their coordinates, and which of them a position belongs to. */
export class Places {
  #own;
  #border;

  constructor(plain) {
    need(plain instanceof Map, "places are none");
    this.kind = plain.get("kind");
    this.points = null;
    if (this.kind === "grid") this.#grid(plain);
    else if (this.kind === "points" || this.kind === "h3") this.#located(plain);
    else {
      need(this.kind === "labels", "places are of no known kind");
      const [, labels, unit] = fields(plain, ["kind", "labels", "unit"], "places");
      this.labels = list(labels, "labels").map((part) => label(part));
      this.unit = text(unit, "unit");
    }
    whole(this.labels.length, 1, MOST_PLACES, "places");
    need(new Set(this.labels.map(same)).size === this.labels.length, "a label occurs twice");
  }

  #grid(plain) {
    const [, rows, columns, cell, origin, unit, bounds] = fields(
      plain, ["kind", "rows", "columns", "cell", "origin", "unit", "bounds"], "places");
    this.rows = whole(rows, 1, MOST_PLACES, "rows");
    this.columns = whole(columns, 1, MOST_PLACES, "columns");
    whole(rows * columns, 1, MOST_PLACES, "places");
    this.cell = numbers(cell, 86, "cell", 2);
    this.origin = numbers(origin, 86, "origin", 2);
    this.unit = text(unit, "unit");
    need([...this.cell, ...this.origin].every((value) => Math.abs(value) <= FAR), "cells are too far");
    need(this.cell[0] > 0 && this.cell[1] > 0, "a cell has no size");
    this.degrees = bounds !== null;
    const ends = [this.origin[0] + columns * this.cell[0], this.origin[1] + rows * this.cell[1]];
    need(this.origin[0] < ends[0] && this.origin[1] < ends[1], "cells are too small");
    this.box = [...this.origin, ...ends];
    if (this.degrees) this.#bounds(numbers(bounds, 86, "bounds", 4));
    this.labels = Array.from({ length: rows * columns },
      (_, k) => [Math.floor(k / columns), k % columns]);
    const [west, south, east, north] = this.box;
    this.points = this.labels.map(([row, column]) => (this.degrees
      ? [west + (column + 0.5) / columns * (east - west), south + (row + 0.5) / rows * (north - south)]
      : [west + (column + 0.5) * this.cell[0], south + (row + 0.5) * this.cell[1]]));
  }

  /** Cells over bounds are measured in km from their corner, at the middle latitude. */
  #bounds(box) {
    const [west, south, east, north] = box;
    need(west >= -360 && west < east && east <= 360 && south >= -90 && south < north && north <= 90,
      "bounds are no box of degrees");
    const degree = Math.PI / 180 * EARTH_KM;
    const [, cosine] = sines((south + north) / 2);
    const width = (east - west) * degree * cosine;
    const height = (north - south) * degree / this.rows;
    need(this.unit === "km" && this.origin.every((value) => value === 0)
      && close(width / this.columns, this.cell[0], cosine)
      && Math.abs(height - this.cell[1]) <= 1e-12 * this.cell[1], "cells are not those of the bounds");
    this.box = box;
    const ring = [[west, south], [east, south], [east, north], [west, north]];
    this.#border = new Border(ring.map((corner, k) => [corner, ring[(k + 1) % 4]]), true);
  }

  #located(plain) {
    const hexagons = this.kind === "h3";
    const names = hexagons ? ["kind", "cells", "points"]
      : ["kind", "labels", "dimension", "points", "unit", "coordinates"];
    fields(plain, names, "places");
    const coordinates = hexagons ? "lonlat" : plain.get("coordinates");
    need(coordinates === "lonlat" || coordinates === "plane", "coordinates are of no known kind");
    this.degrees = coordinates === "lonlat";
    this.unit = hexagons ? "km" : text(plain.get("unit"), "unit");
    need(!this.degrees || this.unit === "km", "unit is not that of degrees, km");
    this.labels = hexagons
      ? numbers(plain.get("cells"), 71, "cells").map((cell) => cell.toString(16).padStart(15, "0"))
      : list(plain.get("labels"), "labels").map((part) => label(part));
    const dimension = hexagons ? 2 : whole(plain.get("dimension"), 1, MOST_PLACES, "dimension");
    const flat = numbers(plain.get("points"), 86, "points", dimension * this.labels.length);
    need(flat.every((value) => Math.abs(value) <= FAR), "a place is too far");
    this.points = this.labels.map((_, k) => flat.slice(k * dimension, (k + 1) * dimension));
    need(!this.degrees || (dimension === 2 && this.points.every(([x, y]) =>
      Math.abs(x) <= 360 && Math.abs(y) <= 90)), "points lie nowhere");
    this.#own = this.degrees ? this.points.map(vector) : this.points;
  }

  /** The number of the place of a position, or -1 outside; every place is looked at. */
  locate(position, reach, outside) {
    need(this.points !== null, "these places have no coordinates");
    need(isPosition(position, this.points[0].length, this.degrees), "is no position");
    if (this.kind === "grid") {
      const [west, south, east, north] = this.box;
      let [x, y] = position;
      if (this.degrees) x = turned(x, west, east);
      if (outside === "nearest") {
        const inside = west <= x && x <= east && south <= y && y <= north;
        if (this.degrees) {
          const foot = this.#border.foot(position);
          [x, y] = [inside ? x : foot[0], inside ? y : foot[1]];
        }
        [x, y] = [between(x, west, east), between(y, south, north)];
      }
      if (!(west <= x && x <= east && south <= y && y <= north)) return -1;
      const column = Math.floor((x - west) / (east - west) * this.columns);
      const row = Math.floor((y - south) / (north - south) * this.rows);
      return Math.min(row, this.rows - 1) * this.columns + Math.min(column, this.columns - 1);
    }
    const own = this.degrees ? vector(position) : position;
    const limit = this.degrees && reach !== null ? 2 * sines(Math.min(reach, 180) / 2)[0] : reach;
    let nearest = -1;
    let least = Infinity;
    for (let k = 0; k < this.points.length; k++) {
      let apart = 0;
      for (let d = 0; d < own.length; d++) {
        const step = own[d] - this.#own[k][d];
        apart += step * step;
      }
      const closer = apart < least;
      nearest = closer ? k : nearest;
      least = closer ? apart : least;
    }
    return reach !== null && outside === "refuse" && !(least <= limit * limit) ? -1 : nearest;
  }

  /** Label, coordinates and accuracy of a report that has one of the columns. */
  describe(report, columns, radius) {
    const column = columns.indexOf(report);
    need(column >= 0, "is never reported");
    return { label: this.labels[report],
      coordinates: this.points === null ? null
        : this.points[report].map((x, axis) => (this.degrees && axis === 0 ? onMap(x) : x)),
      accuracy: radius === null ? null : radius[column] };
  }
}

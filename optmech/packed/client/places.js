/** Places of packed files. */

import { need } from "./cbor.js";
import { MOST_PLACES, fields, float, label, list, numbers, text, whole } from "./fields.js";

/** Places of a file: their labels, their coordinates, and which of them a position belongs to. */
export class Places {
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
    need(new Set(this.labels.map((part) => JSON.stringify(part, (_, v) => (typeof v === "bigint" ? `${v}n` : v)))).size
      === this.labels.length, "a label occurs twice");
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
    need(this.cell[0] > 0 && this.cell[1] > 0, "a cell has no size");
    this.degrees = bounds !== null;
    this.box = this.degrees ? numbers(bounds, 86, "bounds", 4)
      : [this.origin[0], this.origin[1], this.origin[0] + columns * this.cell[0],
        this.origin[1] + rows * this.cell[1]];
    need(this.box[0] < this.box[2] && this.box[1] < this.box[3], "bounds hold nothing");
    this.labels = Array.from({ length: rows * columns },
      (_, k) => [Math.floor(k / columns), k % columns]);
    const [west, south, east, north] = this.box;
    this.points = this.labels.map(([row, column]) => (this.degrees
      ? [west + (column + 0.5) / columns * (east - west), south + (row + 0.5) / rows * (north - south)]
      : [west + (column + 0.5) * this.cell[0], south + (row + 0.5) * this.cell[1]]));
  }

  #located(plain) {
    const hexagons = this.kind === "h3";
    const names = hexagons ? ["kind", "cells", "points", "aspect"]
      : ["kind", "labels", "dimension", "points", "unit", "coordinates", "aspect"];
    fields(plain, names, "places");
    const coordinates = hexagons ? "lonlat" : plain.get("coordinates");
    need(coordinates === "lonlat" || coordinates === "plane", "coordinates are of no known kind");
    this.degrees = coordinates === "lonlat";
    this.unit = hexagons ? "km" : text(plain.get("unit"), "unit");
    this.aspect = float(plain.get("aspect"), "aspect");
    need(this.aspect > 0 && this.aspect <= 1, "aspect is no cosine above 0");
    this.labels = hexagons
      ? numbers(plain.get("cells"), 71, "cells").map((cell) => cell.toString(16).padStart(15, "0"))
      : list(plain.get("labels"), "labels").map((part) => label(part));
    const dimension = hexagons ? 2 : whole(plain.get("dimension"), 1, MOST_PLACES, "dimension");
    const flat = numbers(plain.get("points"), 86, "points", dimension * this.labels.length);
    this.points = this.labels.map((_, k) => flat.slice(k * dimension, (k + 1) * dimension));
    need(!this.degrees || (dimension === 2 && this.points.every(([x, y]) =>
      Math.abs(x) <= 360 && Math.abs(y) <= 90)), "points lie nowhere");
  }

  /** The number of the place of a position, or -1 outside; every place is looked at. */
  locate(position, reach, outside) {
    need(this.points !== null, "these places have no coordinates");
    need(position.length === this.points[0].length && position.every(Number.isFinite),
      "is no position");
    if (this.kind === "grid") {
      const [west, south, east, north] = this.box;
      let [x, y] = position;
      if (outside === "nearest") {
        x = Math.min(Math.max(x, west), east);
        y = Math.min(Math.max(y, south), north);
      }
      if (!(west <= x && x <= east && south <= y && y <= north)) return -1;
      const column = Math.floor((x - west) / (east - west) * this.columns);
      const row = Math.floor((y - south) / (north - south) * this.rows);
      return Math.min(row, this.rows - 1) * this.columns + Math.min(column, this.columns - 1);
    }
    let nearest = -1;
    let least = Infinity;
    for (let k = 0; k < this.points.length; k++) {
      let dx = position[0] - this.points[k][0];
      if (this.degrees) {
        if (dx > 180) dx -= 360;
        if (dx < -180) dx += 360;
      }
      dx *= this.aspect;
      let apart = dx * dx;
      for (let d = 1; d < position.length; d++) {
        const step = position[d] - this.points[k][d];
        apart += step * step;
      }
      const closer = apart < least;
      nearest = closer ? k : nearest;
      least = closer ? apart : least;
    }
    return reach !== null && outside === "refuse" && !(least <= reach * reach) ? -1 : nearest;
  }

  /** Label, coordinates and accuracy of a report that has one of the columns. */
  describe(report, columns, radius) {
    const column = columns.indexOf(report);
    need(column >= 0, "is never reported");
    return { label: this.labels[report],
      coordinates: this.points === null ? null : [...this.points[report]],
      accuracy: radius === null ? null : radius[column] };
  }
}

/** Packed mechanisms; the file is specified in docs/packed.md of optmech. */

export type Label = string | number | bigint | boolean | null | Label[];

/** A file or an argument that cannot be used; nothing is ever reported after one. */
export class PackedError extends Error {}

export interface Places {
  readonly kind: "grid" | "points" | "h3" | "labels" | "earth";
  readonly labels: readonly Label[];
  /** Coordinates as positions are given: longitude and latitude in degrees where `degrees`. */
  readonly points: readonly (readonly number[])[] | null;
  readonly degrees?: boolean;
  readonly unit: string;
}

/** A distance; `course` says how it goes, and is empty where it is no length between positions. */
export interface Measure {
  readonly name: string;
  readonly unit: string;
  readonly course: "straight" | "great circle" | "flat" | "roads" | "manhattan" | "";
}

/** What one constraint of the design promises (docs/packed.md). */
export interface Promised {
  readonly kind: string;
  readonly scope: "every point" | "cells" | "places" | "secrets" | "distributions" | "answers" | "guesses"
    | "average" | "use" | "unknown";
  readonly pairs: "all" | "near" | "reached" | "joined" | "listed";
  readonly limit: number | null;
  readonly measure: Measure | null;
  /** Of ratios, rounded up. */
  readonly epsilon: number | null;
  readonly delta: number | null;
  readonly bound: number | null;
  /** What several reports about one place promise together. */
  readonly repeats: "adds" | "complement" | "unknown" | "none";
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

/** What the header of every file says. Nothing in a mechanism can be replaced. */
export interface Header {
  readonly title: string;
  readonly promises: readonly Promised[];
  /** Sentences: what is promised, and in odds. */
  readonly protects: readonly string[];
  readonly doesNotPromise: readonly string[];
  /** The sentence of these about the best guess from a report; empty where there is none. */
  readonly guess: string;
  /** Where it reports from, in words. */
  readonly region: string;
  /** Null of a file for the whole earth. */
  readonly prior: {
    readonly places: number;
    readonly entropy: number;
    /** How often the best guess is right, from a report and from none. */
    readonly seen: number;
    readonly blind: number;
    readonly date: string | null;
  } | null;
  readonly loss: {
    readonly objective: "expected_loss" | "worst_loss" | "maximize_distortion" | "minimize_leakage" | "mean_distance";
    readonly design: number;
    readonly packed: number;
    readonly increase: number;
  };
  /** SHA-256 of the design, in hexadecimal digits. */
  readonly design: string;
  /** A copy of the file's own digest. */
  readonly digest: Uint8Array;
  readonly bits: 16 | 24 | 32 | 48;
  /** Bytes of a draw. */
  readonly drawBytes: number;
  readonly reports: Places;
  /** Numbers of the reports that are ever made. */
  readonly columns: readonly number[];
  readonly outside: "refuse" | "nearest";
  readonly quantile: number | null;
  readonly radius: readonly number[] | null;
  /** A report from a position, by a mechanism of any kind; null outside, where that is refused. */
  report(position: number[]): { label: Label; coordinates: number[] | null; accuracy: number | null } | null;
  describe(report: number): { label: Label; coordinates: number[] | null; accuracy: number | null };
}

export interface Mechanism extends Header {}

/** A mechanism for places. */
export class Mechanism {
  private constructor();
  readonly kind: "places";
  readonly secrets: Places;
  readonly reach: number | null;
  /** The number of the report that exactly `drawBytes` bytes stand for. */
  draw(secret: number, bytes: Uint8Array): number;
  /** A report for a secret, from the system's entropy. */
  sample(secret: number): number;
  /** The number of the place of a position, or -1 outside the region. */
  locate(position: number[]): number;
  /** The probabilities of a place's row, for every entry of `columns`. */
  probabilities(secret: number): number[];
}

export interface MeshMechanism extends Header {}

/** A mechanism for every point of a region, a line (positions are one number) or roads. */
export class MeshMechanism {
  private constructor();
  readonly kind: "mesh";
  readonly mesh: {
    readonly vertices: readonly (readonly number[])[];
    /** Of a region. */
    readonly triangles?: readonly (readonly number[])[];
    /** Of a line or roads. */
    readonly segments?: readonly (readonly number[])[];
    readonly degree: number;
    readonly unit: string;
    readonly degrees: boolean;
  };
  /** How far a position is moved before a draw, at most. */
  readonly snap: number;
  /** Where reports repeat: two positions count as up to `slack` farther apart than they are. */
  readonly lattice: { readonly slack: number; readonly count: number } | null;
  /** The number of the lattice's point next to a position; null outside the region. */
  number(position: number[]): number | null;
  /** The number of the report that exactly `drawBytes` bytes stand for at a point of the lattice. */
  drawOf(number: number, bytes: Uint8Array): number;
  /** The number of the report that exactly `drawBytes` bytes stand for; -1 outside the region. */
  draw(position: number[], bytes: Uint8Array): number;
  /** A report at a position, from the system's entropy; -1 outside the region. */
  sample(position: number[]): number;
  /** The triangle or segment of a position and the weights of its corners over 2^24; null outside. */
  locate(position: number[]): { triangle: number; weights: number[] } | null;
  /** The whole numbers of the rows of a cell's control points; for the ledger, not for drawing. */
  numbers(cell: number): number[][];
}

export interface EarthMechanism extends Omit<Header, "columns" | "bits"> {}

/** A mechanism for the whole earth: places and reports are numbers of cells. */
export class EarthMechanism {
  private constructor();
  readonly kind: "earth";
  readonly secrets: { readonly kind: "earth"; readonly degrees: true; readonly bands: number };
  /** Positions d apart are promised what is promised at d + 2 snap, in km. */
  readonly snap: number;
  /** The number of the report that exactly `drawBytes` bytes stand for. */
  draw(place: number, bytes: Uint8Array): number;
  /** A report for a cell, from the system's entropy. */
  sample(place: number): number;
  /** The number of the cell of a position. */
  locate(position: number[]): number;
  /** How far, in km, positions may be told apart beyond their distance by a rate; for the ledger. */
  kept(rate: number): number;
}

/**
 * Read and verify a file; `signer`: 32 bytes of the Ed25519 key that it has to be signed with. Where
 * the option is named, an unsigned file is refused, whatever its value. An option that there is not is
 * refused here and everywhere.
 */
export function load(
  content: Uint8Array | ArrayBuffer,
  options?: { signer?: Uint8Array },
): Promise<Mechanism | MeshMechanism | EarthMechanism>;

export const ORDERS: readonly number[];

export interface Figures {
  plain: number;
  rows: number;
  composed: number;
}

export interface Spent {
  draws: number;
  plain: string;
  rows: string;
  divergence: string;
}

/** What Python's `Ledger.to_dict` gives. */
export interface LedgerState {
  format: "optmech-ledger/1";
  file: string;
  radius: number;
  between: "positions" | "places";
  delta: number;
  order: number;
  draws: [number, number][];
  spent: Spent;
  before: Spent;
}

/** A place's number; of a mechanism for every point anything, as all draws are charged alike. */
export type Place = number | number[];

export interface LedgerOptions {
  budget?: number | null;
  delta?: number;
  by?: keyof Figures;
  fallBack?: "refuse" | "repeat";
  /** Whether `radius` is between positions, which belong to places, or between places. */
  between?: "positions" | "places";
  /** The Rényi order of the composed figure, 1 and a number of eighths. */
  order?: number | null;
}

export class Ledger {
  /** For what the file states, within a radius of 1 unit. */
  constructor(mechanism: Mechanism | MeshMechanism | EarthMechanism, options?: LedgerOptions);
  constructor(
    mechanism: Mechanism | MeshMechanism | EarthMechanism,
    /** Per unit of distance; null for what the file states. */
    epsilon: number | null,
    radius: number,
    options?: LedgerOptions,
  );
  readonly epsilon: number;
  readonly radius: number;
  readonly perDraw: number;
  readonly order: number;
  readonly draws: Map<number, number>;
  /** Note one draw where it stays within the budget, and say whether it did: draw only after true. */
  charge(place: Place): boolean;
  enter(place: Place, times?: number): void;
  allows(place: Place): boolean;
  figures(): Figures;
  toDict(): LedgerState;
  restore(state: LedgerState, options?: { redesigned?: boolean }): void;
}

/** What Python's `StickyReports.to_dict` gives. */
export interface StickyState {
  for: string;
  entered: [number, string][];
  last: number | null;
}

export class StickyReports {
  constructor(
    mechanism: Mechanism | MeshMechanism | EarthMechanism,
    key: Uint8Array,
    options?: {
      period?: number;
      ledger?: Ledger | null;
      /** Awaited after every draw that was charged, before its report is given out. */
      save?: (() => unknown) | null;
    },
  );
  readonly mechanism: Mechanism | MeshMechanism | EarthMechanism;
  /** How much farther apart two positions count than they are; a ledger's radius is larger by that. */
  readonly snap: number;
  readonly period: number;
  readonly ledger: Ledger | null;
  entropy(place: number, epoch: number | bigint): Promise<Uint8Array>;
  /** The number of the report for a place, or a position, or null where the ledger refuses. */
  report(place: number | number[], time?: number): Promise<number | null>;
  toDict(): Promise<StickyState>;
  restore(state: StickyState): Promise<void>;
}

export interface Geolocator {
  getCurrentPosition(
    success: (position: any) => void,
    failure?: ((error: any) => void) | null,
    options?: object,
  ): void;
  watchPosition(
    success: (position: any) => void,
    failure?: ((error: any) => void) | null,
    options?: object,
  ): number;
  clearWatch(watch: number): void;
}

export function geolocation(sticky: StickyReports, source?: Geolocator): Geolocator;
/** Replace the methods of `Geolocation.prototype` in a window and the frames that it can reach. */
export function install(sticky: StickyReports, page?: any): Geolocator;

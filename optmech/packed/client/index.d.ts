/** Packed mechanisms; the file is specified in docs/packed.md of optmech. */

export type Label = string | number | bigint | boolean | null | Label[];

/** A file or an argument that cannot be used; nothing is ever reported after one. */
export class PackedError extends Error {}

export interface Places {
  readonly kind: "grid" | "points" | "h3" | "labels";
  readonly labels: Label[];
  /** Coordinates as positions are given: longitude and latitude in degrees where `degrees`. */
  readonly points: number[][] | null;
  readonly degrees?: boolean;
  readonly unit: string;
}

export interface Constraint {
  readonly kind: string;
  readonly promise: string;
  readonly epsilon: number | null;
  readonly per: string;
}

/** What the header of every file says. */
export interface Header {
  readonly title: string;
  readonly protects: string[];
  readonly doesNotPromise: string[];
  readonly constraints: Constraint[];
  readonly region: string;
  readonly prior: { words: string; date: string | null };
  readonly loss: { objective: string; design: number; packed: number; increase: number };
  /** SHA-256 of the design, in hexadecimal digits. */
  readonly design: string;
  /** The file's own digest. */
  readonly digest: Uint8Array;
  readonly bits: 16 | 24 | 32 | 48;
  /** Bytes of a draw. */
  readonly drawBytes: number;
  readonly reports: Places;
  /** Numbers of the reports that are ever made. */
  readonly columns: number[];
  readonly outside: "refuse" | "nearest";
  readonly quantile: number | null;
  readonly radius: number[] | null;
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

/** A mechanism for every point of a region. */
export class MeshMechanism {
  private constructor();
  readonly kind: "mesh";
  readonly mesh: {
    readonly vertices: number[][];
    readonly triangles: number[][];
    readonly degree: number;
    readonly unit: string;
    readonly degrees: boolean;
  };
  /** How far a position is moved before a draw, at most. */
  readonly snap: number;
  /** The number of the report that exactly `drawBytes` bytes stand for; -1 outside the region. */
  draw(position: number[], bytes: Uint8Array): number;
  /** A report at a position, from the system's entropy; -1 outside the region. */
  sample(position: number[]): number;
  /** The triangle of a position and the weights of its corners over 2^24; null outside. */
  locate(position: number[]): { triangle: number; weights: [number, number, number] } | null;
}

/** Read and verify a file; `signer`: 32 bytes of the Ed25519 key that it has to be signed with. */
export function load(
  content: Uint8Array | ArrayBuffer,
  options?: { signer?: Uint8Array | null },
): Promise<Mechanism | MeshMechanism>;

export const ORDERS: readonly number[];

export interface Figures {
  plain: number;
  rows: number;
  composed: number;
}

export class Ledger {
  constructor(
    mechanism: Mechanism,
    /** Per unit of distance; null for what the file states. */
    epsilon: number | null,
    radius: number,
    options?: {
      budget?: number | null;
      delta?: number;
      by?: keyof Figures;
      fallBack?: "refuse" | "repeat";
    },
  );
  readonly draws: Map<number, number>;
  enter(place: number): void;
  allows(place: number): boolean;
  figures(draws?: Map<number, number>): Figures;
}

export class StickyReports {
  constructor(
    mechanism: Mechanism,
    key: Uint8Array,
    options?: { period?: number; ledger?: Ledger | null },
  );
  readonly mechanism: Mechanism;
  readonly period: number;
  entropy(place: number, epoch: number): Promise<Uint8Array>;
  /** The number of the report, or null where the ledger refuses. */
  report(place: number, time?: number): Promise<number | null>;
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
export function install(sticky: StickyReports, target?: { geolocation: Geolocator }): Geolocator;

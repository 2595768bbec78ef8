// The price document: models with their prices, capabilities, and retirement dates, as a publisher
// signs them. The file is one header line with signatures, followed by the JSON text:
//
//     tollgate-prices-1 <signature in base64> [<another signature>]
//     {"version": 12, "issued": "2026-11-29T06:00:00Z", "providers": {…}}
//
// The signatures cover the exact bytes of the text, so no canonical form of JSON is needed. Several
// signatures allow a publisher to change its key.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  sign,
  verify,
  type KeyObject,
} from "node:crypto";
import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import type { ModelInfo, Price, PriceLine } from "../../model/facts.ts";
import { PIECE_UNITS, type Unit } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import { parseDecimal } from "../../money/decimal.ts";
import { picoDollarsPerUnit } from "../../money/price.ts";
import { parseModelList } from "../model-lists.ts";

/** First word of the file. It is part of the signed bytes, so no other file has this signature. */
export const DOCUMENT_FORMAT = "tollgate-prices-1";
const MAX_HEADER_BYTES = 2_048;
/** Maximum size of the file, in bytes. It is the same for a file and over HTTP. */
export const MAX_DOCUMENT_BYTES = BOUNDS.modelList.max;
const MAX_SIGNATURES = 8;
const DAY_MS = 86_400_000;
/** Highest rates that are accepted, in pico-dollars: $0.05 per token, and $1,000 per piece. */
const MAX_TOKEN_RATE = 50_000_000_000n;
const MAX_PIECE_RATE = 1_000_000_000_000_000n;
/** Highest product of the multipliers of a price, in billionths. */
const MAX_FACTOR = 100_000_000_000n;
const UNIT_FACTOR = 1_000_000_000n;
/** Maximum number of tiers, brackets, or multipliers of a price, and of all its lines. */
const MAX_TERMS = 32;
const MAX_LINES = 1_000;

/**
 * Facts that a publisher may state. Data policy and protocols are not among them. A price is stated
 * for each model: a reference to another model's price would change a price without a comparison.
 */
export type PublishedFacts = Omit<
  ModelInfo,
  "price" | "pricedAs" | "dataPolicy" | "protocols" | "rejectedFields"
>;

/** A price, and the moment from which the publisher states it. */
export interface PublishedPrice {
  /** ISO instant. Default: now. */
  readonly from?: Opt<string>;
  readonly price: Price;
}

/** IDs of the sources that agree on a figure, by figure: "input", "tiers.batch.output". */
export type FigureSources = { readonly [figure: string]: readonly string[] };

export interface PublishedModel {
  readonly facts: PublishedFacts;
  /** In the order of their moments. */
  readonly prices: readonly PublishedPrice[];
  readonly figures: FigureSources;
}

export interface PriceDocument {
  /** Number of the publication. It increases with each one. */
  readonly version: number;
  /** Time of the publication, as an ISO instant. */
  readonly issued: string;
  /** Address and date of each source, by ID. */
  readonly sources: { readonly [id: string]: { readonly url: string; readonly retrieved: string } };
  /** Models by the name of the provider's plugin. */
  readonly providers: ReadonlyMap<string, ReadonlyMap<string, PublishedModel>>;
  /** Hash of the signed bytes. */
  readonly digest: string;
}

/** Form of a public key in gateway.yaml: "ed25519:" and 32 bytes in base64. */
export const PUBLIC_KEY_PATTERN = String.raw`^ed25519:[A-Za-z0-9+/]{43}=$`;

const toPublicKey = (text: string): KeyObject =>
  createPublicKey({
    key: {
      kty: "OKP",
      crv: "Ed25519",
      x: Buffer.from(text.slice("ed25519:".length), "base64").toString("base64url"),
    },
    format: "jwk",
  });

/** Returns the public key of a private key, in the form of gateway.yaml. */
export function formatPublicKey(privateKey: string): string {
  const { x } = createPublicKey(createPrivateKey(privateKey)).export({ format: "jwk" });
  return `ed25519:${Buffer.from(x!, "base64url").toString("base64")}`;
}

const signedBytes = (body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${DOCUMENT_FORMAT}\n`), body]);

/**
 * Returns the file for a text.
 * @param privateKeys Ed25519 keys in PEM.
 */
export function signDocument(text: string, privateKeys: readonly string[]): Buffer {
  const body = Buffer.from(text);
  const signatures = privateKeys.map((key) =>
    sign(null, signedBytes(body), createPrivateKey(key)).toString("base64"),
  );
  return Buffer.concat([Buffer.from(`${[DOCUMENT_FORMAT, ...signatures].join(" ")}\n`), body]);
}

const REASONS = {
  malformed: { code: "prices_malformed" },
  forged: { code: "prices_forged" },
  absurd: { code: "prices_absurd" },
} as const;

const reject = (reason: keyof typeof REASONS, why: string): never =>
  fail("invalid", `The price document was rejected: ${why}.`, REASONS[reason]);

/**
 * Verifies and reads a file. Throws without any effect if the file is not signed with the key, is
 * malformed, or states something absurd.
 * @param now Unix milliseconds. A document from the future is rejected.
 */
export function openDocument(file: Buffer, publicKey: string, now: number): PriceDocument {
  if (file.length > MAX_DOCUMENT_BYTES)
    return reject("malformed", `it is larger than ${MAX_DOCUMENT_BYTES} bytes`);
  const end = file.subarray(0, MAX_HEADER_BYTES).indexOf(0x0a);
  const [format, ...signatures] = file.toString("latin1", 0, Math.max(end, 0)).split(" ");
  if (format !== DOCUMENT_FORMAT)
    return reject("malformed", `it does not begin with "${DOCUMENT_FORMAT}"`);
  const body = file.subarray(end + 1);
  const key = toPublicKey(publicKey);
  const bytes = signedBytes(body);
  const isSigned = signatures
    .slice(0, MAX_SIGNATURES)
    .some((signature) => verify(null, bytes, key, Buffer.from(signature, "base64")));
  if (!isSigned) return reject("forged", "it is not signed with the configured key");
  const digest = createHash("sha256").update(body).digest("hex");
  return readDocument(body.toString("utf8"), digest, now);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Parses an ISO instant with its zone. Undefined if the text is none. */
export const parseInstant = (value: unknown): number | undefined => {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\dT[\d:.]{5,12}Z$/.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : at;
};

/** Reads the JSON text of a document. Exported for publishers, who check a text before signing it. */
export function readDocument(text: string, digest: string, now: number): PriceDocument {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return reject("malformed", "its text is not JSON");
  }
  if (!isObject(root)) return reject("malformed", "its text is not an object");
  const { version, issued, sources = {}, providers } = root;
  if (typeof version !== "number" || !Number.isSafeInteger(version) || version < 1)
    return reject("malformed", "its version is not a positive integer");
  const issuedAt = parseInstant(issued);
  if (issuedAt === undefined) return reject("malformed", "it has no date of issue");
  if (issuedAt > now + DAY_MS) return reject("absurd", "its date of issue is in the future");
  if (!isObject(sources) || !isObject(providers))
    return reject("malformed", "it lists no sources or providers");
  const read = new Map<string, ReadonlyMap<string, PublishedModel>>();
  for (const [provider, models] of Object.entries(providers)) {
    checkName(provider);
    read.set(provider, readModels(provider, models));
  }
  return {
    version,
    issued: issued as string,
    sources: readSources(sources),
    providers: read,
    digest,
  };
}

function readSources(sources: Record<string, unknown>): PriceDocument["sources"] {
  for (const [id, source] of Object.entries(sources))
    if (
      !isObject(source) ||
      typeof source["url"] !== "string" ||
      typeof source["retrieved"] !== "string"
    )
      return reject("malformed", `the source ${JSON.stringify(id)} has no address or date`);
  return sources as PriceDocument["sources"];
}

/** Rejects names that every object has, because books are plain objects. */
function checkName(name: string): void {
  if (name in Object.prototype) reject("malformed", `${JSON.stringify(name)} is a reserved name`);
}

function readModels(provider: string, entries: unknown): ReadonlyMap<string, PublishedModel> {
  if (!Array.isArray(entries))
    return reject("malformed", `the models of ${JSON.stringify(provider)} are not a list`);
  const read = new Map<string, PublishedModel>();
  const facts = parseModelList(
    entries.map((entry) => (isObject(entry) ? withoutPrice(entry) : entry)),
  );
  // Names that no request could carry are omitted from the parsed list.
  const byName = new Map(facts.map((each) => [each.model, each]));
  for (const entry of entries as Record<string, unknown>[]) {
    const name = entry["model"] as string;
    const {
      dataPolicy: _,
      protocols: __,
      rejectedFields: ___,
      pricedAs: ____,
      ...published
    } = byName.get(name) ?? {
      model: "",
    };
    if (published.model === "") continue;
    checkName(name);
    if (read.has(name)) return reject("malformed", `it lists ${provider}/${name} twice`);
    read.set(name, {
      facts: published as PublishedFacts,
      prices: readPrices(`${provider}/${name}`, entry["prices"] ?? []),
      figures: readFigures(`${provider}/${name}`, entry["figures"] ?? {}),
    });
  }
  return read;
}

function readFigures(id: string, figures: unknown): FigureSources {
  const isList = (value: unknown) =>
    Array.isArray(value) && value.every((source) => typeof source === "string");
  if (!isObject(figures) || !Object.values(figures).every(isList))
    return reject("malformed", `the sources of the figures of ${id} are not lists`);
  return figures as FigureSources;
}

const withoutPrice = ({ prices: _, figures: __, price: ___, ...facts }: Record<string, unknown>) =>
  facts;

function readPrices(id: string, entries: unknown): readonly PublishedPrice[] {
  if (!Array.isArray(entries) || entries.length > 16)
    return reject("malformed", `the prices of ${id} are not a list of at most 16`);
  let last = -Infinity;
  return entries.map((entry: unknown) => {
    if (!isObject(entry)) return reject("malformed", `a price of ${id} is not an object`);
    const from = entry["from"] === undefined ? undefined : parseInstant(entry["from"]);
    if (entry["from"] !== undefined && from === undefined)
      return reject("malformed", `a price of ${id} has no valid start`);
    if ((from ?? 0) <= last)
      return reject("malformed", `the prices of ${id} are not in the order of their starts`);
    last = from ?? 0;
    const [checked] = parseModelList([
      { model: "m", operation: "chat", price: entry["price"] ?? 0 },
    ]);
    const price = checked!.price!;
    checkPrice(id, price);
    return { ...(entry["from"] !== undefined && { from: entry["from"] as string }), price };
  });
}

function checkPrice(id: string, price: Price): void {
  const rows = rowsOf(price);
  const lines = allLines(price);
  const isLong = rows.some(({ over = [], tiers = {}, multipliers = [] }) =>
    [over, multipliers, ...[tiers, ...over.map((each) => each.tiers ?? {})].map(Object.keys)].some(
      ({ length }) => length > MAX_TERMS,
    ),
  );
  if (isLong || lines.length > MAX_LINES) reject("malformed", `a price of ${id} is too long`);
  const absurd = lines.find((line) => isAbsurd(line));
  if (absurd)
    reject("absurd", `${id} costs ${absurd.usd} dollars per ${absurd.per} ${absurd.unit}`);
  for (const { multipliers = [] } of rows) {
    const factors = multipliers
      .map(({ by }) => parseDecimal(by, 9))
      .filter((by) => by > UNIT_FACTOR);
    const product = factors.reduce((all, by) => (all * by) / UNIT_FACTOR, UNIT_FACTOR);
    if (product > MAX_FACTOR)
      reject("absurd", `the multipliers of ${id} are higher than 100 together`);
  }
}

const PIECES: ReadonlySet<Unit> = new Set(PIECE_UNITS);

const isAbsurd = (line: PriceLine): boolean =>
  picoDollarsPerUnit(line) > (PIECES.has(line.unit) ? MAX_PIECE_RATE : MAX_TOKEN_RATE);

/** Returns the rows of a price, by date and hour. */
export function rowsOf(price: Price): readonly Price[] {
  const rows: Price[] = [];
  for (let row: Opt<Price> = price; row; row = row.otherwise) rows.push(row);
  return rows;
}

/** Returns every line of a price, also of its brackets, tiers, and later rows. */
const allLines = (price: Price): readonly PriceLine[] =>
  rowsOf(price).flatMap(({ lines, over = [], tiers = {} }) => [
    ...lines,
    ...over.flatMap((each) => [...each.lines, ...Object.values(each.tiers ?? {}).flat()]),
    ...Object.values(tiers).flat(),
  ]);

// Reads the number of requested responses and their maximum length from a body, under every name
// that some backend reads. Backends that imitate a protocol read more fields than it documents, so
// one list of names serves all protocols. A name that a backend ignores only causes a larger
// reservation. A field that is present but unreadable is reported by its path. A hard budget
// rejects such a request, because the backend may read the field.
import type { Field, Json, JsonObject, Opt } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import { asObject } from "./json-values.ts";

type Fields = { readonly [field: string]: unknown };

/**
 * Meaning of a request field:
 * - `responses`: number of responses
 * - `rounds`: number of rounds, each of which produces that many responses
 * - `maxOutput`: token limit of one response
 * - `inside`: an object that contains such fields
 * - `input`: a text, a list, or, with some backends, an object that contains all settings
 * - `sequence`: whether a series of images is generated, see `MAX_SEQUENCE_IMAGES`
 * - `free`: an object with names that the client chose
 */
type FieldMeaning = "responses" | "rounds" | "maxOutput" | "inside" | "input" | "sequence" | "free";

/** Meanings by field name, in lower case and without dashes and underscores. */
const FIELD_MEANINGS = new Map<string, FieldMeaning>();
const registerNames = (meaning: FieldMeaning, names: string): void =>
  names.split(/\s+/).forEach((name) => FIELD_MEANINGS.set(name, meaning));
registerNames(
  "responses",
  "n bestof numreturnsequences numcompletions numgenerations numcandidates numchoices",
);
registerNames(
  "responses",
  "candidatecount choicecount samplecount nsamples numsamples samples resultcount numberresults",
);
registerNames(
  "responses",
  "numimages numimage nimages imagenum imagecount numberofimages imagesperprompt",
);
registerNames(
  "responses",
  "numimagesperprompt maximages numoutputs numberofoutputs outputcount batchsize numresults",
);
registerNames("rounds", "batchcount numbatches niter numiterations iterations repeats");
registerNames(
  "maxOutput",
  "maxtokens maxcompletiontokens maxoutputtokens maxnewtokens maxtokenstosample maxtokencount",
);
registerNames(
  "maxOutput",
  "maxgenlen maxgentoks maxgeneratedtokens maxtokenstogenerate maxlength maxoutputlength",
);
registerNames("maxOutput", "numpredict npredict");
registerNames(
  "inside",
  "generationconfig generateconfig config imageconfig imagegenerationconfig settings params",
);
registerNames(
  "inside",
  "parameters options extrabody extraparams extra samplingparams provideroptions modelkwargs",
);
registerNames(
  "inside",
  "inferenceconfig textgenerationconfig generationparameters generationparams generationoptions",
);
registerNames("inside", "sequentialimagegenerationoptions");
registerNames("input", "input");
registerNames("sequence", "sequentialimagegeneration");

/** Maximum length of a field name, including separators. No listed name is longer. */
const MAX_FIELD_NAME = 48;
/** Matches the names of fields whose content the client chooses, by a part of the name. */
const FREE_FORM_FIELD = /schema|format|metadata|labels|instances/;
/** Largest plausible number of responses. */
const MAX_RESPONSES = 1e6;
const MAX_TOKENS = 1e9;
/** Maximum nesting depth. No known backend reads deeper. */
const MAX_DEPTH = 4;
/**
 * Seedream generates as many images as the prompt requests, up to this number, unless
 * `sequential_image_generation` is off.
 */
const MAX_SEQUENCE_IMAGES = 15;

/** Cached meanings of names that were seen, so that common names need no normalization. */
const meaningCache = new Map<string, FieldMeaning | null>();
const MAX_CACHED = 1_024;

const PLAIN = /^[a-z0-9]+$/;

/** Returns the meaning of a field. Letter case, dashes, and underscores in the name are ignored. */
function meaningOf(field: string): FieldMeaning | null {
  if (field.length > MAX_FIELD_NAME) return null;
  const known = meaningCache.get(field);
  if (known !== undefined) return known;
  const name = PLAIN.test(field) ? field : field.replace(/[-_]/g, "").toUpperCase().toLowerCase();
  const meaning = FIELD_MEANINGS.get(name) ?? (FREE_FORM_FIELD.test(name) ? "free" : null);
  if (meaningCache.size < MAX_CACHED) meaningCache.set(field, meaning);
  return meaning;
}

export interface RequestedAmounts {
  /** Number of responses. Undefined: the body does not set it. */
  readonly responses: number | undefined;
  /** Token limit of one response: the largest limit under any name. */
  readonly maxOutput: number | undefined;
  /** Path of a field that cannot be read. */
  readonly unreadableField: string | undefined;
}

/**
 * Whether a field multiplies responses in any protocol. Such fields are never translated to another
 * protocol.
 */
export const isMultiplierField = (field: string): boolean => {
  const meaning = meaningOf(field);
  return meaning === "responses" || meaning === "rounds";
};

/**
 * Returns the amounts that a body requests.
 *
 * @param zero Field in which this protocol documents a limit of 0. In other fields, 0 may mean that
 *   there is no limit.
 */
export function readRequestedAmounts(body: Fields, zero?: string): RequestedAmounts {
  const found = new AmountScanner(zero);
  found.scanFields(body, "", 0);
  const { responses, rounds, maxOutput, unreadableField } = found;
  const all =
    responses === undefined && rounds === undefined ? undefined : (responses ?? 1) * (rounds ?? 1);
  return { responses: all, maxOutput, unreadableField };
}

class AmountScanner {
  responses: number | undefined;
  rounds: number | undefined;
  maxOutput: number | undefined;
  unreadableField: string | undefined;
  /** Path of the first amount that was found. */
  #first: string | undefined;
  readonly #zero: string | undefined;

  constructor(zero: string | undefined) {
    this.#zero = zero;
  }

  scanFields(fields: Fields, at: string, depth: number): void {
    for (const field in fields) {
      const value = fields[field];
      if (value === undefined || value === null) continue;
      const meaning = meaningOf(field);
      if (meaning === "responses" || meaning === "rounds" || meaning === "maxOutput")
        this.addCount(meaning, value, at + field);
      else if (meaning === "inside") this.scanInside(value, at + field, depth, true);
      else if (meaning === "sequence") this.addSequence(value, fields, at + field);
      else if (meaning === null && depth > 0 && Array.isArray(value))
        this.scanList(value, at + field, depth);
      else if (meaning === "input" || (meaning === null && depth > 0))
        this.scanInside(value, at + field, depth, false);
    }
  }

  /**
   * Scans a list inside settings. It is unknown whether a backend adds up the amounts in a list or
   * reads one of them, so any amount in a list is reported as unreadable.
   */
  scanList(values: readonly unknown[], at: string, depth: number): void {
    if (depth >= MAX_DEPTH) return;
    for (const [i, value] of values.entries()) {
      const here = `${at}[${i}]`;
      if (Array.isArray(value)) this.scanList(value, here, depth + 1);
      const of = asObject(value);
      if (!of) continue;
      const found = new AmountScanner(this.#zero);
      found.scanFields(of, `${here}.`, depth + 1);
      this.unreadableField ??= found.unreadableField ?? found.#first;
    }
  }

  scanInside(value: unknown, at: string, depth: number, must: boolean): void {
    const of = asObject(value);
    if (of && depth < MAX_DEPTH) this.scanFields(of, `${at}.`, depth + 1);
    else if (must) this.unreadableField ??= at;
  }

  addCount(meaning: "responses" | "rounds" | "maxOutput", value: unknown, at: string): void {
    const count = parseCount(value);
    const most = meaning === "maxOutput" ? MAX_TOKENS : MAX_RESPONSES;
    const isZero = count === 0 && meaning === "maxOutput" && at !== this.#zero;
    if (count === undefined || count > most || isZero) this.unreadableField ??= at;
    else if (count > 0) {
      this.#first ??= at;
      this[meaning] = Math.max(this[meaning] ?? 0, count);
    }
  }

  addSequence(value: unknown, of: Fields, at: string): void {
    if (value === "disabled" || value === false) return;
    const rawValue = asObject(of["sequential_image_generation_options"])?.["max_images"];
    if (parseCount(rawValue)) return;
    this.#first ??= at;
    this.responses = Math.max(this.responses ?? 0, MAX_SEQUENCE_IMAGES);
  }
}

/**
 * Parses a count as backends do: some accept a number written as text. Returns undefined if the
 * value is not a count.
 */
function parseCount(value: unknown): number | undefined {
  if (value === "") return 0;
  const n =
    typeof value === "string" && /^\s*\d{1,15}(?:\.\d*)?\s*$/.test(value) ? Number(value) : value;
  return typeof n === "number" && Number.isFinite(n) && n >= 0 ? Math.ceil(n) : undefined;
}

/** Lowers every output limit in an outgoing body, under any name. Smaller limits are kept. */
export function lowerOutputLimits(out: Outgoing, fields: Iterable<string>, tokens: number): void {
  for (const field of fields) {
    const value = out.get(field);
    if (value === undefined || value === null) continue;
    const less = lowerLimit(field, value as Json, tokens, 0);
    if (less !== value) out.set(field, less as Field);
  }
}

function lowerLimit(field: string, value: Json, tokens: number, depth: number): Json {
  const meaning = meaningOf(field);
  if (meaning === "maxOutput") return (parseCount(value) ?? 0) > tokens ? tokens : value;
  const holds = meaning === "inside" || meaning === "input" || (meaning === null && depth > 0);
  const of = holds && depth < MAX_DEPTH ? asObject(value) : undefined;
  if (!of) return value;
  let less: Record<string, Opt<Json>> | undefined;
  for (const [name, one] of Object.entries(of as JsonObject)) {
    const now = one === undefined ? one : lowerLimit(name, one, tokens, depth + 1);
    if (now !== one) (less ??= { ...of })[name] = now;
  }
  return less ?? value;
}

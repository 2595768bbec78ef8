// How many answers a body asks for and how long each may be, under every name that some backend reads. Backends that imitate a
// protocol read more fields than it documents, so one list of names serves all protocols: a name that a backend ignores costs nothing
// but a larger hold. A field that is there and cannot be read is reported by its path: a hard budget rejects it, because the
// backend may read it.
import type { Field, Json, JsonObject, Opt } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import { asObject } from "./json-values.ts";

type Fields = { readonly [field: string]: unknown };

/**
 * responses: so many at once · rounds: each round makes so many · maxOutput: tokens of one answer · inside: holds such fields · input: a
 * text, a list, or with some backends an object that holds everything · sequence: see below · free: holds names of the client's own
 */
type FieldMeaning = "responses" | "rounds" | "maxOutput" | "inside" | "input" | "sequence" | "free";

/** By the name without its case, dashes and underscores. */
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

/** No name in the list is longer, with its dashes. */
const MAX_FIELD_NAME = 48;
/** By a part of the name. */
const FREE_FORM_FIELD = /schema|format|metadata|labels|instances/;
/** More than any request means. */
const MAX_RESPONSES = 1e6;
const MAX_TOKENS = 1e9;
/** Deeper than any backend looks. */
const MAX_DEPTH = 4;
/** Seedream draws as many pictures as the prompt asks for, up to this many, where `sequential_image_generation` is not off. */
const MAX_SEQUENCE_IMAGES = 15;

/** Meanings of names that were seen, so that the names of most bodies are looked up and not folded. */
const meaningCache = new Map<string, FieldMeaning | null>();
const MAX_CACHED = 1_024;

const PLAIN = /^[a-z0-9]+$/;

/** What a field asks for, whatever the case of its name, and with or without dashes and underscores. */
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
  /** Answers. Undefined: nothing is said of them. */
  readonly responses: number | undefined;
  /** Tokens of one answer: the largest bound under any name. */
  readonly maxOutput: number | undefined;
  /** The path of a field that cannot be read. */
  readonly unreadableField: string | undefined;
}

/** A field that multiplies answers, in whichever protocol: none of them goes from one protocol to another. */
export const isMultiplierField = (field: string): boolean => {
  const meaning = meaningOf(field);
  return meaning === "responses" || meaning === "rounds";
};

/** `zero`: the field in which this protocol documents a bound of 0. Elsewhere 0 may mean that there is no bound. */
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
  /** The path of the first amount. */
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

  /** A list among settings. Whether a backend adds up its amounts, or reads one of them, is not known: so they cannot be read. */
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

/** A count as backends read one: some take the text of a number for the number. Undefined: it cannot be read. */
function parseCount(value: unknown): number | undefined {
  if (value === "") return 0;
  const n =
    typeof value === "string" && /^\s*\d{1,15}(?:\.\d*)?\s*$/.test(value) ? Number(value) : value;
  return typeof n === "number" && Number.isFinite(n) && n >= 0 ? Math.ceil(n) : undefined;
}

/** Lowers every bound in a body about to leave, whatever its name. A bound that is smaller stays. */
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

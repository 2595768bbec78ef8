// How many answers a body asks for and how long each may be, under every name that some backend reads. Backends that imitate a
// protocol read more fields than it documents, so one list of names serves all protocols: a name that a backend ignores costs nothing
// but a larger hold. A field that is there and cannot be read is reported by its path: a hard budget rejects it, because the
// backend may read it.
import type { Field, Json, JsonObject, Opt } from "../model/values.ts";
import type { Outgoing } from "../plugin/outgoing.ts";
import { object } from "./json.ts";

type Fields = { readonly [field: string]: unknown };

/**
 * answers: so many at once · rounds: each round makes so many · bound: tokens of one answer · inside: holds such fields · input: a
 * text, a list, or with some backends an object that holds everything · sequence: see below · free: holds names of the client's own
 */
type Meaning = "answers" | "rounds" | "bound" | "inside" | "input" | "sequence" | "free";

/** By the name without its case, dashes and underscores. */
const NAMES = new Map<string, Meaning>();
const named = (meaning: Meaning, names: string): void =>
  names.split(/\s+/).forEach((name) => NAMES.set(name, meaning));
named(
  "answers",
  "n bestof numreturnsequences numcompletions numgenerations numcandidates numchoices",
);
named(
  "answers",
  "candidatecount choicecount samplecount nsamples numsamples samples resultcount numberresults",
);
named("answers", "numimages numimage nimages imagenum imagecount numberofimages imagesperprompt");
named(
  "answers",
  "numimagesperprompt maximages numoutputs numberofoutputs outputcount batchsize numresults",
);
named("rounds", "batchcount numbatches niter numiterations iterations repeats");
named(
  "bound",
  "maxtokens maxcompletiontokens maxoutputtokens maxnewtokens maxtokenstosample maxtokencount",
);
named(
  "bound",
  "maxgenlen maxgentoks maxgeneratedtokens maxtokenstogenerate maxlength maxoutputlength",
);
named("bound", "numpredict npredict");
named(
  "inside",
  "generationconfig generateconfig config imageconfig imagegenerationconfig settings params",
);
named(
  "inside",
  "parameters options extrabody extraparams extra samplingparams provideroptions modelkwargs",
);
named(
  "inside",
  "inferenceconfig textgenerationconfig generationparameters generationparams generationoptions",
);
named("inside", "sequentialimagegenerationoptions");
named("input", "input");
named("sequence", "sequentialimagegeneration");

/** No name in the list is longer, with its dashes. */
const LONGEST = 48;
/** By a part of the name. */
const FREE = /schema|format|metadata|labels|instances/;
/** More than any request means. */
const MOST_ANSWERS = 1e6;
const MOST_TOKENS = 1e9;
/** Deeper than any backend looks. */
const DEEPEST = 4;
/** Seedream draws as many pictures as the prompt asks for, up to this many, where `sequential_image_generation` is not off. */
const MOST_IN_SEQUENCE = 15;

/** Meanings of names that were seen, so that the names of most bodies are looked up and not folded. */
const seen = new Map<string, Meaning | null>();
const MOST_SEEN = 1_024;

const PLAIN = /^[a-z0-9]+$/;

/** What a field asks for, whatever the case of its name, and with or without dashes and underscores. */
function meaningOf(field: string): Meaning | null {
  if (field.length > LONGEST) return null;
  const known = seen.get(field);
  if (known !== undefined) return known;
  const name = PLAIN.test(field) ? field : field.replace(/[-_]/g, "").toUpperCase().toLowerCase();
  const meaning = NAMES.get(name) ?? (FREE.test(name) ? "free" : null);
  if (seen.size < MOST_SEEN) seen.set(field, meaning);
  return meaning;
}

export interface AskedAmounts {
  /** Answers. Undefined: nothing is said of them. */
  readonly answers: number | undefined;
  /** Tokens of one answer: the largest bound under any name. */
  readonly bound: number | undefined;
  /** The path of a field that cannot be read. */
  readonly unreadable: string | undefined;
}

/** A field that multiplies answers, in whichever protocol: none of them goes from one protocol to another. */
export const multiplies = (field: string): boolean => {
  const meaning = meaningOf(field);
  return meaning === "answers" || meaning === "rounds";
};

/** `zero`: the field in which this protocol documents a bound of 0. Elsewhere 0 may mean that there is no bound. */
export function amountsIn(body: Fields, zero?: string): AskedAmounts {
  const found = new Found(zero);
  found.over(body, "", 0);
  const { answers, rounds, bound, unreadable } = found;
  const all =
    answers === undefined && rounds === undefined ? undefined : (answers ?? 1) * (rounds ?? 1);
  return { answers: all, bound, unreadable };
}

class Found {
  answers: number | undefined;
  rounds: number | undefined;
  bound: number | undefined;
  unreadable: string | undefined;
  /** The path of the first amount. */
  #first: string | undefined;
  readonly #zero: string | undefined;

  constructor(zero: string | undefined) {
    this.#zero = zero;
  }

  over(fields: Fields, at: string, depth: number): void {
    for (const field in fields) {
      const value = fields[field];
      if (value === undefined || value === null) continue;
      const meaning = meaningOf(field);
      if (meaning === "answers" || meaning === "rounds" || meaning === "bound")
        this.#count(meaning, value, at + field);
      else if (meaning === "inside") this.#inside(value, at + field, depth, true);
      else if (meaning === "sequence") this.#sequence(value, fields, at + field);
      else if (meaning === null && depth > 0 && Array.isArray(value))
        this.#list(value, at + field, depth);
      else if (meaning === "input" || (meaning === null && depth > 0))
        this.#inside(value, at + field, depth, false);
    }
  }

  /** A list among settings. Whether a backend adds up its amounts, or reads one of them, is not known: so they cannot be read. */
  #list(values: readonly unknown[], at: string, depth: number): void {
    if (depth >= DEEPEST) return;
    for (const [i, value] of values.entries()) {
      const here = `${at}[${i}]`;
      if (Array.isArray(value)) this.#list(value, here, depth + 1);
      const of = object(value);
      if (!of) continue;
      const found = new Found(this.#zero);
      found.over(of, `${here}.`, depth + 1);
      this.unreadable ??= found.unreadable ?? found.#first;
    }
  }

  #inside(value: unknown, at: string, depth: number, must: boolean): void {
    const of = object(value);
    if (of && depth < DEEPEST) this.over(of, `${at}.`, depth + 1);
    else if (must) this.unreadable ??= at;
  }

  #count(meaning: "answers" | "rounds" | "bound", value: unknown, at: string): void {
    const count = countOf(value);
    const most = meaning === "bound" ? MOST_TOKENS : MOST_ANSWERS;
    const isZero = count === 0 && meaning === "bound" && at !== this.#zero;
    if (count === undefined || count > most || isZero) this.unreadable ??= at;
    else if (count > 0) {
      this.#first ??= at;
      this[meaning] = Math.max(this[meaning] ?? 0, count);
    }
  }

  #sequence(value: unknown, of: Fields, at: string): void {
    if (value === "disabled" || value === false) return;
    const said = object(of["sequential_image_generation_options"])?.["max_images"];
    if (countOf(said)) return;
    this.#first ??= at;
    this.answers = Math.max(this.answers ?? 0, MOST_IN_SEQUENCE);
  }
}

/** A count as backends read one: some take the text of a number for the number. Undefined: it cannot be read. */
function countOf(value: unknown): number | undefined {
  if (value === "") return 0;
  const n =
    typeof value === "string" && /^\s*\d{1,15}(?:\.\d*)?\s*$/.test(value) ? Number(value) : value;
  return typeof n === "number" && Number.isFinite(n) && n >= 0 ? Math.ceil(n) : undefined;
}

/** Lowers every bound in a body about to leave, whatever its name. A bound that is smaller stays. */
export function lowered(out: Outgoing, fields: Iterable<string>, tokens: number): void {
  for (const field of fields) {
    const value = out.get(field);
    if (value === undefined || value === null) continue;
    const less = lower(field, value as Json, tokens, 0);
    if (less !== value) out.set(field, less as Field);
  }
}

function lower(field: string, value: Json, tokens: number, depth: number): Json {
  const meaning = meaningOf(field);
  if (meaning === "bound") return (countOf(value) ?? 0) > tokens ? tokens : value;
  const holds = meaning === "inside" || meaning === "input" || (meaning === null && depth > 0);
  const of = holds && depth < DEEPEST ? object(value) : undefined;
  if (!of) return value;
  let less: Record<string, Opt<Json>> | undefined;
  for (const [name, one] of Object.entries(of as JsonObject)) {
    const now = one === undefined ? one : lower(name, one, tokens, depth + 1);
    if (now !== one) (less ??= { ...of })[name] = now;
  }
  return less ?? value;
}

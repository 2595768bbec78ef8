// One walk over a body, in linear time: every member that is in the tables, wherever it stands.
import { fail } from "../../model/error.ts";
import type {
  Feature,
  Finding,
  Json,
  JsonObject,
  Named,
  Opt,
  StateWord,
} from "../../plugin/index.ts";
import { HOSTED, hostedBy, TOOL_PLACES } from "./hosted.ts";
import { ACCOUNTS, CACHE_MARKS, FREE, MODELS, PRESETS, STATE } from "./words.ts";

const NOTHING: Named = [];

/** No client names more than this and means it. */
const MOST = 1024;

/** What one member is known as. */
type Known = (walk: Walk, value: Json, holder: JsonObject) => void;
const KNOWN = new Map<string, Known>();
for (const [name, word] of Object.entries(STATE))
  KNOWN.set(name, (walk, value, holder) => walk.state(word, value, holder));
for (const [name, hosts] of Object.entries(HOSTED))
  KNOWN.set(name, (walk, value) => walk.hosted(hosts(value)));
for (const name of CACHE_MARKS) KNOWN.set(name, (walk, value) => walk.cache(value));
for (const name of MODELS) KNOWN.set(name, (walk, value, of) => walk.models(name, value, of));
for (const name of PRESETS) KNOWN.set(name, (walk, value) => walk.preset(value));
for (const name of ACCOUNTS) KNOWN.set(name, (walk) => walk.account());
KNOWN.set("prompt_cache_retention", (walk, value) => walk.retention(value));

/** Looks over all of a body, or over some of its fields. */
export function look(body: { readonly [field: string]: unknown }): Named {
  return walk.over(body as JsonObject) ?? NOTHING;
}

/** What is named once some fields were set or left out: the others are as they were looked at. */
export function lookAgain(named: Named, edits: ReadonlyMap<string, unknown>): Named {
  let edited: [string, unknown][] | undefined;
  for (const [field, value] of edits)
    if (!isMute(field, value)) (edited ??= []).push([field, value]);
  const now = edited ? look(Object.fromEntries(edited)) : NOTHING;
  if (named.length === 0) return now;
  const left = named.filter(({ field }) => !edits.has(field));
  return now.length === 0 ? left : [...left, ...now];
}

/** A value that says nothing, whatever it is: most edits are such. */
const isMute = (field: string, value: unknown): boolean =>
  typeof value !== "object" &&
  (!KNOWN.has(field) || (field === "model" && !String(value).includes(PRESET)));

const PRESET = "@preset/";

class Walk {
  #found: Finding[] | undefined;
  #seen: Set<string> | undefined;
  readonly #path: (string | number)[] = [];

  over(body: JsonObject): Named | undefined {
    this.#path.length = 0;
    try {
      this.members(body, false);
      return this.#found;
    } finally {
      this.#found = this.#seen = undefined;
    }
  }

  /** `hosted`: inside of a tool that runs elsewhere everything is an order to the service that runs it. */
  members(of: JsonObject, hosted: boolean): void {
    for (const key in of) {
      const value = of[key];
      if (value === undefined || value === null || value === false || value === "") continue;
      const known = KNOWN.get(key);
      const nested = typeof value === "object";
      if (known === undefined && !nested) continue;
      this.#path.push(key);
      known?.(this, value, of);
      if (nested && !Buffer.isBuffer(value)) this.#inside(key, value, of, hosted);
      this.#path.pop();
    }
  }

  #inside(key: string, value: Json & object, of: JsonObject, hosted: boolean): void {
    if (Array.isArray(value)) {
      if (!hosted && FREE.has(key)) return;
      this.#each(value as readonly Json[], TOOL_PLACES.has(key), hosted);
      return;
    }
    if (hosted ? key === "headers" : FREE.has(key) || key === "input" || isRecord(key, of)) return;
    if (TOOL_PLACES.has(key)) this.#tool(value as JsonObject);
    else this.members(value as JsonObject, hosted);
  }

  #each(list: readonly Json[], tools: boolean, hosted: boolean): void {
    for (let i = 0; i < list.length; i++) {
      const one = list[i];
      if (typeof one !== "object" || one === null) continue;
      this.#path.push(i);
      if (Array.isArray(one)) this.#each(one as readonly Json[], tools, hosted);
      else if (tools) this.#tool(one as JsonObject);
      else this.members(one as JsonObject, hosted);
      this.#path.pop();
    }
  }

  #tool(tool: JsonObject): void {
    const hosted = hostedBy(tool);
    if (hosted) this.hosted(hosted);
    this.members(tool, hosted !== null);
  }

  state(word: StateWord, value: Json, holder: JsonObject): void {
    if (word.when && !word.when(value, holder)) return;
    const does = typeof word.does === "string" ? word.does : word.does(value);
    if (word.at !== undefined) this.#path.push(word.at);
    this.#find(`${does} ${word.feature}`, (at) => ({ ...at, kind: "state", word, does, value }));
    if (word.at !== undefined) this.#path.pop();
  }
  /** Those at the top are told from those further in, whose number is not bounded. */
  hosted(features: readonly Feature[]): void {
    for (const feature of features)
      this.#find(`${feature} ${this.#path.length === 2}`, (at) => ({
        ...at,
        kind: "hosted",
        feature,
      }));
  }
  cache(mark: Json): void {
    const ttl = typeof mark === "object" ? (mark as JsonObject)["ttl"] : undefined;
    const feature: Feature = `cache.${typeof ttl === "string" ? ttl.slice(0, 16) : "5m"}`;
    this.#find(feature, (at) => ({ ...at, kind: "cache", feature }));
  }
  retention(value: Json): void {
    if (value === "24h")
      this.#find("extended", (at) => ({ ...at, kind: "cache", feature: "cache.extended" }));
  }
  /** The model at the top is the one that the request is for. */
  models(name: string, value: Json, holder: JsonObject): void {
    if (name === "model" && this.#isRequest()) {
      const at = typeof value === "string" ? value.indexOf(PRESET) : -1;
      if (at >= 0) this.#model((value as string).slice(at), undefined);
      return;
    }
    for (const one of Array.isArray(value) ? (value as readonly Json[]) : [value])
      if (typeof one === "string" && one !== "") this.#model(one, holder["max_uses"]);
  }
  preset(value: Json): void {
    if (typeof value === "string") this.#model(`${PRESET}${value}`, undefined);
  }
  account(): void {
    // At the top they are left out before anything leaves.
    if (this.#path.length > 1)
      this.#find(String(this.#path.at(-1)), (at) => ({ ...at, kind: "account" }));
  }

  #model(model: string, uses: Opt<Json>): void {
    const place = uses === undefined ? "" : written(this.#path);
    this.#find(`model ${model} ${place}`, (at) => ({ ...at, kind: "model", model, uses }));
  }

  #isRequest(): boolean {
    const { length, 0: first } = this.#path;
    return length === 1 || (length === 2 && first === "generateContentRequest");
  }

  #find(what: string, make: (at: { field: string; path: string }) => Finding): void {
    const field = String(this.#path[0]);
    const key = `${field}\n${what}`;
    if (this.#seen?.has(key)) return;
    (this.#seen ??= new Set()).add(key);
    (this.#found ??= []).push(make({ field, path: written(this.#path) }));
    if (this.#found.length > MOST)
      fail("invalid", `More than ${MOST} tools, models and stored things are named here.`, {
        param: field,
        code: "too_many_named",
      });
  }
}

/** One for all bodies: a walk does not wait, and holds nothing of a body when it is over. */
const walk = new Walk();

/** The content of what a hosted tool found, which stands in a conversation as a record. */
const isRecord = (key: string, of: JsonObject): boolean => {
  if (key === "from" || key === "to") return of["type"] === "fallback";
  if (key !== "content") return false;
  const type: Opt<Json> = of["type"];
  return typeof type === "string" && type.length > 12 && type.endsWith("_tool_result");
};

const written = (path: readonly (string | number)[]): string =>
  path.reduce<string>(
    (text, step) =>
      typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`,
    "",
  );

/** What must be possible, or may be kept, for what is named. */
export function featuresOf(named: Named): Set<Feature> {
  const features = new Set<Feature>();
  for (const one of named)
    if (one.kind === "state") features.add(one.word.feature);
    else if (one.kind === "hosted" || one.kind === "cache") features.add(one.feature);
  return features;
}

/** Models beside the one that is asked, each once. */
export const modelsOf = (named: Named): readonly string[] =>
  named.length === 0
    ? NONE
    : [...new Set(named.flatMap((one) => (one.kind === "model" ? [one.model] : [])))];

const NONE: readonly string[] = [];

// Finds references in a request body. One traversal in linear time visits every member that is in
// the rule tables, at any depth.
import { fail } from "../../model/error.ts";
import type {
  Feature,
  Reference,
  Json,
  JsonObject,
  References,
  Opt,
  StateReferenceRule,
  Body,
  Field,
  Outgoing,
} from "../../plugin/index.ts";
import {
  HOSTED_FIELD_RULES,
  hostedToolFeatures,
  TOOL_PLACES,
  HOSTED_FIELDS,
} from "./hosted-tools.ts";
import {
  ACCOUNT_FIELDS,
  CACHE_MARKS,
  FREE_TEXT_FIELDS,
  MODEL_FIELDS,
  PRESET_FIELDS,
  STATE_RULES,
} from "./reference-rules.ts";

const NO_REFERENCES: References = [];

/** Maximum number of references per request. Legitimate clients stay far below it. */
const MAX_REFERENCES = 1024;

/** The action for a member name that is in one of the tables. */
type MemberRule = (walk: ReferenceWalk, value: Json, holder: JsonObject) => void;
const MEMBER_RULES = new Map<string, MemberRule>();
for (const [name, word] of Object.entries(STATE_RULES))
  MEMBER_RULES.set(name, (walk, value, holder) => walk.state(word, value, holder));
for (const [name, hosts] of Object.entries(HOSTED_FIELD_RULES))
  MEMBER_RULES.set(name, (walk, value) => walk.hosted(hosts(value)));
for (const name of CACHE_MARKS) MEMBER_RULES.set(name, (walk, value) => walk.cache(value));
for (const name of MODEL_FIELDS)
  MEMBER_RULES.set(name, (walk, value, of) => walk.models(name, value, of));
for (const name of PRESET_FIELDS) MEMBER_RULES.set(name, (walk, value) => walk.preset(value));
for (const name of ACCOUNT_FIELDS) MEMBER_RULES.set(name, (walk) => walk.account());
MEMBER_RULES.set("prompt_cache_retention", (walk, value) => walk.retention(value));

/** Returns the references in a whole body or in some of its fields. */
export function findReferences(body: { readonly [field: string]: unknown }): References {
  return sharedWalk.scan(body as JsonObject) ?? NO_REFERENCES;
}

/**
 * Returns the references after some fields were set or removed. References in unchanged fields are
 * kept and not searched again.
 */
export function updateReferences(
  named: References,
  edits: ReadonlyMap<string, unknown>,
): References {
  let edited: [string, unknown][] | undefined;
  for (const [field, value] of edits)
    if (!isEmptyValue(field, value)) (edited ??= []).push([field, value]);
  const now = edited ? findReferences(Object.fromEntries(edited)) : NO_REFERENCES;
  if (named.length === 0) return now;
  const left = named.filter(({ field }) => !edits.has(field));
  return now.length === 0 ? left : [...left, ...now];
}

/** Whether a field value cannot contain a reference. This is true for most edits. */
const isEmptyValue = (field: string, value: unknown): boolean =>
  typeof value !== "object" &&
  (!MEMBER_RULES.has(field) || (field === "model" && !String(value).includes(PRESET_PREFIX)));

const PRESET_PREFIX = "@preset/";

class ReferenceWalk {
  #references: Reference[] | undefined;
  #seen: Set<string> | undefined;
  readonly #path: (string | number)[] = [];

  scan(body: JsonObject): References | undefined {
    this.#path.length = 0;
    try {
      this.members(body, false);
      return this.#references;
    } finally {
      this.#references = this.#seen = undefined;
    }
  }

  /**
   * Visits the members of an object. `hosted` means that the object is part of a hosted tool's
   * declaration, where every member can be an instruction to the service that runs the tool.
   */
  members(of: JsonObject, hosted: boolean): void {
    for (const key in of) {
      const value = of[key];
      if (value === undefined || value === null || value === false || value === "") continue;
      const known = MEMBER_RULES.get(key);
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
      if (!hosted && FREE_TEXT_FIELDS.has(key)) return;
      this.#each(value as readonly Json[], TOOL_PLACES.has(key), hosted);
      return;
    }
    if (
      hosted ? key === "headers" : FREE_TEXT_FIELDS.has(key) || key === "input" || isRecord(key, of)
    )
      return;
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
    const hosted = hostedToolFeatures(tool);
    if (hosted) this.hosted(hosted);
    this.members(tool, hosted !== null);
  }

  state(word: StateReferenceRule, value: Json, holder: JsonObject): void {
    if (word.matches && !word.matches(value, holder)) return;
    const does = typeof word.effect === "string" ? word.effect : word.effect(value);
    if (word.member !== undefined) this.#path.push(word.member);
    this.#add(`${does} ${word.feature}`, (at) => ({
      ...at,
      type: "state",
      rule: word,
      effect: does,
      value,
    }));
    if (word.member !== undefined) this.#path.pop();
  }
  /**
   * Adds hosted-tool references. Tools in the top-level list and tools at deeper levels count
   * separately, because the number of tools at deeper levels is not limited.
   */
  hosted(features: readonly Feature[]): void {
    for (const feature of features)
      this.#add(`${feature} ${this.#path.length === 2}`, (at) => ({
        ...at,
        type: "hosted",
        feature,
      }));
  }
  cache(mark: Json): void {
    const ttl = typeof mark === "object" ? (mark as JsonObject)["ttl"] : undefined;
    const feature: Feature = `cache.${typeof ttl === "string" ? ttl.slice(0, 16) : "5m"}`;
    this.#add(feature, (at) => ({ ...at, type: "cache", feature }));
  }
  retention(value: Json): void {
    if (value === "24h")
      this.#add("extended", (at) => ({ ...at, type: "cache", feature: "cache.extended" }));
  }
  /**
   * Adds model references. The top-level `model` is the model that the request is for, so it is not
   * a reference.
   */
  models(name: string, value: Json, holder: JsonObject): void {
    if (name === "model" && this.#isRequest()) {
      const at = typeof value === "string" ? value.indexOf(PRESET_PREFIX) : -1;
      if (at >= 0) this.#model((value as string).slice(at), undefined);
      return;
    }
    for (const one of Array.isArray(value) ? (value as readonly Json[]) : [value])
      if (typeof one === "string" && one !== "") this.#model(one, holder["max_uses"]);
  }
  preset(value: Json): void {
    if (typeof value === "string") this.#model(`${PRESET_PREFIX}${value}`, undefined);
  }
  account(): void {
    // Top-level account fields are removed before the request is sent.
    if (this.#path.length > 1)
      this.#add(String(this.#path.at(-1)), (at) => ({ ...at, type: "account" }));
  }

  #model(model: string, uses: Opt<Json>): void {
    const place = uses === undefined ? "" : formatPath(this.#path);
    this.#add(`model ${model} ${place}`, (at) => ({ ...at, type: "model", model, maxUses: uses }));
  }

  #isRequest(): boolean {
    const { length, 0: first } = this.#path;
    return length === 1 || (length === 2 && first === "generateContentRequest");
  }

  #add(what: string, make: (at: { field: string; path: string }) => Reference): void {
    const field = String(this.#path[0]);
    const key = `${field}\n${what}`;
    if (this.#seen?.has(key)) return;
    (this.#seen ??= new Set()).add(key);
    (this.#references ??= []).push(make({ field, path: formatPath(this.#path) }));
    if (this.#references.length > MAX_REFERENCES)
      fail(
        "invalid",
        `The request refers to more than ${MAX_REFERENCES} tools, models, and stored objects.`,
        {
          param: field,
          code: "too_many_named",
        },
      );
  }
}

/**
 * One instance for all requests. The traversal is synchronous and keeps no part of a body after it
 * returns.
 */
const sharedWalk = new ReferenceWalk();

/** Whether a member holds the recorded result of a hosted tool, as part of the conversation. */
const isRecord = (key: string, of: JsonObject): boolean => {
  if (key === "from" || key === "to") return of["type"] === "fallback";
  if (key !== "content") return false;
  const type: Opt<Json> = of["type"];
  return typeof type === "string" && type.length > 12 && type.endsWith("_tool_result");
};

const formatPath = (path: readonly (string | number)[]): string =>
  path.reduce<string>(
    (text, step) =>
      typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`,
    "",
  );

/**
 * Returns the features that these references need: state that must be allowed, hosted tools, and
 * cache lifetimes.
 */
export function referencedFeatures(named: References): Set<Feature> {
  const features = new Set<Feature>();
  for (const one of named)
    if (one.type === "state") features.add(one.rule.feature);
    else if (one.type === "hosted" || one.type === "cache") features.add(one.feature);
  return features;
}

/** Returns the distinct models that the request names in addition to its own model. */
export const referencedModels = (named: References): readonly string[] =>
  named.length === 0
    ? NO_MODELS
    : [...new Set(named.flatMap((one) => (one.type === "model" ? [one.model] : [])))];

const NO_MODELS: readonly string[] = [];

// Rejects references to state that a provider stores. All clients of the gateway share the
// provider's key, so one client could reach another client's state. A reference is forwarded only
// if the operator relays it.

type StateReference = Extract<Reference, { type: "state" }>;

/** How a protocol formats its reference errors. */
export interface ReferenceErrorStyle {
  /** Error code for references without a specific code. */
  readonly code?: string;
  /** `field`: errors name only the top-level field. Default: the full path. */
  readonly param?: "path" | "field";
}

/** Which references may be sent. */
export interface RelayPermission {
  readonly stateMode: Opt<"reject" | "relay">;
  /** Whether the host has bound the continued response to the client's key. */
  readonly isBoundToKey: boolean;
}

/** Returns the first reference to stored state that may not be sent. */
export function findBlockedReference(
  named: References,
  { stateMode, isBoundToKey }: RelayPermission,
): StateReference | undefined {
  for (const one of named) {
    if (one.type !== "state" || one.effect !== "refers") continue;
    const { relayPolicy } = one.rule;
    if (
      stateMode === "relay" &&
      (relayPolicy === "passthrough" || (relayPolicy === "bound" && isBoundToKey))
    )
      continue;
    return one;
  }
  return undefined;
}

export function rejectReference(
  kept: StateReference,
  { code, param }: ReferenceErrorStyle = {},
): never {
  const { rule, value, field } = kept;
  const path = param === "field" ? field : kept.path;
  return fail(
    "unsupported",
    rule.message?.(value) ??
      `${path} is not supported: it refers to an object that is stored elsewhere. ${rule.alternative}`,
    { param: path, code: rule.code ?? code ?? "unsupported_parameter" },
  );
}

/**
 * Rejects references that may not be sent. Codecs call it last, in both passthrough and translated
 * mode. In relay mode the host makes this check.
 */
export function rejectBlockedReferences(
  out: Outgoing,
  state: Opt<"reject" | "relay">,
  spelling?: ReferenceErrorStyle,
) {
  if (state === "relay") return;
  const kept = findBlockedReference(referencesIn(out), { stateMode: state, isBoundToKey: false });
  if (kept) rejectReference(kept, spelling);
}

/**
 * Returns the references of an outgoing request. If the host has not searched it, only the fields
 * that can contain a reference are searched.
 */
export function referencesIn(out: Outgoing): References {
  if (out.references) return out.references();
  const body: Record<string, Opt<Field>> = {};
  for (const field of SCANNED_FIELDS) {
    const value = out.get(field);
    if (value !== undefined) body[field] = value;
  }
  return findReferences(body satisfies Body);
}

/**
 * Top-level fields that can contain tools, conversations, or whole requests, and all fields in the
 * tables.
 */
const SCANNED_FIELDS: readonly string[] = [
  ...Object.keys(STATE_RULES),
  ...HOSTED_FIELDS,
  "prompt_cache_options",
  "messages",
  "system",
  "input",
  "contents",
  "systemInstruction",
  "generateContentRequest",
  "tools",
];

// Converts token counts. In this protocol, the prompt includes cached tokens and the candidates
// exclude reasoning. Canonical units do not overlap, and reasoning is part of the output. Zeros are
// omitted, as in protobuf.
import type { Price } from "../../model/facts.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asList, asObject, asObjects, asText } from "../json-values.ts";

/** Upper limit of a plausible token count. Implausible counts are treated as missing. */
const MOST = 1e9;

const isPlausibleCount = (v: unknown): v is number =>
  Number.isSafeInteger(v) && (v as number) >= 0 && (v as number) <= MOST;

const count = (v: unknown): number => (isPlausibleCount(v) ? v : 0);

const COUNTS = [
  "promptTokenCount",
  "cachedContentTokenCount",
  "candidatesTokenCount",
  "thoughtsTokenCount",
  "toolUsePromptTokenCount",
] as const;

const DETAILS = ["promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails"] as const;

/**
 * Returns the largest reported counts. Every chunk reports for the whole response up to that point,
 * but not every chunk contains all counts.
 */
export function maxCounts(before: JsonObject, now: JsonObject): JsonObject {
  const most: Record<string, JsonObject[string]> = {};
  for (const name of DETAILS) most[name] = now[name] ?? before[name];
  for (const name of COUNTS) {
    const [was, is] = [before[name], now[name]];
    if (isPlausibleCount(was)) most[name] = Math.max(was, count(is));
    else most[name] = is ?? was;
  }
  return most;
}

export interface CountContext {
  price: Opt<Price>;
  /** Whether images were requested. */
  isImageRequest: boolean;
  /**
   * Whether the response has ended. After the end, a missing count is zero. Before the end, a
   * missing count is unknown.
   */
  isFinal: boolean;
}

/**
 * Returns the canonical usage. Audio and images are separate units only if the model's price has a
 * rate for them. Most models charge them at the text rate, and a unit without a price would leave
 * the whole call unpriced.
 */
export function usageOf(u: JsonObject, of: CountContext): Usage {
  const rated = (unit: Unit): boolean =>
    of.price?.lines.some((line) => line.unit === unit) ??
    (of.isImageRequest && unit === "image_out");
  const [prompt, cached, candidates, thoughts, tools] = COUNTS.map((name) => count(u[name])) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const read = Math.min(cached, prompt);
  const fresh = prompt - read + tools;
  const fed = (modality: string) =>
    Math.max(
      0,
      within(u["promptTokensDetails"], modality) - within(u["cacheTokensDetails"], modality),
    );
  const audioInput = rated("audio_in") ? Math.min(fed("AUDIO"), fresh) : 0;
  const seen = rated("image_in") ? Math.min(fed("IMAGE"), fresh - audioInput) : 0;
  const made = (modality: string) => within(u["candidatesTokensDetails"], modality);
  // If an image was requested and the type of the output is not reported, all output counts as an
  // image.
  const hasDetails = u["candidatesTokensDetails"] !== undefined || !of.isImageRequest;
  const drawn = rated("image_out")
    ? hasDetails
      ? Math.min(made("IMAGE"), candidates)
      : candidates
    : 0;
  const spoken = rated("audio_out") ? Math.min(made("AUDIO"), candidates - drawn) : 0;
  const written = of.isFinal || candidates + thoughts > 0;
  // A missing count is zero. A count that is present but implausible is treated as not reported.
  const isReported = (name: (typeof COUNTS)[number]) =>
    u[name] === undefined || isPlausibleCount(u[name]);
  return {
    ...(isReported("promptTokenCount") && { input: fresh - audioInput - seen }),
    cache_read: read,
    ...(written &&
      isReported("candidatesTokenCount") && {
        output: candidates - drawn - spoken + thoughts,
        reasoning: thoughts,
      }),
    ...(audioInput > 0 && { audio_in: audioInput }),
    ...(seen > 0 && { image_in: seen }),
    ...(drawn > 0 && { image_out: drawn }),
    ...(spoken > 0 && { audio_out: spoken }),
  };
}

function within(details: unknown, modality: string): number {
  let sum = 0;
  for (const raw of asList(details)) {
    const detail = asObject(raw);
    if (detail?.["modality"] === modality) sum += count(detail["tokenCount"]);
  }
  return sum;
}

// Counts runs of tools that Google hosts. No usage report contains them. Grounding metadata
// contains the queries, and parts contain the code that ran.

/** Tool units that can be counted from a response. */
export const COUNTED_TOOL_UNITS: readonly Unit[] = [
  "searches",
  "map_searches",
  "file_searches",
  "fetches",
  "code_sessions",
];

/** Maximum number of distinct queries. No real response has more queries. */
const MAX_QUERIES = 1_000;

/**
 * Counts tool runs. Chunks repeat their grounding metadata, so each query of a candidate counts
 * once.
 */
export class GeminiToolCounts {
  readonly #queries = new Set<string>();
  readonly #fetched = new Set<string>();
  #grounded = false;
  #mapped = false;
  #filed = false;
  #ran = false;

  chunk(chunk: JsonObject): void {
    for (const candidate of asObjects(chunk["candidates"])) this.#candidate(candidate);
  }

  get usage(): Usage {
    const searches = Math.max(this.#queries.size, this.#grounded ? 1 : 0);
    return {
      ...(searches > 0 && { searches }),
      ...(this.#mapped && { map_searches: 1 }),
      ...(this.#filed && { file_searches: 1 }),
      ...(this.#fetched.size > 0 && { fetches: this.#fetched.size }),
      ...(this.#ran && { code_sessions: 1 }),
    };
  }

  #candidate(candidate: JsonObject): void {
    for (const part of asList(asObject(candidate["content"])?.["parts"]))
      this.#ran ||= asObject(asObject(part)?.["executableCode"]) !== undefined;
    const index = Number(candidate["index"] ?? 0);
    const pages = asObject(candidate["urlContextMetadata"]);
    for (const page of asObjects(pages?.["urlMetadata"]))
      remember(this.#fetched, `${index} ${asText(page["retrievedUrl"]) ?? ""}`);
    const grounding = asObject(candidate["groundingMetadata"]);
    if (!grounding) return;
    for (const name of ["webSearchQueries", "imageSearchQueries"])
      for (const query of asList(grounding[name]))
        remember(this.#queries, `${index} ${name} ${asText(query) ?? ""}`);
    // Results without a listed query still required a search.
    this.#grounded ||= asObject(grounding["searchEntryPoint"]) !== undefined;
    this.#mapped ||= grounding["googleMapsWidgetContextToken"] !== undefined;
    for (const found of asObjects(grounding["groundingChunks"])) {
      this.#grounded ||= asObject(found["web"]) !== undefined;
      this.#mapped ||= asObject(found["maps"]) !== undefined;
      this.#filed ||= asObject(found["retrievedContext"]) !== undefined;
    }
  }
}

function remember(seen: Set<string>, one: string): void {
  if (seen.size < MAX_QUERIES) seen.add(one.slice(0, 1_024));
}

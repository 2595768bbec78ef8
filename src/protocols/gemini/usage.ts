// Token counts. On this wire the prompt includes what was read from a cache, and the candidates leave thoughts out;
// canonical units do not overlap, and thoughts lie inside the output. A zero is left out, as protobuf does.
import type { Price } from "../../model/facts.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asList, asObject } from "../json-values.ts";

/** No call has a billion tokens: what cannot be meant was not said. */
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

/** Every chunk reports for the whole answer so far, and not every chunk reports all of it: the most that was said holds. */
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
  /** Pictures are what was asked for. */
  isImageRequest: boolean;
  /** The end has been named: what was not counted is nothing. Before, it was only not counted yet. */
  isFinal: boolean;
}

/**
 * Sound and pictures are units of their own only where the model's price has a rate for them: most models read them at
 * the price of text, and a unit without a price would leave the whole call without one.
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
  // Where the model does not say what it wrote, and was asked for a picture, it wrote one.
  const hasDetails = u["candidatesTokensDetails"] !== undefined || !of.isImageRequest;
  const drawn = rated("image_out")
    ? hasDetails
      ? Math.min(made("IMAGE"), candidates)
      : candidates
    : 0;
  const spoken = rated("audio_out") ? Math.min(made("AUDIO"), candidates - drawn) : 0;
  const written = of.isFinal || candidates + thoughts > 0;
  // A zero is left out; what stands there and is no count was not said.
  const isSaid = (name: (typeof COUNTS)[number]) =>
    u[name] === undefined || isPlausibleCount(u[name]);
  return {
    ...(isSaid("promptTokenCount") && { input: fresh - audioInput - seen }),
    cache_read: read,
    ...(written &&
      isSaid("candidatesTokenCount") && {
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

// Converts usage reports of the Live API. Each report counts one generation of the model, with the
// whole conversation as its input: a report does not include earlier reports. (Measured by others
// on gemini-3.1-flash-live-preview and gemini-2.5-flash-native-audio: the reports of three turns
// have 162, 205, and 248 tokens, and the sum of all reports is what Google bills.)
import type { Price } from "../../model/facts.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asCount, asList, asObject, asText } from "../json-values.ts";
import { member } from "./message.ts";

/** Tokens by modality, for the input or the output of a report. */
type Tokens = { readonly [modality: string]: number };

/**
 * Returns the usage. Tokens whose type is not reported count as text. Audio and images are separate
 * units if the price has a rate for them, or if there is no price.
 */
export function readUsage(report: JsonObject, price: Opt<Price>): Usage {
  const rated = (unit: Unit): boolean =>
    price === undefined || price.lines.some((line) => line.unit === unit);
  const count = (...names: readonly string[]): number => {
    for (const name of names) {
      const found = asCount(member(report, name));
      if (found !== undefined) return found;
    }
    return 0;
  };
  const prompt = count("promptTokenCount");
  const tools = count("toolUsePromptTokenCount");
  const cached = Math.min(count("cachedContentTokenCount"), prompt);
  const made = count("responseTokenCount", "candidatesTokenCount");
  const thoughts = count("thoughtsTokenCount");
  const input = sum(
    tokensOf(report, "promptTokensDetails"),
    tokensOf(report, "toolUsePromptTokensDetails"),
  );
  const read = tokensOf(report, "cacheTokensDetails");
  const output = tokensOf(report, "responseTokensDetails", "candidatesTokensDetails");
  const audioTokens = rated("audio_in") ? Math.min(input["AUDIO"] ?? 0, prompt + tools) : 0;
  const seen = rated("image_in")
    ? Math.min((input["IMAGE"] ?? 0) + (input["VIDEO"] ?? 0), prompt + tools - audioTokens)
    : 0;
  const readAudio = rated("cache_read_audio")
    ? Math.min(read["AUDIO"] ?? 0, audioTokens, cached)
    : 0;
  const readImage = rated("cache_read_image")
    ? Math.min((read["IMAGE"] ?? 0) + (read["VIDEO"] ?? 0), seen, cached - readAudio)
    : 0;
  const readText = cached - readAudio - readImage;
  const spoken = rated("audio_out") ? Math.min(output["AUDIO"] ?? 0, made) : 0;
  // Without separate rates, cached audio and images are part of `cache_read`. They come off the
  // audio and images that were not cached, after the text.
  const freshText = Math.max(0, prompt + tools - audioTokens - seen - readText);
  const over = Math.max(0, readText - (prompt + tools - audioTokens - seen));
  const freshAudio = Math.max(0, audioTokens - readAudio - over);
  const freshImage = Math.max(0, seen - readImage - Math.max(0, over - (audioTokens - readAudio)));
  return {
    input: freshText,
    cache_read: readText,
    output: made - spoken + thoughts,
    reasoning: thoughts,
    ...(freshAudio > 0 && { audio_in: freshAudio }),
    ...(freshImage > 0 && { image_in: freshImage }),
    ...(readAudio > 0 && { cache_read_audio: readAudio }),
    ...(readImage > 0 && { cache_read_image: readImage }),
    ...(spoken > 0 && { audio_out: spoken }),
  };
}

/** Adds up the tokens of a list by type. The first list that is present counts. */
function tokensOf(report: JsonObject, ...names: readonly string[]): Tokens {
  const sums: Record<string, number> = { AUDIO: 0, IMAGE: 0, VIDEO: 0 };
  const list = names.map((name) => member(report, name)).find((found) => found !== undefined);
  for (const raw of asList(list)) {
    const detail = asObject(raw);
    const modality = asText(detail?.["modality"]);
    if (modality !== undefined && Object.hasOwn(sums, modality))
      sums[modality]! += asCount(member(detail, "tokenCount")) ?? 0;
  }
  return sums;
}

const sum = (a: Tokens, b: Tokens): Tokens =>
  Object.fromEntries(Object.keys(a).map((name) => [name, a[name]! + (b[name] ?? 0)]));

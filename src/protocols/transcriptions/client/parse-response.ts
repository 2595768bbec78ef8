// Parses a provider's response: JSON in several forms, or plain text.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { TranscriptItem } from "../../../model/operations/audio-requests.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import { bodyFormOf } from "../../../lib/media-type.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import {
  isObject,
  asList,
  asNumber,
  asObject,
  asObjects,
  parseObject,
  asText,
} from "../../json-values.ts";
import { usageOf } from "../usage.ts";

export const failTruncated = (): never =>
  fail("upstream", "The provider's response ended before it was complete.", { code: "truncated" });

const failNoText = (): never =>
  fail("upstream", "The provider returned no text.", { code: "bad_answer" });

export interface Transcript {
  readonly text: string;
  readonly items: readonly TranscriptItem[];
  readonly usage: Usage;
  readonly logprobs?: readonly Json[];
}

/**
 * Parses a response body. Captions and plain text are accepted as they are. Throws if a body is
 * declared as JSON but is not, or if it begins like JSON and is truncated.
 */
export function parseTranscriptBody(
  body: Buffer,
  headers: HeadersIn,
): Transcript & { readonly json: boolean } {
  const plain = /^text\//i.test(headers["content-type"] ?? "");
  const words = body.toString();
  const parsedJson = /^\s*\{/.test(words) ? parseObject(words) : undefined;
  if (parsedJson && !(plain && asText(parsedJson["text"]) === undefined))
    return { ...parseTranscript(parsedJson), json: true };
  if (!plain && /^\s*(?:\{|$)/.test(words)) failNoText();
  if (bodyFormOf(headers["content-type"]) === "document")
    return { text: unquoteText(words), items: [], usage: {}, json: false };
  return { text: words, items: [], usage: {}, json: false };
}

/** Returns the text of a JSON string, which is how some backends send plain text. */
function unquoteText(body: string): string {
  try {
    return asText(JSON.parse(body)) ?? failNoText();
  } catch {
    return failNoText();
  }
}

export function parseTranscript(response: JsonObject): Transcript {
  if (
    isObject(response["error"]) ||
    (asText(response["text"]) === undefined && response["error"] !== undefined)
  )
    throwParsedError(response);
  const words = asText(response["text"]) ?? failNoText();
  const logprobs = asList(response["logprobs"]);
  return {
    text: words,
    items: parseItems(response),
    usage: countsOf(response),
    ...(logprobs.length > 0 && { logprobs }),
  };
}

/**
 * Returns the usage. If a backend reports only the duration, the duration is billed, rounded up to
 * whole seconds.
 */
function countsOf(response: JsonObject): Usage {
  const usage = usageOf(asObject(response["usage"]));
  const duration =
    asNumber(response["duration"]) ?? Number(asText(response["duration"]) ?? Number.NaN);
  return Object.keys(usage).length > 0 || !(duration >= 0)
    ? usage
    : { seconds: Math.ceil(duration) };
}

/** Members that describe the whole transcript. */
const ABOUT = ["task", "language", "duration", "languages"] as const;

function parseItems(response: JsonObject): TranscriptItem[] {
  const about: Record<string, Json> = {};
  for (const name of ABOUT)
    if (response[name] !== undefined && response[name] !== null) about[name] = response[name];
  return [
    ...asObjects(response["segments"]).flatMap((one) => segmentOf(one) ?? []),
    ...asObjects(response["words"]).flatMap((one): TranscriptItem[] => {
      const [start, end, word] = [
        asNumber(one["start"]),
        asNumber(one["end"]),
        asText(one["word"]),
      ];
      return start === undefined || end === undefined || word === undefined
        ? []
        : [{ type: "word", start, end, text: word }];
    }),
    // Last, because a stream reports it at its end.
    ...(Object.keys(about).length > 0 ? [{ type: "transcript" as const, raw: about }] : []),
  ];
}

export function segmentOf({
  type: _,
  start,
  end,
  text: words,
  ...said
}: JsonObject): TranscriptItem | undefined {
  const [from, to, spoken] = [asNumber(start), asNumber(end), asText(words)];
  if (from === undefined || to === undefined || spoken === undefined) return undefined;
  return { type: "segment", start: from, end: to, text: spoken, raw: said };
}

/** Emits the usage and the finish event. */
export function emitEnd(emit: (event: ModelEvent) => void, usage: Usage): void {
  if (Object.keys(usage).length > 0) emit({ type: "usage", usage });
  emit({ type: "finish", reason: "stop" });
}

// What an upstream's answer says: in JSON of several forms, or in plain words.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { Passage } from "../../../model/sound.ts";
import type { Usage } from "../../../model/usage.ts";
import type { HeadersIn, Json, JsonObject } from "../../../model/values.ts";
import { formOf } from "../../../lib/media.ts";
import { throwFailure } from "../../failure/failure.ts";
import { isObject, list, number, object, objects, parsed, text } from "../../json.ts";
import { usageOf } from "../usage.ts";

export const truncated = (): never =>
  fail("upstream", "The provider ended before its finish.", { code: "truncated" });

const wordless = (): never =>
  fail("upstream", "The provider answered without a text.", { code: "bad_answer" });

export interface Transcript {
  readonly text: string;
  readonly passages: readonly Passage[];
  readonly usage: Usage;
  readonly logprobs?: readonly Json[];
}

/** Captions and plain words are a text of their own; what is called JSON and is none, or begins so and was cut off, is no answer. */
export function transcriptIn(
  body: Buffer,
  headers: HeadersIn,
): Transcript & { readonly json: boolean } {
  const plain = /^text\//i.test(headers["content-type"] ?? "");
  const words = body.toString();
  const said = /^\s*\{/.test(words) ? parsed(words) : undefined;
  if (said && !(plain && text(said["text"]) === undefined))
    return { ...transcriptOf(said), json: true };
  if (!plain && /^\s*(?:\{|$)/.test(words)) wordless();
  if (formOf(headers["content-type"]) === "document")
    return { text: quoted(words), passages: [], usage: {}, json: false };
  return { text: words, passages: [], usage: {}, json: false };
}

/** Plain words, as some hosts write them: a text of JSON. */
function quoted(body: string): string {
  try {
    return text(JSON.parse(body)) ?? wordless();
  } catch {
    return wordless();
  }
}

export function transcriptOf(said: JsonObject): Transcript {
  if (isObject(said["error"]) || (text(said["text"]) === undefined && said["error"] !== undefined))
    throwFailure(said);
  const words = text(said["text"]) ?? wordless();
  const logprobs = list(said["logprobs"]);
  return {
    text: words,
    passages: passagesOf(said),
    usage: countsOf(said),
    ...(logprobs.length > 0 && { logprobs }),
  };
}

/** A host that says how long it is and counts nothing bills that. */
function countsOf(said: JsonObject): Usage {
  const usage = usageOf(object(said["usage"]));
  const duration = number(said["duration"]) ?? Number(text(said["duration"]) ?? Number.NaN);
  return Object.keys(usage).length > 0 || !(duration >= 0)
    ? usage
    : { seconds: Math.ceil(duration) };
}

/** What holds for all of it. */
const ABOUT = ["task", "language", "duration", "languages"] as const;

function passagesOf(said: JsonObject): Passage[] {
  const about: Record<string, Json> = {};
  for (const name of ABOUT)
    if (said[name] !== undefined && said[name] !== null) about[name] = said[name];
  return [
    ...objects(said["segments"]).flatMap((one) => segmentOf(one) ?? []),
    ...objects(said["words"]).flatMap((one): Passage[] => {
      const [start, end, word] = [number(one["start"]), number(one["end"]), text(one["word"])];
      return start === undefined || end === undefined || word === undefined
        ? []
        : [{ type: "word", start, end, text: word }];
    }),
    // Last, since a stream says it at its end.
    ...(Object.keys(about).length > 0 ? [{ type: "whole" as const, said: about }] : []),
  ];
}

export function segmentOf({
  type: _,
  start,
  end,
  text: words,
  ...said
}: JsonObject): Passage | undefined {
  const [from, to, spoken] = [number(start), number(end), text(words)];
  if (from === undefined || to === undefined || spoken === undefined) return undefined;
  return { type: "segment", start: from, end: to, text: spoken, said };
}

/** Counts, and the end. */
export function finishing(emit: (event: ModelEvent) => void, usage: Usage): void {
  if (Object.keys(usage).length > 0) emit({ type: "usage", usage });
  emit({ type: "finish", reason: "stop" });
}

// An answer in one piece, in the form that the client asked for.
import { fail } from "../../../model/error.ts";
import type { ModelAnswer } from "../../../model/event.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { number, present } from "../../json.ts";
import { usageTo } from "../usage.ts";
import { formatIn } from "../words.ts";
import { srt, vtt } from "./captions.ts";
import { measured, passagesIn, spoken, worded, type Passages } from "./passages.ts";

export function whole(answer: ModelAnswer, to: Pick<AnswerContext, "body">): JsonObject | Buffer {
  const text = textOf(answer);
  const passages = passagesIn(answer.items);
  const usage = usageTo(answer.usage);
  switch (formatIn(to.body)) {
    case "text":
      return Buffer.from(text.endsWith("\n") ? text : `${text}\n`);
    case "srt":
      return captions(text, passages, srt);
    case "vtt":
      return captions(text, passages, vtt);
    case "verbose_json":
      return present({ ...verbose(text, passages), usage });
    case "diarized_json": {
      const segments = passages.segments.map(spoken);
      return present({ ...head(passages), text, segments, usage });
    }
    default:
      return present({
        text,
        languages: passages.about["languages"],
        logprobs: logprobsOf(answer),
        usage,
      });
  }
}

const textOf = ({ blocks }: ModelAnswer): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "")).join("");

function logprobsOf({ blocks }: ModelAnswer): readonly Json[] | undefined {
  const all = blocks.flatMap((block) => (block.type === "text" ? (block.logprobs ?? []) : []));
  return all.length > 0 ? all : undefined;
}

/** A host that was asked for captions and gave a text gave captions. */
function captions(
  text: string,
  { segments }: Passages,
  write: (segments: Passages["segments"]) => string,
): Buffer {
  if (segments.length === 0 && text !== "" && !text.includes("-->"))
    fail("upstream", "The provider did not say when it was said.", { code: "times_missing" });
  return Buffer.from(segments.length === 0 && text !== "" ? text : write(segments));
}

function verbose(text: string, passages: Passages): JsonObject {
  const { segments, words } = passages;
  return {
    ...head(passages),
    language: passages.about["language"] ?? "",
    text,
    segments: segments.map(measured),
    ...(words.length > 0 && { words: words.map(worded) }),
  };
}

const head = ({ about, segments, words }: Passages): JsonObject => ({
  task: about["task"] ?? "transcribe",
  duration: number(about["duration"]) ?? segments.at(-1)?.end ?? words.at(-1)?.end ?? 0,
});

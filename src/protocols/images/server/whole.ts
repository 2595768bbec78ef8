// An answer that is one JSON text.
import type { ModelAnswer } from "../../../model/event.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import { present } from "../../json.ts";
import { usageTo } from "../usage.ts";
import { described, item, revised } from "./item.ts";

export function whole(answer: ModelAnswer, to: AnswerContext): JsonObject {
  const url = to.body["response_format"] === "url";
  const pictures = answer.blocks.flatMap((b) =>
    b.type === "image" ? [{ media: b.media, note: b.note }] : [],
  );
  const facts = pictures.map(({ media }) => described(media));
  return present({
    created: to.created,
    // Told of all at once, so only where it is true of all.
    output_format: agreed(facts.map((f) => f.output_format)),
    size: agreed(facts.map((f) => f.size)),
    data: pictures.map(({ media, note }) => ({ ...item(media, url), ...revised(note) })),
    usage: usageTo(answer.usage),
  });
}

const agreed = (values: readonly Opt<string>[]): Opt<string> =>
  values.every((v) => v === values[0]) ? values[0] : undefined;

// Encodes a non-streaming response.
import type { ModelResponse } from "../../../model/event.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { omitUndefined } from "../../json-values.ts";
import { usageTo } from "../usage.ts";
import { imageFormat, imageItem, revisedPrompt } from "./image-item.ts";

export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const url = to.body["response_format"] === "url";
  const pictures = answer.blocks.flatMap((b) =>
    b.type === "image" ? [{ media: b.media, note: b.note }] : [],
  );
  const facts = pictures.map(({ media }) => imageFormat(media));
  return omitUndefined({
    created: to.created,
    // These members describe all images, so they are set only if all images agree.
    output_format: agreed(facts.map((f) => f.output_format)),
    size: agreed(facts.map((f) => f.size)),
    data: pictures.map(({ media, note }) => ({ ...imageItem(media, url), ...revisedPrompt(note) })),
    usage: usageTo(answer.usage),
  });
}

const agreed = (values: readonly Opt<string>[]): Opt<string> =>
  values.every((v) => v === values[0]) ? values[0] : undefined;

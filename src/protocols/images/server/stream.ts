// An answer for a client of this protocol, whole or as a stream.
import type { ModelAnswer, ModelEvent } from "../../../model/event.ts";
import type { Media } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { present, text } from "../../json.ts";
import { base64Of, dataUrl } from "../../media.ts";
import { failure } from "./fault.ts";
import { formatOf, mimeOf, sniff } from "../../sniff.ts";
import { usageTo } from "../usage.ts";

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

/** Where the wanted form is not at hand, the other one is better than none. */
function item(media: Media, url: boolean): JsonObject {
  if ("url" in media) return { url: media.url };
  if (url) return { url: dataUrl(media, mimeOf(media)) };
  return { b64_json: base64Of(media) };
}

const revised = (note: Opt<string>): JsonObject => (note ? { revised_prompt: note } : {});

function described(media: Media): { output_format?: Opt<string>; size?: Opt<string> } {
  const seen = sniff(media);
  return {
    output_format: seen && formatOf(seen.mime),
    size: seen?.size && `${seen.size.width}x${seen.size.height}`,
  };
}

const agreed = (values: readonly Opt<string>[]): Opt<string> =>
  values.every((v) => v === values[0]) ? values[0] : undefined;

/**
 * Partial images as they come, `completed` once for each image. The last one waits for the counts, which it carries:
 * it is the end of the answer.
 */
export function stream(write: (text: string) => void, to: AnswerContext): Encoder {
  let waiting: { media: Media; note?: Opt<string> } | undefined;
  let usage: Usage | undefined;
  let partials = 0;
  const put = (event: "partial_image" | "completed", media: Media, more: JsonObject): void => {
    const type = `image_generation.${event}`;
    const facts = described(media);
    const data = present({
      type,
      ...item(media, false),
      created_at: to.created,
      size: facts.size ?? text(to.body["size"]) ?? "auto",
      quality: text(to.body["quality"]) ?? "auto",
      background: text(to.body["background"]) ?? "auto",
      output_format: facts.output_format ?? "png",
      ...more,
    });
    write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const complete = (more: JsonObject): void => {
    if (waiting) put("completed", waiting.media, { ...revised(waiting.note), ...more });
    waiting = undefined;
  };
  return {
    event(e: ModelEvent) {
      switch (e.type) {
        case "media":
          complete({});
          if (e.partial) return put("partial_image", e.media, { partial_image_index: partials++ });
          waiting = e;
          partials = 0;
          return;
        case "usage":
          usage = e.usage;
          return;
        case "finish":
          return complete({ usage: usage && usageTo(usage) });
      }
    },
    fail: (f) => write(failure(f, to)),
  };
}

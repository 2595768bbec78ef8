// Encodes a response as a stream of events.
import type { ModelEvent } from "../../../model/event.ts";
import type { Media } from "../../../model/request.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { omitUndefined, asText } from "../../json-values.ts";
import { usageTo } from "../usage.ts";
import { streamErrorEvent } from "./fault.ts";
import { imageFormat, imageItem, revisedPrompt } from "./image-item.ts";

/**
 * Creates an encoder that writes partial images immediately and one `completed` event per image.
 * The last `completed` event waits for the usage that it contains, because it ends the response.
 */
export function createEncoder(
  write: (text: string) => void,
  to: ResponseContext,
  prefix: "image_generation" | "image_edit" = "image_generation",
): Encoder {
  let waiting: { media: Media; note?: Opt<string> } | undefined;
  let usage: Usage | undefined;
  let partials = 0;
  const put = (event: "partial_image" | "completed", media: Media, more: JsonObject): void => {
    const type = `${prefix}.${event}`;
    const facts = imageFormat(media);
    const data = omitUndefined({
      type,
      ...imageItem(media, false),
      created_at: to.created,
      size: facts.size ?? asText(to.body["size"]) ?? "auto",
      quality: asText(to.body["quality"]) ?? "auto",
      background: asText(to.body["background"]) ?? "auto",
      output_format: facts.output_format ?? "png",
      ...more,
    });
    write(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const complete = (more: JsonObject): void => {
    if (waiting) put("completed", waiting.media, { ...revisedPrompt(waiting.note), ...more });
    waiting = undefined;
  };
  return {
    writeEvent(e: ModelEvent) {
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
    writeFault: (f) => write(streamErrorEvent(f, to)),
  };
}

// Decodes a stream into events: one block per image.
import { BOUNDS } from "../../../lib/bounds.ts";
import { parseEventObject } from "../../parse-event-object.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { mergeUsage, UNITS, type Usage } from "../../../model/usage.ts";
import type { Decoder } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asObject, omitUndefined, asText } from "../../json-values.ts";
import { sniffImage, type ImageHead } from "../../sniff-image.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { parseTokenUsage, usageSeen } from "../usage.ts";
import { parseImage } from "./image-media.ts";

type Emit = (event: ModelEvent) => void;

export const MAX_EVENT_BYTES = BOUNDS.imageEvent.max;

/**
 * Creates a decoder for partial images and one `completed` event per image. The protocol does not
 * state how many images follow, so the response ends when the stream ends.
 */
export function createDecoder(emit: Emit): Decoder {
  const seen: (ImageHead | undefined)[] = [];
  let index = -1;
  let open = false;
  let usage: Usage | undefined;
  const opened = (): void => {
    if (index < 0) emit({ type: "start" });
    if (open) return;
    open = true;
    emit({ type: "open", index: ++index, block: { type: "image" } });
  };
  const decoder = createEventDecoder(
    (_event, data) => {
      if (data === "[DONE]") return;
      const parsedEvent = parseEventObject(data);
      const type = asText(parsedEvent["type"]) ?? "";
      if (type === "error" || asObject(parsedEvent["error"])) throwParsedError(parsedEvent);
      const media = parseImage(parsedEvent);
      if (!media) return;
      opened();
      if (type.endsWith(".partial_image"))
        return emit({ type: "media", index, media, partial: true });
      seen.push(sniffImage(media));
      emit(
        omitUndefined({
          type: "media" as const,
          index,
          media,
          note: asText(parsedEvent["revised_prompt"]),
        }),
      );
      emit({ type: "close", index });
      open = false;
      usage = addUsage(usage, parseTokenUsage(asObject(parsedEvent["usage"])));
    },
    { maxLineBytes: MAX_EVENT_BYTES, maxEventBytes: MAX_EVENT_BYTES },
  );
  return {
    push: decoder.push,
    end() {
      decoder.end();
      if (seen.length === 0 || open)
        fail("upstream", "The provider's stream ended before its image was complete.", {
          code: "truncated",
        });
      emit(usage ? { type: "usage", usage } : usageSeen(undefined, seen));
      emit({ type: "finish", reason: "stop" });
    },
  };
}

/** Adds usage reports. Each image of a stream reports its own usage. */
export function addUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (!a || !b) return a ?? b;
  const both: { -readonly [U in keyof Usage]: Usage[U] } = mergeUsage(a, b);
  for (const unit of UNITS)
    if (a[unit] !== undefined && b[unit] !== undefined) both[unit] = a[unit] + b[unit];
  return both;
}

// Decodes a non-streaming response into events: one block per image.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { asList, asObject, parseObject, omitUndefined, asText } from "../../json-values.ts";
import { sniffImage } from "../../sniff-image.ts";
import { usageSeen } from "../usage.ts";
import { parseImage } from "./image-media.ts";

type Emit = (event: ModelEvent) => void;

export function decodeResponse(body: Buffer, emit: Emit, of: CallContext): void {
  const answer = parseObject(body.toString("utf8"));
  if (!answer)
    return fail("upstream", "The provider's response is not a JSON object.", {
      code: "bad_answer",
    });
  if (answer["error"] !== undefined && answer["error"] !== null && !answer["data"])
    throwParsedError(answer);
  const items = asList(answer["data"]).map((item) => asObject(item) ?? {});
  const pictures = items.flatMap((item) => {
    const media = parseImage(item);
    return media ? [{ media, note: asText(item["revised_prompt"]) }] : [];
  });
  if (pictures.length === 0) failNoImage(items);
  if (pictures.length < items.length) of.reportLoss("data", "dropped", "image_missing");
  emit({ type: "start" });
  pictures.forEach(({ media, note }, index) => {
    emit({ type: "open", index, block: { type: "image" } });
    emit(omitUndefined({ type: "media" as const, index, media, note }));
    emit({ type: "close", index });
  });
  emit(
    usageSeen(
      asObject(answer["usage"]),
      pictures.map(({ media }) => sniffImage(media)),
    ),
  );
  emit({ type: "finish", reason: "stop" });
}

/** Throws if no image was returned, with the reason of the first error if there is one. */
function failNoImage(items: readonly JsonObject[]): never {
  const error = items.map((item) => asObject(item["error"])).find((e) => e !== undefined);
  if (error) throwParsedError({ error });
  if (items.some((item) => item["respect_moderation"] === false))
    fail("content_policy", "The provider's moderation withheld the image.", {
      code: "moderation_blocked",
    });
  return fail("upstream", "The provider returned no image.", { code: "no_image" });
}

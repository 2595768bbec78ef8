// A host's answer that is one JSON text, as events: one image block each.
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, object, parsed, present, text } from "../../json.ts";
import { sniff } from "../../sniff.ts";
import { usageSeen } from "../usage.ts";
import { picture } from "./picture.ts";

type Emit = (event: ModelEvent) => void;

export function whole(body: Buffer, emit: Emit, of: CallContext): void {
  const answer = parsed(body.toString("utf8"));
  if (!answer)
    return fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" });
  if (answer["error"] !== undefined && answer["error"] !== null && !answer["data"])
    throwFailure(answer);
  const items = list(answer["data"]).map((item) => object(item) ?? {});
  const pictures = items.flatMap((item) => {
    const media = picture(item);
    return media ? [{ media, note: text(item["revised_prompt"]) }] : [];
  });
  if (pictures.length === 0) nothing(items);
  if (pictures.length < items.length) of.lose("data", "dropped", "image_missing");
  emit({ type: "start" });
  pictures.forEach(({ media, note }, index) => {
    emit({ type: "open", index, block: { type: "image" } });
    emit(present({ type: "media" as const, index, media, note }));
    emit({ type: "close", index });
  });
  emit(
    usageSeen(
      object(answer["usage"]),
      pictures.map(({ media }) => sniff(media)),
    ),
  );
  emit({ type: "finish", reason: "stop" });
}

/** No picture at all: the reason of the first, or that there is none. */
function nothing(items: readonly JsonObject[]): never {
  const error = items.map((item) => object(item["error"])).find((e) => e !== undefined);
  if (error) throwFailure({ error });
  if (items.some((item) => item["respect_moderation"] === false))
    fail("content_policy", "The provider's moderation withheld the image.", {
      code: "moderation_blocked",
    });
  return fail("upstream", "The provider answered without an image.", { code: "no_image" });
}

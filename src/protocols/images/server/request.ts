// A client's words in the common vocabulary.
import type { ImageRequest } from "../../../model/request.ts";
import type { Body, JsonObject } from "../../../model/values.ts";
import { flag, number, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { COMMON, ID, OWN } from "../words.ts";

export function request(body: Body): ImageRequest {
  const own = picked(body, (field) => OWN.includes(field));
  return present({
    kind: "image" as const,
    model: text(body["model"]) ?? "",
    prompt: text(body["prompt"]) ?? "",
    stream: flag(body["stream"]) ?? false,
    n: number(body["n"]) ?? 1,
    refs: [],
    want: body["response_format"] === "url" ? ("url" as const) : ("bytes" as const),
    size: text(body["size"]),
    quality: text(body["quality"]),
    background: text(body["background"]),
    format: text(body["output_format"]),
    compression: number(body["output_compression"]),
    seed: number(body["seed"]),
    partials: number(body["partial_images"]),
    user: text(body["user"]),
    rest: picked(body, (field) => !COMMON.includes(field) && !OWN.includes(field)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** A null is a field that was left out, to every SDK of this protocol. */
function picked(body: Body, wanted: (field: string) => boolean): JsonObject {
  return unknownIn(body, (field) => body[field] === null || !wanted(field));
}

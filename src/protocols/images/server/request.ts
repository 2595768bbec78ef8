// A client's words in the common vocabulary.
import type { ImageRequest } from "../../../model/request.ts";
import { isFilePart, type Body, type JsonObject } from "../../../model/values.ts";
import { isOn, numeric, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { COMMON, ID, OWN, PICTURES } from "../words.ts";
import { maskIn, refsIn } from "./pictures.ts";

/** `edits`: pictures are brought to be changed. Elsewhere those fields are a host's own. */
export function request(body: Body, edits: boolean): ImageRequest {
  // A file that is newer than us is for this wire alone: no other is a form.
  const isOwn = (field: string) => OWN.includes(field) || [body[field]].flat().some(isFilePart);
  const known = (field: string) => COMMON.includes(field) || (edits && PICTURES.includes(field));
  const own = picked(body, (field) => !known(field) && isOwn(field));
  return present({
    kind: "image" as const,
    model: text(body["model"]) ?? "",
    prompt: text(body["prompt"]) ?? "",
    stream: isOn(body["stream"]),
    n: numeric(body["n"]) ?? 1,
    refs: edits ? refsIn(body) : [],
    mask: edits ? maskIn(body) : undefined,
    want: body["response_format"] === "url" ? ("url" as const) : ("bytes" as const),
    size: text(body["size"]),
    quality: text(body["quality"]),
    background: text(body["background"]),
    format: text(body["output_format"]),
    compression: numeric(body["output_compression"]),
    seed: numeric(body["seed"]),
    partials: numeric(body["partial_images"]),
    user: text(body["user"]),
    rest: picked(body, (field) => !known(field) && !isOwn(field)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** A null is a field that was left out, to every SDK of this protocol. */
function picked(body: Body, wanted: (field: string) => boolean): JsonObject {
  return unknownIn(body, (field) => body[field] === null || !wanted(field));
}

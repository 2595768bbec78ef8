// Decodes a request body into the common form.
import type { ImageRequest } from "../../../model/request.ts";
import { isFilePart, type Body, type JsonObject } from "../../../model/values.ts";
import { isTruthyFlag, parseNumber, omitUndefined, asText } from "../../json-values.ts";
import { unknownTopLevelFields } from "../../unknown-fields.ts";
import { COMMON_FIELDS, ID, PROTOCOL_FIELDS, IMAGE_FIELDS } from "../constants.ts";
import { parseMask, parseInputImages } from "./input-images.ts";

/**
 * Decodes a request.
 *
 * @param edits Whether the route edits images. On other routes, the image fields belong to a
 *   backend's own extension.
 */
export function decodeRequest(body: Body, edits: boolean): ImageRequest {
  // A file in an unknown field can be sent only in this protocol, because no other protocol uses
  // forms.
  const isOwn = (field: string) =>
    PROTOCOL_FIELDS.includes(field) || [body[field]].flat().some(isFilePart);
  const known = (field: string) =>
    COMMON_FIELDS.includes(field) || (edits && IMAGE_FIELDS.includes(field));
  const own = picked(body, (field) => !known(field) && isOwn(field));
  return omitUndefined({
    operation: "image" as const,
    model: asText(body["model"]) ?? "",
    prompt: asText(body["prompt"]) ?? "",
    stream: isTruthyFlag(body["stream"]),
    n: parseNumber(body["n"]) ?? 1,
    inputImages: edits ? parseInputImages(body) : [],
    mask: edits ? parseMask(body) : undefined,
    responseFormat: body["response_format"] === "url" ? ("url" as const) : ("bytes" as const),
    size: asText(body["size"]),
    quality: asText(body["quality"]),
    background: asText(body["background"]),
    format: asText(body["output_format"]),
    compression: parseNumber(body["output_compression"]),
    seed: parseNumber(body["seed"]),
    partialImages: parseNumber(body["partial_images"]),
    user: asText(body["user"]),
    rest: picked(body, (field) => !known(field) && !isOwn(field)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** Returns the selected fields. All SDKs of this protocol treat null as an omitted field. */
function picked(body: Body, wanted: (field: string) => boolean): JsonObject {
  return unknownTopLevelFields(body, (field) => body[field] === null || !wanted(field));
}

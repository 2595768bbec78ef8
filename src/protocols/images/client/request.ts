// Encodes a request as a body of this protocol.
import { fail } from "../../../model/error.ts";
import type { ImageRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { EDITS, ID } from "../constants.ts";
import { toFormFields } from "./input-images.ts";

/**
 * Encodes a request in OpenAI's form. `prepare` adapts it to the backend's dialect, in both modes.
 */
export function encodeRequest(
  r: ImageRequest,
  of: Pick<CallContext, "model" | "stream" | "reportLoss" | "action">,
  brought: (r: ImageRequest, of: Pick<CallContext, "model">) => Body = toFormFields,
): Body {
  if (r.partialImages && !of.stream) of.reportLoss("partial_images", "dropped");
  const edits = of.action === EDITS;
  if (!edits && (r.inputImages.length > 0 || r.mask))
    fail(
      "unsupported",
      "This endpoint generates images from text only and accepts no input images.",
      {
        param: "image",
      },
    );
  if (edits && r.inputImages.length === 0)
    fail("unsupported", "This endpoint requires an input image.", { param: "image" });
  return omitUndefined({
    model: of.model,
    ...(edits && brought(r, of)),
    prompt: r.prompt,
    n: r.n === 1 ? undefined : r.n,
    size: r.size,
    quality: r.quality,
    background: r.background,
    output_format: r.format,
    output_compression: r.compression,
    seed: r.seed,
    user: r.user,
    response_format: r.responseFormat === "url" ? "url" : "b64_json",
    stream: of.stream ? true : undefined,
    partial_images: of.stream ? r.partialImages : undefined,
    ...asObject(r.ext[ID]),
  });
}

// A request in this wire's words.
import { fail } from "../../../model/error.ts";
import type { ImageRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { object, present } from "../../json.ts";
import { EDITS, ID } from "../words.ts";
import { pictures } from "./pictures.ts";

/** As OpenAI has it; what a host says differently is the dialect's, in `prepare`, for both lanes alike. */
export function request(
  r: ImageRequest,
  of: Pick<CallContext, "model" | "stream" | "lose" | "name">,
  brought: (r: ImageRequest, of: Pick<CallContext, "model">) => Body = pictures,
): Body {
  if (r.partials && !of.stream) of.lose("partial_images", "dropped");
  const edits = of.name === EDITS;
  if (!edits && (r.refs.length > 0 || r.mask))
    fail("unsupported", "This endpoint makes images from words alone, not from other images.", {
      param: "image",
    });
  if (edits && r.refs.length === 0)
    fail("unsupported", "This endpoint changes images, and none came.", { param: "image" });
  return present({
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
    response_format: r.want === "url" ? "url" : "b64_json",
    stream: of.stream ? true : undefined,
    partial_images: of.stream ? r.partials : undefined,
    ...object(r.ext[ID]),
  });
}

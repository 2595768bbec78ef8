// Adapts an outgoing request to the backend's dialect, in both modes, and checks it against the
// catalog's model metadata.
import { ownEntry } from "../../own-entry.ts";
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { parseNumber, asText } from "../../json-values.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import type { ImageTraits } from "../dialect.ts";
import { requireSupported, ratioOf, sizeOf } from "../size.ts";

export function prepare(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  // An image stored in a provider account can be read with its key, and all clients share the
  // gateway's key.
  rejectBlockedReferences(out, of.stateMode);
  // The quality is converted to the backend's name first, because the catalog contains these names.
  const quality = asText(out.get("quality"));
  const other = quality === undefined ? undefined : ownEntry(traits.qualityNames ?? {}, quality);
  if (other !== undefined) out.set("quality", other);
  requireSupported(
    {
      n: parseNumber(out.get("n")),
      size: asText(out.get("size")),
      quality: asText(out.get("quality")),
      format: asText(out.get("output_format")),
    },
    of.info,
  );
  if (traits.maxImages !== undefined && (parseNumber(out.get("n")) ?? 1) > traits.maxImages)
    fail("unsupported", `${of.model} generates at most ${traits.maxImages} images at a time.`, {
      param: "n",
    });
  adaptResponseFormat(out, traits);
  adaptSize(out, of, traits);
  for (const field of traits.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    // A null or `auto` has no effect, so dropping it is not reported.
    if (value !== null && value !== "auto") of.reportLoss(field, "dropped");
  }
}

/**
 * Sets the response format wherever the backend accepts it. If it is unset, clients expect bytes,
 * but half of the backends return URLs.
 */
function adaptResponseFormat(out: Outgoing, { responseFormat = "b64_json" }: ImageTraits): void {
  const url = out.get("response_format") === "url";
  if (responseFormat === "bytes" || responseFormat === "url") out.remove("response_format");
  else out.set("response_format", url ? "url" : responseFormat);
}

function adaptSize(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  if ((traits.size ?? "wxh") === "wxh") return;
  const asked = out.get("size");
  const size = sizeOf(asText(asked));
  if (asked !== undefined) out.remove("size");
  if (!size) return;
  if (traits.size === "width_height") {
    out.set("width", size.width);
    out.set("height", size.height);
    return;
  }
  out.set("aspect_ratio", ratioOf(size, traits.ratios));
  const longer = Math.max(size.width, size.height);
  const words = traits.resolutions ?? [];
  const word = (words.find(([, upTo]) => longer <= upTo) ?? words[words.length - 1])?.[0];
  if (word !== undefined) out.set("resolution", word);
  of.reportLoss("size", "approximated", "size_approximated");
}

// The dialect, in both modes: what the catalog knows of the model is checked, and what a host says differently is said so.
import { ownEntry } from "../../own-entry.ts";
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { parseNumber, asText } from "../../json-values.ts";
import { rejectBlockedReferences } from "../../references/index.ts";
import type { ImageTraits } from "../dialect.ts";
import { requireSupported, ratioOf, sizeOf } from "../size.ts";

export function prepare(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  // A picture that an account keeps is reached with its key, and all clients here share ours.
  rejectBlockedReferences(out, of.stateMode);
  // In the host's own words, which is how the catalog knows them.
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
    fail("unsupported", `${of.model} makes at most ${traits.maxImages} images at a time.`, {
      param: "n",
    });
  adaptResponseFormat(out, traits);
  adaptSize(out, of, traits);
  for (const field of traits.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    // A client that asked for nothing in particular loses nothing.
    if (value !== null && value !== "auto") of.reportLoss(field, "dropped");
  }
}

/** Absent means bytes to our clients, and an address to half of the hosts: so it is always said where it can be. */
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

// The dialect, on both lanes: what the catalogue knows of the model is checked, and what a host says differently is said so.
import { under } from "../../table.ts";
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { numeric, text } from "../../json.ts";
import { refuseKept } from "../../look/index.ts";
import type { ImageTraits } from "../dialect.ts";
import { fitting, ratioOf, sizeOf } from "../size.ts";

export function prepare(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  // A picture that an account keeps is reached with its key, and all clients here share ours.
  refuseKept(out, of.state);
  // In the host's own words, which is how the catalogue knows them.
  const quality = text(out.get("quality"));
  const other = quality === undefined ? undefined : under(traits.qualities ?? {}, quality);
  if (other !== undefined) out.set("quality", other);
  fitting(
    {
      n: numeric(out.get("n")),
      size: text(out.get("size")),
      quality: text(out.get("quality")),
      format: text(out.get("output_format")),
    },
    of.info,
  );
  if (traits.most !== undefined && (numeric(out.get("n")) ?? 1) > traits.most)
    fail("unsupported", `${of.model} makes at most ${traits.most} images at a time.`, {
      param: "n",
    });
  form(out, traits);
  size(out, of, traits);
  for (const field of traits.drop ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    // A client that asked for nothing in particular loses nothing.
    if (value !== null && value !== "auto") of.lose(field, "dropped");
  }
}

/** Absent means bytes to our clients, and an address to half of the hosts: so it is always said where it can be. */
function form(out: Outgoing, { responseFormat = "b64_json" }: ImageTraits): void {
  const url = out.get("response_format") === "url";
  if (responseFormat === "bytes" || responseFormat === "url") out.drop("response_format");
  else out.set("response_format", url ? "url" : responseFormat);
}

function size(out: Outgoing, of: CallContext, traits: ImageTraits): void {
  if ((traits.size ?? "wxh") === "wxh") return;
  const asked = out.get("size");
  const size = sizeOf(text(asked));
  if (asked !== undefined) out.drop("size");
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
  of.lose("size", "approximated", "size_approximated");
}

// Converts the usage of image requests: tokens if the backend reports them, else images and
// megapixels, which such backends bill.
import type { UsageReport } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { JsonObject, Opt } from "../../model/values.ts";
import { asNumber, asObject, omitUndefined } from "../json-values.ts";
import type { ImageHead } from "../sniff-image.ts";

/** Ticks per nanodollar. A tick is one ten-thousandth of a microdollar. */
const TICKS_PER_NANO = 10;

/** Returns the reported tokens, or undefined if the response reports no tokens. */
export function parseTokenUsage(report: Opt<JsonObject>): Usage | undefined {
  const read = asNumber(report?.["input_tokens"]);
  const written = asNumber(report?.["output_tokens"]);
  if (read === undefined && written === undefined) return undefined;
  const into = asObject(report!["input_tokens_details"]);
  const out = asObject(report!["output_tokens_details"]);
  const picturesIn = asNumber(into?.["image_tokens"]);
  const cached = asNumber(into?.["cached_tokens"]);
  // If the type of the output tokens is not reported, they count as image tokens, because the model
  // generates images.
  const picturesOut =
    asNumber(out?.["image_tokens"]) ?? subtract(written, asNumber(out?.["text_tokens"]));
  return omitUndefined({
    input: subtract(read, (picturesIn ?? 0) + (cached ?? 0)),
    cache_read: cached,
    image_in: picturesIn,
    image_out: picturesOut,
    output: out ? subtract(written, picturesOut) : undefined,
  });
}

/** Returns the usage in images, and in megapixels if all sizes are known. */
export function imageUnits(pictures: readonly Opt<ImageHead>[]): Usage {
  const pixels = pictures.map((p) => (p?.size ? p.size.width * p.size.height : undefined));
  const known = pixels.every((p) => p !== undefined);
  return {
    images: pictures.length,
    ...(known && { megapixels: pixels.reduce((sum, p) => sum + p, 0) / 1e6 }),
  };
}

export function usageSeen(
  report: Opt<JsonObject>,
  pictures: readonly Opt<ImageHead>[],
): UsageReport {
  const ticks = asNumber(report?.["cost_in_usd_ticks"]);
  return {
    type: "usage",
    usage: parseTokenUsage(report) ?? imageUnits(pictures),
    ...(ticks !== undefined &&
      ticks >= 0 && { costNano: BigInt(Math.round(ticks / TICKS_PER_NANO)) }),
  };
}

/** Encodes usage for a client. Returns undefined if no tokens were counted. */
export function usageTo(u: Usage): JsonObject | undefined {
  if (u.input === undefined && u.output === undefined && u.image_out === undefined)
    return undefined;
  const text = (u.input ?? 0) + (u.cache_read ?? 0);
  const read = text + (u.image_in ?? 0);
  const written = (u.output ?? 0) + (u.image_out ?? 0);
  return {
    input_tokens: read,
    output_tokens: written,
    total_tokens: read + written,
    input_tokens_details: {
      text_tokens: text,
      image_tokens: u.image_in ?? 0,
      ...(u.cache_read !== undefined && { cached_tokens: u.cache_read }),
    },
    output_tokens_details: { text_tokens: u.output ?? 0, image_tokens: u.image_out ?? 0 },
  };
}

const subtract = (all: Opt<number>, part: Opt<number>): Opt<number> =>
  all === undefined ? undefined : Math.max(0, all - (part ?? 0));

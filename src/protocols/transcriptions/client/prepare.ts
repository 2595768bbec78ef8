// Applies the dialect in both modes. If a model does not support the requested format, the gateway
// requests a supported one with the necessary data and converts the response.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asText } from "../../json-values.ts";
import { matchesGlob } from "../../../lib/glob.ts";
import type { TranscriptDialect } from "../dialect.ts";
import { timesIn } from "../server/request.ts";
import { RESPONSE_FORMAT, isTextFormat, TIMESTAMP_GRANULARITIES } from "../constants.ts";

/** For each format, the formats that contain all data it needs. */
const FORMAT_SOURCES: { readonly [format: string]: readonly string[] } = {
  text: ["json", "verbose_json"],
  srt: ["verbose_json", "diarized_json"],
  vtt: ["verbose_json", "diarized_json"],
};

export function prepare(out: Outgoing, of: CallContext, dialect: TranscriptDialect): void {
  const wanted = asText(out.get(RESPONSE_FORMAT)) ?? "json";
  if (dialect.formats === false) adaptGranularities(out, wanted);
  else adaptFormat(out, of, wanted, dialect.formats);
  for (const field of dialect.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null) of.reportLoss(field, "dropped");
  }
}

function adaptFormat(
  out: Outgoing,
  of: CallContext,
  wanted: string,
  formats: Exclude<TranscriptDialect["formats"], false>,
): void {
  const known = formats?.find((one) =>
    one.of.some((pattern) => matchesGlob(pattern, of.model)),
  )?.formats;
  const sent =
    wanted === "text" && countsInJson(of) && (known ?? ["json"]).includes("json")
      ? "json"
      : !known || known.includes(wanted)
        ? wanted
        : Object.hasOwn(FORMAT_SOURCES, wanted)
          ? FORMAT_SOURCES[wanted]!.find((format) => known.includes(format))
          : undefined;
  if (sent === undefined)
    fail(
      "unsupported",
      `${of.model} does not support the response format ${wanted}. It supports ${known!.join(", ")}.`,
      {
        param: RESPONSE_FORMAT,
        code: "unsupported_format",
      },
    );
  if (sent !== wanted) out.set(RESPONSE_FORMAT, sent);
}

/**
 * Whether JSON is requested in place of text to get usage counts. Plain text carries no counts, so
 * this is necessary unless the price is per second.
 */
const countsInJson = ({ info: { price } }: CallContext): boolean =>
  price !== undefined && !price.lines.some(({ unit }) => unit === "seconds");

/**
 * Requests timestamps if the client's format needs them. Such backends return timestamps only on
 * request.
 */
function adaptGranularities(out: Outgoing, wanted: string): void {
  if (out.get(RESPONSE_FORMAT) !== undefined) out.remove(RESPONSE_FORMAT);
  const timed = isTextFormat(wanted) ? wanted !== "text" : wanted !== "json";
  if (timed && timesIn(out.get(TIMESTAMP_GRANULARITIES)).length === 0)
    out.set(TIMESTAMP_GRANULARITIES, ["segment"]);
}

// The dialect, in both modes: a form that a model does not know is made here of one that it knows and that holds what is needed.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asText } from "../../json-values.ts";
import { matchesGlob } from "../../../lib/glob.ts";
import type { TranscriptDialect } from "../dialect.ts";
import { timesIn } from "../server/request.ts";
import { RESPONSE_FORMAT, isTextFormat, TIMESTAMP_GRANULARITIES } from "../constants.ts";

/** What holds all that a form needs. */
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
    fail("unsupported", `${of.model} does not answer in ${wanted}, but in ${known!.join(", ")}.`, {
      param: RESPONSE_FORMAT,
      code: "unsupported_format",
    });
  if (sent !== wanted) out.set(RESPONSE_FORMAT, sent);
}

/** A text brings no counts: where seconds are not what is billed, they are asked for. */
const countsInJson = ({ info: { price } }: CallContext): boolean =>
  price !== undefined && !price.lines.some(({ unit }) => unit === "seconds");

/** When it was said is told to those that ask for it. */
function adaptGranularities(out: Outgoing, wanted: string): void {
  if (out.get(RESPONSE_FORMAT) !== undefined) out.remove(RESPONSE_FORMAT);
  const timed = isTextFormat(wanted) ? wanted !== "text" : wanted !== "json";
  if (timed && timesIn(out.get(TIMESTAMP_GRANULARITIES)).length === 0)
    out.set(TIMESTAMP_GRANULARITIES, ["segment"]);
}

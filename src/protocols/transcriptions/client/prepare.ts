// The dialect, on both lanes: a form that a model does not know is made here of one that it knows and that holds what is needed.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { text } from "../../json.ts";
import { fits } from "../../../lib/glob.ts";
import type { TranscriptDialect } from "../dialect.ts";
import { timesIn } from "../server/request.ts";
import { FORMAT, isPlain, TIMES } from "../words.ts";

/** What holds all that a form needs. */
const MADE_OF: { readonly [format: string]: readonly string[] } = {
  text: ["json", "verbose_json"],
  srt: ["verbose_json", "diarized_json"],
  vtt: ["verbose_json", "diarized_json"],
};

export function prepare(out: Outgoing, of: CallContext, dialect: TranscriptDialect): void {
  const wanted = text(out.get(FORMAT)) ?? "json";
  if (dialect.formats === false) oneForm(out, wanted);
  else form(out, of, wanted, dialect.formats);
  for (const field of dialect.drop ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (value !== null) of.lose(field, "dropped");
  }
}

function form(
  out: Outgoing,
  of: CallContext,
  wanted: string,
  formats: Exclude<TranscriptDialect["formats"], false>,
): void {
  const known = formats?.find((one) => one.of.some((pattern) => fits(pattern, of.model)))?.formats;
  const sent =
    wanted === "text" && countsInJson(of) && (known ?? ["json"]).includes("json")
      ? "json"
      : !known || known.includes(wanted)
        ? wanted
        : Object.hasOwn(MADE_OF, wanted)
          ? MADE_OF[wanted]!.find((format) => known.includes(format))
          : undefined;
  if (sent === undefined)
    fail("unsupported", `${of.model} does not answer in ${wanted}, but in ${known!.join(", ")}.`, {
      param: FORMAT,
      code: "unsupported_format",
    });
  if (sent !== wanted) out.set(FORMAT, sent);
}

/** A text brings no counts: where seconds are not what is billed, they are asked for. */
const countsInJson = ({ info: { price } }: CallContext): boolean =>
  price !== undefined && !price.lines.some(({ unit }) => unit === "seconds");

/** When it was said is told to those that ask for it. */
function oneForm(out: Outgoing, wanted: string): void {
  if (out.get(FORMAT) !== undefined) out.drop(FORMAT);
  const timed = isPlain(wanted) ? wanted !== "text" : wanted !== "json";
  if (timed && timesIn(out.get(TIMES)).length === 0) out.set(TIMES, ["segment"]);
}

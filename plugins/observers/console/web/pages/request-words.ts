// What became of a request, as the list and its own page say it.
import { html } from "htm/preact";
import { Mark, type Tone } from "../parts/plain.ts";
import type { Seen } from "../shapes.ts";

const TONES: Readonly<Record<string, Tone>> = {
  ok: "good",
  client_error: "warn",
  refused: "warn",
  upstream_error: "bad",
  error: "bad",
  canceled: "",
};

/** What became of it, in a word and a colour. */
export const Outcome = ({
  of,
}: {
  of: Pick<Seen, "outcome" | "status" | "fault" | "code" | "phase" | "provider">;
}) =>
  of.phase
    ? html`<${Mark} tone="accent">${of.phase}${of.provider && ` ${of.provider}`}<//>`
    : html`<${Mark} tone=${TONES[of.outcome ?? "refused"] ?? ""}
        >${of.status || (of.outcome === "ok" ? "ok" : "")}${of.outcome === "ok" ? "" : ` ${of.fault?.code ?? of.fault?.kind ?? of.code ?? of.outcome}`}<//
      >`;

/** What all its calls cost; undefined: one of them has no price. */
export const costOf = ({ calls = [] }: Pick<Seen, "calls">): bigint | undefined => {
  let sum = 0n;
  for (const { costNano } of calls) {
    if (costNano === null || costNano === undefined) return undefined;
    sum += BigInt(costNano);
  }
  return sum;
};

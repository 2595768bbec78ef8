// Limits as people write and read them: dollars, not nano-dollars. Each bar has the name of what it measures, what is used and reserved, and
// when it resets.
import { html } from "htm/preact";
import { Select, Text } from "./parts/fields.ts";
import { Meter } from "./parts/plain.ts";
import { decimalOf } from "./decimal.ts";
import { away, brief, moment, usd } from "./words.ts";

export interface Limit {
  readonly unit: string;
  readonly max: string | number;
  readonly per: string;
}
export interface Counted extends Limit {
  readonly scope?: string;
  readonly used: string | number;
  readonly held: string | number;
  readonly left: string | number;
  readonly resetsAt: number;
}

const UNITS = [
  ["nano_usd", "dollars"],
  ["requests", "requests"],
  ["concurrent", "concurrent requests"],
  ["tokens", "tokens"],
  ["input", "input tokens"],
  ["output", "output tokens"],
  ["images", "images"],
  ["characters", "characters"],
  ["seconds", "seconds of audio"],
  ["searches", "searches"],
] as const;
const TIMES = ["minute", "hour", "day", "week", "month", "total"] as const;
/** Later than any window ends: it never does. */
const NEVER = 8e15;

const wordOf = (unit: string): string => UNITS.find(([name]) => name === unit)?.[1] ?? unit;
const amount = (unit: string, of: string | number): string =>
  unit === "nano_usd" ? usd(of) : `${brief(Number(of))} ${wordOf(unit)}`;

/** "$1.20", "340 requests". */
export const sayUsed = amount;

const NAMES: Readonly<Record<string, string>> = {
  nano_usd: "Spend",
  concurrent: "Concurrent requests",
  input: "Input tokens",
  output: "Output tokens",
  seconds: "Seconds of audio",
};

/** What a bar measures: "Spend per month". */
export const nameOfLimit = ({ unit, per }: Limit): string => {
  const word = wordOf(unit);
  const name = NAMES[unit] ?? word.charAt(0).toUpperCase() + word.slice(1);
  return per === "open" ? name : per === "total" ? `${name}, lifetime` : `${name} per ${per}`;
};

/** "$5.50 per month", "60 requests per minute" */
export const sayLimit = ({ unit, max, per }: Limit): string =>
  `${amount(unit, max)}${per === "open" ? "" : per === "total" ? " in total" : ` per ${per}`}`;

const bare = (unit: string, of: string | number): string =>
  unit === "nano_usd" ? usd(of) : brief(Number(of));

/** "account:web" → "web"; undefined: the limit is the owner's own. */
const accountOf = (scope: string | undefined, own: string | undefined): string | undefined => {
  const [, account] = /^account:(.*)$/.exec(scope ?? "") ?? [];
  return account === own ? undefined : account;
};

/** `used`: absent where the store cannot tell. `own`: the account that the bars are shown for. */
export function LimitBar({ limit, own }: { limit: Limit & Partial<Counted>; own?: string }) {
  const max = Number(limit.max);
  const account = accountOf(limit.scope, own);
  const name = `${account === undefined ? "" : `Account ${account}: `}${nameOfLimit(limit)}`;
  if (limit.used === undefined)
    return html`<div class="small limit">
      <span class="strong">${name}</span> <span class="quiet">up to ${bare(limit.unit, max)}</span>
    </div>`;
  const [used, held] = [Number(limit.used), Number(limit.held)];
  const share = max === 0 ? 1 : used / max;
  const said = `${bare(limit.unit, limit.used)} of ${bare(limit.unit, max)}`;
  const resets =
    limit.resetsAt! < NEVER && limit.per !== "open" ? `Resets in ${away(limit.resetsAt!)}` : "";
  return html`<div class="stack tight limit">
    <div class="row small">
      <span class="grow strong">${name}</span>
      <span class="nowrap">${said}</span>
    </div>
    <${Meter} of=${share} held=${max === 0 ? 0 : held / max} label=${`${name}: ${said}`} />
    ${
      (held > 0 || resets) &&
      html`<div class="row small faint">
        <span class="grow">${held > 0 ? `${bare(limit.unit, held)} reserved` : ""}</span>
        ${resets && html`<span class="nowrap" title=${moment(limit.resetsAt!)}>${resets}</span>`}
      </div>`
    }
  </div>`;
}

/** What a form holds: as it is typed. */
export interface TypedLimit {
  readonly unit: string;
  readonly max: string;
  readonly per: string;
}

export const typedOf = ({ unit, max, per }: Limit): TypedLimit => ({
  unit,
  per,
  max: unit === "nano_usd" ? decimalOf(String(max)) : String(max),
});

/** Undefined: it is no amount. */
export function limitOf({ unit, max, per }: TypedLimit): Limit | undefined {
  const said = max.trim();
  const time = unit === "concurrent" ? "open" : per;
  if (unit !== "nano_usd")
    return /^\d{1,15}$/.test(said) ? { unit, per: time, max: Number(said) } : undefined;
  const [, whole, part = ""] = /^(\d{1,6})(?:\.(\d{1,9}))?$/.exec(said) ?? [];
  return whole === undefined
    ? undefined
    : { unit, per: time, max: Number(`${whole}${part.padEnd(9, "0")}`) };
}

export function LimitFields({
  value,
  set,
}: {
  value: readonly TypedLimit[];
  set: (to: readonly TypedLimit[]) => void;
}) {
  const put = (at: number, more: Partial<TypedLimit>) =>
    set(value.map((each, i) => (i === at ? { ...each, ...more } : each)));
  return html`<fieldset class="stack tight">
    <legend class="small quiet">Limits and budgets</legend>
    ${value.map(
      (each, at) =>
        html`<div class="filters" key=${at}>
          <${Text}
            name="At most"
            value=${each.max}
            set=${(max: string) => put(at, { max })}
            placeholder=${each.unit === "nano_usd" ? "25.00" : "1000"}
            wrong=${each.max.trim() !== "" && !limitOf(each) ? (each.unit === "nano_usd" ? "dollars, as in 12.50" : "a whole number") : undefined}
          />
          <${Select}
            name="Of"
            value=${each.unit}
            set=${(unit: string) => put(at, { unit })}
            of=${UNITS}
          />
          ${each.unit !== "concurrent" && html`<${Select} name="Per" value=${each.per} set=${(per: string) => put(at, { per })} of=${TIMES.map((time) => [time, time === "total" ? "lifetime" : time] as const)} />`}
          <button
            type="button"
            class="button"
            aria-label=${`Remove limit ${at + 1}`}
            onClick=${() => set(value.filter((_, i) => i !== at))}
          >
            Remove
          </button>
        </div>`,
    )}
    <div>
      <button
        type="button"
        class="button small"
        onClick=${() => set([...value, { unit: "nano_usd", max: "", per: "month" }])}
      >
        Add a limit
      </button>
    </div>
  </fieldset>`;
}
